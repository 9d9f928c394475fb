"""The benchmark of a study: every trained run, one process, decoding and training speed."""

import copy
import csv
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lexmem.data.tokens import TokenFiles, TrainingWindows, heldout_windows
from lexmem.inference.offload import lookup_tables, offload
from lexmem.inference.speed import relative_speeds, training_rows
from lexmem.inference.timing import Candidate, decode_rows, medians
from lexmem.model.decoder import Decoder
from lexmem.model.run import load_run
from lexmem.progress import metered
from lexmem.spec.errors import UserError
from lexmem.spec.files import replacing, write_json
from lexmem.spec.layout import Layout
from lexmem.spec.params import BenchParams, Preset
from lexmem.spec.timing import machine

SETTING = ["variant", "tier", "prefetch", "batch_size"]


@dataclass(frozen=True)
class Bench:
    """What was measured: rows of ``decode.csv`` and ``training.csv``, and what describes them."""

    decode: list[dict[str, Any]]
    training: list[dict[str, Any]]
    about: dict[str, Any]

    def write(self, folder: Path) -> None:
        """Write ``decode.csv``, ``training.csv`` and ``bench.json``."""
        _write_csv(folder / "decode.csv", self.decode)
        _write_csv(folder / "training.csv", self.training)
        write_json(folder / "bench.json", self.about)


def run_bench(layout: Layout, params: Preset, variants: Sequence[str], seed: int, baseline: str) -> Bench:
    """Time the runs ``<variant>-<seed>`` that have a model; those that diverged are listed in the summary.

    Raises:
        UserError: if a run is missing, or no run has a model.
    """
    bench, tokens = params.bench, TokenFiles.open(layout.tokens)
    device = _device(params.train.accelerator)
    torch.set_num_threads(params.train.threads)
    dtype = torch.bfloat16 if params.train.precision == "bf16-true" else torch.float32
    models, diverged = _load(layout, variants, seed)
    models = {variant: model.to(device, dtype) for variant, model in models.items()}
    texts_NT = _texts(tokens, bench).to(device)
    with ExitStack() as open_tables:
        candidates = list(_candidates(models, layout.scratch / "bench", device, open_tables))
        with metered("decoding", len(candidates) * len(bench.batch_sizes) * bench.repeats, "decodings") as advance:
            decode = decode_rows(candidates, bench.batch_sizes, texts_NT, bench.prompt_tokens, bench.repeats, advance)
        table_bytes = {candidate.variant: candidate.tables.table_bytes for candidate in candidates}
    batches = _batches(tokens, params, seed)
    with metered("training", len(models) * len(batches), "steps") as advance:
        training = training_rows(models, baseline, params.train, batches, advance)
    about = {
        "machine": machine(),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu",
        "threads": params.train.threads,
        "seed": seed,
        "baseline": baseline,
        "diverged": diverged,
        "table_bytes": table_bytes,
        "disk_reads": "page cache dropped after every read",
        "protocol": bench.model_dump(mode="json"),
        "training_relative": relative_speeds(training, baseline),
        "table_update_ms": {key[0]: value for key, value in medians(training, ["variant"], "table_update_ms").items()},
    }
    return Bench(decode, training, about)


def _device(accelerator: str) -> torch.device:
    if accelerator == "cpu" or (accelerator == "auto" and not torch.cuda.is_available()):
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise UserError(f"train.accelerator = {accelerator!r}: this machine has no CUDA device; use cpu or auto")
    return torch.device("cuda")


def _load(layout: Layout, variants: Sequence[str], seed: int) -> tuple[dict[str, Decoder], list[str]]:
    models, diverged = {}, []
    for variant in variants:
        path = layout.run(variant, seed)
        if (path / "plan.json").exists() and not (path / "model.safetensors").exists():
            diverged.append(variant)
        else:
            models[variant] = load_run(path).model
    if not models:
        raise UserError(f"{layout.run('*', seed)}: all of {', '.join(diverged)} diverged; there is nothing to time")
    return models, diverged


def _candidates(
    models: dict[str, Decoder], directory: Path, device: torch.device, open_tables: ExitStack
) -> Iterator[Candidate]:
    """Each model as it is, and, if it has tables, with them in the other tiers, read when used and read ahead."""
    tiers = ("host", "disk") if device.type == "cuda" else ("disk",)
    for variant, model in models.items():
        for tier in tiers if lookup_tables(model) else ():
            moved = copy.deepcopy(model)
            tables = offload(moved, tier, directory, prefetch=True, cold=True)
            open_tables.callback(tables.close)
            for prefetch in (False, True):
                yield Candidate(variant, moved, tables, prefetch)
        resident = open_tables.enter_context(offload(model, "resident", directory, prefetch=False))
        yield Candidate(variant, model, resident, prefetch=False)


def _texts(tokens: TokenFiles, bench: BenchParams) -> Tensor:
    length, texts = bench.prompt_tokens + bench.new_tokens, bench.repeats * max(bench.batch_sizes)
    windows = heldout_windows(tokens, "test", length, texts * length, texts)
    return torch.from_numpy(np.concatenate(list(windows))[:, :length])


def _batches(tokens: TokenFiles, params: Preset, seed: int) -> list[Tensor]:
    budget = params.budget
    windows = TrainingWindows(tokens, budget.tokens, budget.seq_len, budget.batch_size, seed)
    return [torch.from_numpy(windows.batch(step % len(windows))) for step in range(params.bench.train_steps + 1)]


def _write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
