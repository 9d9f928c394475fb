"""What models are compared by: each measure holds its value for every (variant, seed) and for the floors."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from lexmem.evaluation.cloze import BANDS as CLOZE_BANDS
from lexmem.reporting.frames import FINISHED, Results
from lexmem.reporting.stats import Estimate, clear_winner, estimate, paired_difference

# Tasks whose papers report accuracy by length-normalised likelihood; the others by the plain one.
NORMALISED = frozenset({"hellaswag", "piqa", "arc_challenge", "openbookqa"})
# Accuracy of a guess; ARC's few items of 3 or 5 choices are taken for 4.
GUESS = {
    "arc_easy": 1 / 4,
    "arc_challenge": 1 / 4,
    "hellaswag": 1 / 4,
    "openbookqa": 1 / 4,
    "sciq": 1 / 4,
    "cloze": 1 / 4,
    "piqa": 1 / 2,
    "winogrande": 1 / 2,
    "boolq": 1 / 2,
    "homophones": 1 / 2,
    "blimp": 1 / 2,
    "lambada_openai": 0.0,
}
MANY = 10**9
NATS, PERCENT = "nats/token", "%"
# Leaves of tasks that grade words by frequency, rarest first, and what to call them.
BANDS = {
    "cloze": {
        name: f"{low:,} to {high:,}" if high < MANY else f"{low:,} up" for name, (low, high) in CLOZE_BANDS.items()
    },
    "homophones": {"homophones_rare": "rarer word right", "homophones_common": "commoner word right"},
}


def bin_words(bins: list[int]) -> dict[int, str]:
    """What the outer frequency bins are called, by number: 0 holds what training never showed."""
    return {0: "never seen", 1: "rarest", max(bins): "commonest"}


@dataclass(frozen=True)
class Measure:
    """One quantity of every model.

    Attributes:
        title, unit: its name and the unit of its printed values, for headers and axes.
        values: by variant or floor, a series indexed by seed.
        lower_is_better: direction of an improvement.
        scale, digits: from the stored unit to the printed one.
        chance: what a guess scores, in the stored unit.
    """

    key: str
    title: str
    unit: str
    values: Mapping[str, pd.Series]
    lower_is_better: bool
    digits: int
    scale: float = 1.0
    chance: float | None = None

    def estimate(self, name: str) -> Estimate | None:
        """Mean and interval over the seeds of ``name``; None where it has no value."""
        return estimate(self.values[name]) if name in self.values else None

    def value(self, name: str) -> float | None:
        """The mean alone."""
        found = self.estimate(name)
        return None if found is None else found.mean

    def difference(self, name: str, baseline: str) -> Estimate | None:
        """Paired difference ``name`` - ``baseline`` over shared seeds; None for the baseline itself."""
        if name == baseline or name not in self.values or baseline not in self.values:
            return None
        return paired_difference(self.values[name], self.values[baseline])

    def winner(self, names: list[str]) -> str | None:
        """The best of ``names`` where it is clear of the runner-up."""
        return clear_winner({name: self.values[name] for name in names if name in self.values}, self.lower_is_better)


def validation_loss(results: Results) -> Measure:
    """Loss on the validation split at the end of training; diverged runs have none."""
    runs = results.runs[results.runs["status"] == FINISHED]
    return Measure("valid_loss", "Validation loss", NATS, _by_name(runs, "valid_loss"), True, 3)


def test_loss(results: Results) -> Measure:
    """Loss on the test split, nats a token."""
    return Measure("test_loss", "Test loss", NATS, _by_name(results.heldout, "loss"), True, 3)


def bits_per_byte(results: Results) -> Measure:
    """The test loss in bits a byte of text, which does not depend on the tokenizer."""
    return Measure("bits_per_byte", "Test loss", "bits/byte", _by_name(results.heldout, "bits_per_byte"), True, 4)


def task_measures(results: Results) -> list[Measure]:
    """Accuracy on each task (not its leaves) by the metric its papers use."""
    names = task_names(results)
    return [_task(results, task, task, task) for task in results.task_info if task in names]


def band_measures(results: Results) -> dict[str, list[Measure]]:
    """By task, the accuracy on each of its bands of word frequency, rarest first."""
    names = task_names(results)
    bands = {
        task: [_task(results, name, task, label) for name, label in leaves.items() if name in names]
        for task, leaves in BANDS.items()
    }
    return {task: measures for task, measures in bands.items() if measures}


def average(tasks: list[Measure]) -> Measure:
    """Unweighted mean of the tasks' accuracies, seed by seed; models that lack a task have none."""
    names = [name for name in tasks[0].values if all(name in task.values for task in tasks)]
    values = {
        name: pd.concat([task.values[name] for task in tasks], axis=1).mean(axis=1, skipna=False) for name in names
    }
    chances = [task.chance for task in tasks]
    chance = None if None in chances else sum(chances) / len(chances)
    return Measure("average", "Task average", PERCENT, values, False, 1, 100.0, chance)


def task_names(results: Results) -> list[str]:
    """Tasks with an accuracy, in the order they were scored."""
    return list(results.tasks.loc[results.tasks["metric"].isin(["acc", "acc_norm"]), "task"].unique())


def headline_metric(results: Results, name: str, task: str) -> str:
    """``acc_norm`` where convention asks for it and it was measured, else ``acc``."""
    measured = set(results.tasks.loc[results.tasks["task"] == name, "metric"])
    return "acc_norm" if (task in NORMALISED and "acc_norm" in measured) or "acc" not in measured else "acc"


def chance_of(results: Results, name: str) -> float | None:
    """Accuracy of a guess on a task or one of its leaves; None where it is not known."""
    owner = next((task for task, info in results.task_info.items() if name in info["leaves"]), name)
    return GUESS.get(owner)


def _task(results: Results, name: str, task: str, title: str) -> Measure:
    metric = headline_metric(results, name, task)
    frame = results.tasks[(results.tasks["task"] == name) & (results.tasks["metric"] == metric)]
    return Measure(name, title, PERCENT, _by_name(frame, "value"), False, 1, 100.0, GUESS.get(task))


def _by_name(frame: pd.DataFrame, column: str) -> dict[str, pd.Series]:
    return {str(name): group.set_index("seed")[column].dropna() for name, group in frame.groupby("variant")}
