"""From a stage's files to MLflow: the one way numbers get there, for the stages and for a replay alike."""

import csv
from pathlib import Path
from typing import Any

from lexmem.spec.files import read_json
from lexmem.spec.layout import Layout
from lexmem.tracking.store import Run, Tracker, child


def record_pretrain(preset: str, variant: str, seed: int, root: Path = Path()) -> None:
    """Log a training's files: the plan's entry as parameters, the curve, the summary and the timing.

    The summary's ``status`` other than ``finished`` marks the run FAILED.
    """
    layout = Layout(preset, root)
    name, folder = f"{variant}-{seed}", layout.metrics("pretrain")
    summary = read_json(folder / f"{name}.json")
    timing = folder / f"{name}.timing.json"
    run = child(preset, variant, seed, summary["plan_hash"], root)
    run.params({**_plan(layout, variant), "seed": seed, "train": summary.get("train", {})})
    run.rows(_rows(folder / f"{name}.csv"))
    run.summary({"final": {key: summary[key] for key in summary if key not in ("seed", "train")}})
    if timing.exists():
        run.summary({"timing": read_json(timing)})
    status = summary.get("status", "finished")
    run.end("FINISHED" if status == "finished" else "FAILED", status)


def record_evaluate(preset: str, variant: str, seed: int, root: Path = Path()) -> None:
    """Log an evaluation's files into the run of its training: held-out numbers, ``task/metric`` and its stderr."""
    layout = Layout(preset, root)
    name, folder = f"{variant}-{seed}", layout.metrics("evaluate")
    trained = read_json(layout.metrics("pretrain") / f"{name}.json")
    run = child(preset, variant, seed, trained["plan_hash"], root)
    run.summary({key: value for key, value in read_json(folder / f"{name}.json").items() if key != "seed"})
    run.summary(_scores(folder / f"{name}.csv"))


def record_bench(preset: str, root: Path = Path()) -> None:
    """Log the benchmark's files to the parent run."""
    Run(Tracker(root), preset, "study", {}).artifacts(Layout(preset, root).metrics("bench"))


def record_report(preset: str, root: Path = Path()) -> None:
    """Log the floor's scores, the tables and the figures to the parent run, and end it."""
    layout = Layout(preset, root)
    run = Run(Tracker(root), preset, "study", {})
    floors = layout.metrics("floor")
    for name in _names(floors):
        run.summary({name: {**read_json(floors / f"{name}.json"), **_scores(floors / f"{name}.csv")}})
    for directory in (layout.tables, layout.figures):
        if directory.is_dir():
            run.artifacts(directory)
    run.end("FINISHED", "finished")


def replay(preset: str, root: Path = Path()) -> int:
    """Log everything that ``results/<preset>`` holds; returns the number of trainings found."""
    layout = Layout(preset, root)
    names = _names(layout.metrics("pretrain"))
    for name in names:
        variant, seed = name.rsplit("-", 1)
        record_pretrain(preset, variant, int(seed), root)
        if (layout.metrics("evaluate") / f"{name}.json").exists():
            record_evaluate(preset, variant, int(seed), root)
    if layout.metrics("bench").is_dir():
        record_bench(preset, root)
    record_report(preset, root)
    return len(names)


def _names(folder: Path) -> list[str]:
    """Names of the summaries in a folder of metrics (``<name>.json``; timings have two suffixes)."""
    return sorted(path.stem for path in folder.glob("*.json") if "." not in path.stem)


def _plan(layout: Layout, variant: str) -> dict[str, Any]:
    path = layout.results / "plan.json"
    entries = read_json(path)["variants"] if path.exists() else []
    return next((entry for entry in entries if entry["variant"] == variant), {"variant": variant})


def _rows(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _scores(path: Path) -> dict[str, str]:
    scores = {}
    for row in _rows(path):
        scores[f"{row['task']}/{row['metric']}"] = row["value"]
        scores[f"{row['task']}/{row['metric']}_stderr"] = row["stderr"]
    return scores
