"""Everything that is measured of one scorer: held-out loss, loss by frequency, and every task."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import pandas as pd
from lm_eval.api.group import Group
from lm_eval.api.metrics import mean, mean_stderr, pooled_sample_stderr, unweighted_mean_stderr
from lm_eval.evaluator import evaluate
from lm_eval.utils import env
from tokenizers import Tokenizer

from lexmem.data.tokens import TokenFiles
from lexmem.evaluation.harness import HarnessLM
from lexmem.evaluation.heldout import deciles, heldout_losses, summarise
from lexmem.evaluation.scorer import Scorer
from lexmem.evaluation.tasks import LoadedTasks
from lexmem.spec.params import Preset

TASK_COLUMNS = ["task", "metric", "value", "stderr", "n"]


@dataclass(frozen=True)
class Evaluation:
    """What one scorer got.

    Attributes:
        heldout: see :func:`lexmem.evaluation.heldout.summarise`.
        deciles: see :func:`lexmem.evaluation.heldout.deciles`.
        tasks: one row a task (or group) and metric: value, its standard error over items, number of items.
        truncated: requests whose context did not fit.
        timing: seconds in all and of the parts.
    """

    heldout: dict[str, float]
    deciles: pd.DataFrame
    tasks: pd.DataFrame
    truncated: int
    timing: dict[str, float]


def evaluate_all(
    scorer: Scorer, tokenizer: Tokenizer, tokens: TokenFiles, tasks: LoadedTasks, params: Preset
) -> Evaluation:
    """Measure a scorer on the test split and on ``tasks``, as ``params.evaluate`` says."""
    started = time.monotonic()
    losses = heldout_losses(
        scorer,
        tokens,
        params.budget.seq_len,
        params.evaluate.heldout_tokens,
        max(1, params.evaluate.batch_tokens // params.budget.seq_len),
    )
    heldout_seconds = time.monotonic() - started
    model = HarnessLM(scorer, tokenizer, tokens.eot_id)
    frame = score_tasks(model, tasks, params.evaluate.limit)
    seconds = time.monotonic() - started
    return Evaluation(
        heldout=summarise(losses, tokens, tokenizer),
        deciles=deciles(losses, tokens.counts(params.budget.tokens)),
        tasks=frame,
        truncated=model.truncated,
        timing={
            "seconds": seconds,
            "heldout_seconds": heldout_seconds,
            "tasks_seconds": seconds - heldout_seconds,
            "tokens_per_second": len(losses.targets) / heldout_seconds,
            "requests": model.scored,
            "requests_per_second": model.scored / max(model.scoring_seconds, 1e-9),
        },
    )


def score_tasks(model: HarnessLM, tasks: LoadedTasks, limit: int | None) -> pd.DataFrame:
    """Run lm-eval; standard errors are of means over items, without bootstrap (empty for other aggregations)."""
    if not tasks.tasks:
        return pd.DataFrame(columns=TASK_COLUMNS)
    loaded = tasks.manager.load(tasks.tasks)
    with _templates_compiled_once():
        results = evaluate(model, loaded, limit=limit, bootstrap_iters=0, log_samples=True)
    rows = []
    for name, task in loaded["tasks"].items():
        rows += _task_rows(name, task.aggregation(), results["results"][name], results["samples"][name])
    for name, group in loaded["groups"].items():
        rows += _group_rows(group, results["results"][name], rows)
    return pd.DataFrame(rows, columns=TASK_COLUMNS)


@contextmanager
def _templates_compiled_once() -> Iterator[None]:
    """lm-eval compiles its templates anew for every item, which can cost as much as a small model's forward passes."""
    env.from_string = lru_cache(maxsize=None)(env.from_string)
    try:
        yield
    finally:
        del env.from_string  # the class's own method is behind it


def _task_rows(name: str, aggregation: dict[str, Any], result: dict, samples: list[dict]) -> list[dict[str, Any]]:
    rows = []
    for metric, filter_name in _metrics(result):
        values = [s[metric] for s in samples if s["filter"] == filter_name and metric in s]
        averaged = aggregation.get(metric) is mean and len(values) > 1
        rows.append(
            {
                "task": name,
                "metric": _label(metric, filter_name),
                "value": result[f"{metric},{filter_name}"],
                "stderr": mean_stderr(values) if averaged else None,
                "n": len(values),
            }
        )
    return rows


def _group_rows(group: Group, result: dict, leaf_rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    weighted = {aggregate.metric: aggregate.weight_by_size for aggregate in group.aggregate_metric_list or []}
    leaves = {task.task_name for task in group.get_all_tasks()}
    rows = []
    for metric, filter_name in _metrics(result):
        label = _label(metric, filter_name)
        parts = [row for row in leaf_rows if row["task"] in leaves and row["metric"] == label]
        stderrs, sizes = [row["stderr"] for row in parts], [row["n"] for row in parts]
        if None in stderrs:
            stderr = None
        elif weighted[metric]:
            stderr = float(pooled_sample_stderr(stderrs, sizes))
        else:
            stderr = float(unweighted_mean_stderr(stderrs))
        value = result[f"{metric},{filter_name}"]
        rows.append({"task": group.name, "metric": label, "value": value, "stderr": stderr, "n": sum(sizes)})
    return rows


def _metrics(result: dict) -> list[tuple[str, str]]:
    """``(metric, filter)`` of the keys ``metric,filter`` of an lm-eval result."""
    pairs = [tuple(key.split(",", 1)) for key in result if "," in key]
    return [pair for pair in pairs if not pair[0].endswith("_stderr")]


def _label(metric: str, filter_name: str) -> str:
    return metric if filter_name == "none" else f"{metric},{filter_name}"
