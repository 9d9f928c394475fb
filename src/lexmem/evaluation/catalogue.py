"""The tasks that can be named: where their items come from, their licence, and lm-eval's definition of each.

Items of a task live under the columns that lm-eval's definition reads. ``evidence`` is the text that would stand in a
contaminated corpus: the question with its right answer.
"""

import importlib.util
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lexmem.spec.errors import UserError, nearest

Item = dict[str, Any]

MADE = ("cloze", "homophones")  # from held-out text
BLIMP = "blimp"


@dataclass(frozen=True)
class Builtin:
    """One of lm-eval's own tasks.

    ``definition`` is relative to lm-eval's folder of tasks. ``folder`` is the place in the package of items, or None
    for a task that comes from the hub (dataset ``hub``, split ``split``) or a local copy.
    """

    definition: str
    licence: str
    evidence: Callable[[Item], str]
    folder: str | None = None
    hub: tuple[str, str | None] | None = None
    split: str = "validation"


def _arc(item: Item) -> str:
    return f"{item['question']} {_labelled(item)}"


def _labelled(item: Item) -> str:
    choices = item["choices"]
    return choices["text"][choices["label"].index(item["answerKey"].strip())]


def _hellaswag(item: Item) -> str:
    return f"{item['ctx']} {item['endings'][int(item['label'])]}"


def _piqa(item: Item) -> str:
    return f"{item['goal']} {item['sol2' if item['label'] else 'sol1']}"


def _winogrande(item: Item) -> str:
    return item["sentence"].replace("_", item[f"option{item['answer']}"])


def _openbookqa(item: Item) -> str:
    return f"{item['question_stem']} {_labelled(item)}"


def _boolq(item: Item) -> str:
    return f"{item['passage']} {item['question']}"


def _sciq(item: Item) -> str:
    return f"{item['support']} {item['question']} {item['correct_answer']}"


BUILTINS = {
    "arc_easy": Builtin("arc/arc_easy.yaml", "CC-BY-SA-4.0", _arc, "ai2_arc/ARC-Easy"),
    "arc_challenge": Builtin("arc/arc_challenge.yaml", "CC-BY-SA-4.0", _arc, "ai2_arc/ARC-Challenge"),
    "hellaswag": Builtin("hellaswag/hellaswag.yaml", "MIT", _hellaswag, "hellaswag/none"),
    "piqa": Builtin("piqa/piqa.yaml", "unstated", _piqa, "piqa/plain_text"),
    "winogrande": Builtin("winogrande/default.yaml", "CC-BY", _winogrande, "winogrande/winogrande_xl"),
    "openbookqa": Builtin("openbookqa/openbookqa.yaml", "Apache-2.0", _openbookqa, "openbookqa/main"),
    "boolq": Builtin("super_glue/boolq/default.yaml", "CC-BY-SA-3.0", _boolq, "boolq/none"),
    "sciq": Builtin("sciq/sciq.yaml", "CC-BY-NC-3.0", _sciq, "sciq/none"),
    "lambada_openai": Builtin(
        "lambada/lambada_openai.yaml",
        "MIT",
        lambda item: item["text"],
        hub=("EleutherAI/lambada_openai", "default"),
        split="test",
    ),
    "wikitext": Builtin(
        "wikitext/wikitext.yaml",
        "CC-BY-SA-3.0",
        lambda item: item["page"],
        hub=("EleutherAI/wikitext_document_level", "wikitext-2-raw-v1"),
        split="test",
    ),
}


def blimp_paradigm(name: str) -> Builtin:
    """One of BLiMP's 67 minimal-pair sets, a leaf ``blimp_<name>`` of the group ``blimp``."""
    return Builtin(
        f"blimp/{name}.yaml",
        "CC-BY-4.0",
        lambda item: item["sentence_good"],
        hub=("nyu-mll/blimp", name),
        split="train",
    )


def blimp_paradigms() -> list[str]:
    """Names of BLiMP's paradigms: lm-eval has a definition a paradigm, and files of other kinds begin with ``_``."""
    folder = builtin_definition("blimp")
    return sorted(path.stem for path in folder.glob("*.yaml") if not path.stem.startswith("_"))


def builtin_definition(relative: str) -> Path:
    """Path of one of lm-eval's task files, found without importing lm-eval."""
    root = importlib.util.find_spec("lm_eval").submodule_search_locations[0]
    return Path(root) / "tasks" / relative


def check_names(names: Iterable[str]) -> None:
    """Raises:
    UserError: if a name is not a task, with the nearest one.
    """
    allowed = [*BUILTINS, BLIMP, *MADE]
    for name in names:
        if name not in allowed:
            raise UserError(f"tasks.names: {name!r} is not a task; {nearest(name, allowed)}")
