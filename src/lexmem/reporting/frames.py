"""Reads what the stages of one preset left in ``results/<preset>`` into tidy frames: one row an observation.

Only the (variant, seed) pairs of the active study are read, so leftovers of another study change nothing. A missing
file is an error that names it and the stage that makes it; a run that diverged is kept in ``runs`` and has no more.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lexmem.spec.errors import UserError
from lexmem.spec.files import read_json
from lexmem.spec.layout import Layout
from lexmem.spec.params import load_study

FINISHED = "finished"
TIMINGS = ["stage", "variant", "seed", "seconds", "tokens_per_second", "threads", "machine"]


@dataclass(frozen=True)
class Results:
    """Everything a report shows.

    Attributes:
        variants: labels in the order of the study; ``baseline`` is the one that differences are taken to.
        floors: names of the models without a network, scored on the same items.
        plan: the ledger entry of each variant.
        runs: variant, seed, status, valid_loss, bits_per_byte, steps, tokens, flops: one row a run, diverged ones too.
        curves: variant, seed, step, tokens, flops, metric, value; of runs that finished, as all that follow.
        heldout: variant, seed, loss (nats a token), bits_per_byte and the rest of the held-out measures; truncated
            counts the requests whose context did not fit.
        tasks: variant, seed, task, metric, value, stderr, n.
        deciles: variant, seed, bins, bin (1 = rarest, 0 = never seen in training), types, tokens, loss.
        allocation: method, rank (1 = the most frequent token), token, count, rows.
        allocation_summary: the same stage's budget and cap, and totals by method.
        decode, training_speed: repeated timings of the bench stage; ``bench`` describes its machine.
        timings: stage, variant, seed, seconds, tokens_per_second, threads, machine, as far as a stage noted them.
        corpus: manifest of the text.
        task_info: by task (not its leaves), where items come from and how many are contaminated.
    """

    preset: str
    variants: list[str]
    seeds: list[int]
    baseline: str
    floors: list[str]
    plan: dict[str, dict[str, Any]]
    runs: pd.DataFrame
    curves: pd.DataFrame
    heldout: pd.DataFrame
    tasks: pd.DataFrame
    deciles: pd.DataFrame
    allocation: pd.DataFrame
    allocation_summary: dict[str, Any]
    decode: pd.DataFrame
    training_speed: pd.DataFrame
    bench: dict[str, Any]
    timings: pd.DataFrame
    corpus: dict[str, Any]
    task_info: dict[str, dict[str, Any]]

    @property
    def diverged(self) -> pd.DataFrame:
        """The runs whose training did not end well."""
        return self.runs[self.runs["status"] != FINISHED]

    @property
    def others(self) -> list[str]:
        """The variants that are compared with the baseline."""
        return [name for name in self.variants if name != self.baseline]

    @property
    def models(self) -> list[str]:
        """All that is scored: variants, then floors."""
        return [*self.variants, *self.floors]

    @property
    def by_decile(self) -> pd.DataFrame:
        """Loss by frequency of the target, in bins of equally many token types."""
        return self.deciles[self.deciles["bins"] == "equal_type"]

    def title(self, name: str) -> str:
        """What a variant or floor is called in print: the title of its plan entry; a floor by its own name."""
        return self.plan[name]["title"] if name in self.plan else name


def load_results(preset: str, root: Path = Path()) -> Results:
    """Read the results of ``preset`` for the study of ``params.yaml``.

    Raises:
        UserError: if a file is missing or unreadable; the line names it and the command that makes it. Also if no
            training finished.
    """
    study = load_study(root)
    layout = Layout(preset, root)
    reader = _Reader(layout)
    plan = reader.json(layout.results / "plan.json", "plan")
    entries = {entry["variant"]: entry for entry in plan["variants"]}
    for name in study.variants:
        if name not in entries:
            raise UserError(f"{layout.results / 'plan.json'}: no entry for variant {name!r}; {reader.remedy('plan')}")
    pairs = [(variant, seed) for variant in study.variants for seed in study.seeds]
    runs = pd.DataFrame([reader.summary("pretrain", variant, seed) for variant, seed in pairs])
    finished = [pair for pair, status in zip(pairs, runs["status"], strict=True) if status == FINISHED]
    if not finished:
        raise UserError(f"no training of preset {preset!r} finished ({runs['status'].iloc[0]}): nothing to report")
    floors = reader.floors()
    return Results(
        preset=preset,
        variants=study.variants,
        seeds=study.seeds,
        baseline=study.variants[0],
        floors=[floor["variant"] for floor in floors.values()],
        plan={name: entries[name] for name in study.variants},
        runs=runs,
        curves=reader.frames("pretrain", ".csv", finished),
        heldout=_heldout([reader.summary("evaluate", *pair) for pair in finished] + list(floors.values())),
        tasks=pd.concat([reader.frames("evaluate", ".csv", finished), reader.floor_frames(floors, ".csv")]),
        deciles=pd.concat(
            [reader.frames("evaluate", ".deciles.csv", finished), reader.floor_frames(floors, ".deciles.csv")]
        ),
        allocation=reader.csv(layout.metrics("allocate") / "allocation.csv", "allocate"),
        allocation_summary=reader.json(layout.metrics("allocate") / "allocation.json", "allocate"),
        decode=_resident_first(_of(study.variants, reader.csv(layout.metrics("bench") / "decode.csv", "bench"))),
        training_speed=_of(study.variants, reader.csv(layout.metrics("bench") / "training.csv", "bench")),
        bench=reader.json(layout.metrics("bench") / "bench.json", "bench"),
        timings=pd.DataFrame(reader.timings(pairs)).reindex(columns=TIMINGS),
        corpus=reader.json(layout.metrics("corpus") / "manifest.json", "corpus"),
        task_info=reader.json(layout.metrics("tasks") / "tasks.json", "tasks")["tasks"],
    )


class _Reader:
    """Reads files of one preset; knows which command makes each."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def remedy(self, stage: str, variant: str | None = None, seed: int | None = None) -> str:
        run = "" if variant is None else f" --variant {variant} --seed {seed}"
        return f"make it with `python -m pipelines.{stage} --preset {self.layout.preset}{run}`"

    def json(self, path: Path, stage: str, *run: Any) -> Any:
        self._require(path, stage, *run)
        try:
            return read_json(path)
        except ValueError as error:
            raise UserError(f"{path}: not valid JSON ({error}); {self.remedy(stage, *run)}") from None

    def csv(self, path: Path, stage: str, *run: Any) -> pd.DataFrame:
        self._require(path, stage, *run)
        try:
            frame = pd.read_csv(path)
        except (ValueError, pd.errors.ParserError) as error:
            raise UserError(f"{path}: not a readable table ({error}); {self.remedy(stage, *run)}") from None
        return frame.replace([np.inf, -np.inf], np.nan)

    def summary(self, stage: str, variant: str, seed: int) -> dict[str, Any]:
        return self.json(self.layout.metrics(stage) / f"{variant}-{seed}.json", stage, variant, seed)

    def frames(self, stage: str, suffix: str, pairs: list[tuple[str, int]]) -> pd.DataFrame:
        folder = self.layout.metrics(stage)
        frames = [self.csv(folder / f"{v}-{s}{suffix}", stage, v, s) for v, s in pairs]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()

    def floors(self) -> dict[str, dict[str, Any]]:
        """Summaries of the models without a network, by file name."""
        folder = self.layout.metrics("floor")
        paths = [
            path
            for path in sorted(folder.glob("*.json"), key=lambda path: path.stem)
            if not path.name.endswith("timing.json")
        ]
        if not paths:
            raise UserError(f"{folder}: no summaries of the n-gram floor; {self.remedy('floor')}")
        return {path.stem: self.json(path, "floor") for path in paths}

    def floor_frames(self, floors: dict[str, dict[str, Any]], suffix: str) -> pd.DataFrame:
        folder = self.layout.metrics("floor")
        return pd.concat([self.csv(folder / f"{name}{suffix}", "floor") for name in floors], ignore_index=True)

    def timings(self, pairs: list[tuple[str, int]]) -> Iterator[dict[str, Any]]:
        """What stages noted about their own speed, in ``timing.json`` or, for a run, ``<run>.timing.json``."""
        runs = {f"{variant}-{seed}": (variant, seed) for variant, seed in pairs}
        for path in sorted((self.layout.results / "metrics").glob("*/*timing.json")):
            run = path.name.removesuffix("timing.json").removesuffix(".")
            stage = path.parent.name
            if run in runs:
                variant, seed = runs[run]
                yield {"stage": stage, "variant": variant, "seed": seed, **self.json(path, stage)}
            elif stage not in ("pretrain", "evaluate"):
                yield {"stage": stage, "variant": None, "seed": None, **self.json(path, stage)}

    def _require(self, path: Path, stage: str, *run: Any) -> None:
        if not path.exists():
            raise UserError(f"{path}: no such file; {self.remedy(stage, *run)}")


def _heldout(summaries: list[dict[str, Any]]) -> pd.DataFrame:
    rows = [
        {"variant": s["variant"], "seed": s["seed"], **s["heldout"], "truncated": s["truncated"]} for s in summaries
    ]
    return pd.DataFrame(rows).replace([np.inf, -np.inf], np.nan)


def _resident_first(decode: pd.DataFrame) -> pd.DataFrame:
    ordered = decode.assign(away=decode["tier"] != "resident").sort_values(["away", "tier", "prefetch"], kind="stable")
    return ordered.drop(columns="away").reset_index(drop=True)


def _of(variants: list[str], frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["variant"].isin(variants)].reset_index(drop=True)
