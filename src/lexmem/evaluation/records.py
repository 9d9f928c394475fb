"""Files of one evaluation: a summary, tidy frames, and its timing apart (which may differ between equal runs)."""

from pathlib import Path
from typing import Any

import pandas as pd

from lexmem.evaluation.heldout import DECILE_COLUMNS
from lexmem.evaluation.suite import TASK_COLUMNS, Evaluation
from lexmem.spec.files import replacing, write_json


def write_evaluation(
    folder: Path, name: str, variant: str, seed: int, evaluation: Evaluation, setting: dict[str, Any]
) -> None:
    """Write ``<name>.json``, ``.csv``, ``.deciles.csv`` and ``.timing.json``; ``setting`` goes into the last."""
    whose = {"variant": variant, "seed": seed}
    write_json(folder / f"{name}.timing.json", evaluation.timing | setting)
    _write_frame(folder / f"{name}.csv", evaluation.tasks, whose)
    _write_frame(folder / f"{name}.deciles.csv", evaluation.deciles, whose)
    write_json(folder / f"{name}.json", whose | {"heldout": evaluation.heldout, "truncated": evaluation.truncated})


def write_nothing(folder: Path, name: str, variant: str, seed: int) -> None:
    """The same files for a training that stopped before its end: it is listed everywhere, with no number."""
    whose = {"variant": variant, "seed": seed}
    write_json(folder / f"{name}.timing.json", {})
    _write_frame(folder / f"{name}.csv", pd.DataFrame(columns=TASK_COLUMNS), whose)
    _write_frame(folder / f"{name}.deciles.csv", pd.DataFrame(columns=DECILE_COLUMNS), whose)
    write_json(folder / f"{name}.json", whose | {"heldout": None, "truncated": 0})


def _write_frame(path: Path, frame: pd.DataFrame, whose: dict[str, Any]) -> None:
    frame = frame.assign(**whose)[[*whose, *frame.columns]]
    with replacing(path) as temporary:
        frame.to_csv(temporary, index=False)
