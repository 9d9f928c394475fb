"""From task names and a folder of items to lm-eval task objects, without a hub, a cache or a scan of every built-in.

The folder is what the ``tasks`` stage writes (``Layout.tasks``): ``tasks.json`` and one folder a leaf task with
``test.jsonl``. A leaf's definition (prompt, choices, metrics) is lm-eval's own YAML, or, for tasks made from held-out
text, the YAML beside its items; only the source of the documents is replaced. Usage::

    loaded = load_tasks(["arc_easy", "cloze"], layout.tasks, limit=200)
    simple_evaluate(model=lm, tasks=loaded.tasks, task_manager=loaded.manager, limit=200, bootstrap_iters=0)

Groups (``cloze``, ``homophones``, ``blimp``) appear in lm-eval's results beside their leaves (``cloze_b1``, ...).
"""

import logging
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from datasets import Dataset, disable_progress_bars
from lm_eval.api.group import AggMetricConfig, Group
from lm_eval.api.task import ConfigurableTask, Task
from lm_eval.tasks import TaskManager
from lm_eval.tasks._yaml_loader import load_yaml

from lexmem.evaluation.catalogue import builtin_definition
from lexmem.evaluation.texts import read_jsonl
from lexmem.spec.errors import UserError, nearest
from lexmem.spec.files import read_json


class LoadedTasks(NamedTuple):
    """What ``simple_evaluate`` takes: ``tasks=`` and ``task_manager=`` (an empty one: it need not scan)."""

    tasks: list[Task | Group]
    manager: TaskManager


class LocalTask(ConfigurableTask):
    """lm-eval's configurable task over documents held in memory."""

    def __init__(self, config: dict[str, Any], documents: Dataset) -> None:
        self._documents = documents
        super().__init__(config=config)

    def download(self, dataset_kwargs: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Called by lm-eval where it would fetch a dataset."""
        self.dataset = {"test": self._documents}


def load_tasks(names: list[str], folder: Path, limit: int | None = None) -> LoadedTasks:
    """Load tasks by name from the folder written by the ``tasks`` stage.

    Args:
        names: tasks or groups listed in ``folder/tasks.json``; those of which no item could be made are left out.
        folder: ``Layout.tasks``.
        limit: read only the first ``limit`` items of a leaf (items are stored in a fixed shuffled order), or all.

    Raises:
        UserError: if the folder was not made, or does not hold a named task.
    """
    listing = folder / "tasks.json"
    if not listing.is_file():
        raise UserError(f"{listing}: no such file; run the tasks stage first")
    disable_progress_bars()
    logging.getLogger("lm_eval.api.task").setLevel(logging.ERROR)  # it warns of defaults in its own definitions
    entries = read_json(listing)["tasks"]
    loaded = []
    for name in names:
        if name not in entries:
            raise UserError(f"tasks: {name!r} is not in {listing}; {nearest(name, entries)}")
        leaves = [_load_leaf(leaf, info, folder, limit) for leaf, info in entries[name]["leaves"].items()]
        if entries[name]["group"] is None:
            loaded += leaves
        elif leaves:
            loaded.append(_group(name, leaves, load_yaml(_definition(entries[name]["group"], folder))))
    return LoadedTasks(loaded, TaskManager(include_defaults=False))


def _load_leaf(name: str, info: dict[str, Any], folder: Path, limit: int | None) -> LocalTask:
    config = load_yaml(_definition(info["definition"], folder)) | {"task": name}
    for key in ("tag", "group", "dataset_path", "dataset_name", "dataset_kwargs"):
        config.pop(key, None)
    documents = Dataset.from_list(list(islice(read_jsonl(folder / info["file"]), limit)))
    if (process := config.pop("process_docs", None)) is not None:
        documents = process(documents)  # once, where lm-eval would do it at every access
    config |= {"training_split": None, "validation_split": None, "fewshot_split": None, "test_split": "test"}
    return LocalTask(config, documents)


def _definition(place: dict[str, str], folder: Path) -> Path:
    return folder / place["own"] if "own" in place else builtin_definition(place["lm_eval"])


def _group(name: str, leaves: list[LocalTask], config: dict[str, Any]) -> Group:
    group = Group(name, aggregate_metric_list=[AggMetricConfig(**metric) for metric in config["aggregate_metric_list"]])
    for leaf in leaves:
        group.add(leaf)
    return group
