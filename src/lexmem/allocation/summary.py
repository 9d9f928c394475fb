"""An allocation in figures: a summary a method, and rows by frequency rank for the plot."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from lexmem.allocation.allocations import METHODS, Allocations
from lexmem.spec.files import replacing

MAX_RANKS = 2000  # a method in the frame; log-spaced beyond


def summarise(allocations: Allocations, budget: int, cap: int) -> dict[str, dict[str, Any]]:
    """For each method: rows in all, the most, expected rows a training token, tokens at one row and at the cap."""
    return {
        method: {
            "sum": int(rows.sum()),
            "max": int(rows.max()),
            "expected_rows": allocations.expected_rows(rows),
            "tokens_at_one": int((rows == 1).sum()),
            "tokens_at_cap": int((rows == cap).sum()),
        }
        for method, rows in _all_rows(allocations, budget, cap)
    }


def write_frame(path: Path, allocations: Allocations, budget: int, cap: int) -> None:
    """Write a tidy CSV: method, rank (1: the most frequent token), token (id), count, rows; ranks thinned."""
    ranks = np.unique(np.geomspace(1, allocations.vocab_size, MAX_RANKS).round().astype(np.int64))
    tokens = allocations.by_frequency[ranks - 1]
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        frame = csv.writer(file, lineterminator="\n")
        frame.writerow(["method", "rank", "token", "count", "rows"])
        for method, rows in _all_rows(allocations, budget, cap):
            columns = (ranks, tokens, allocations.counts[tokens], rows[tokens])
            frame.writerows([method, *row] for row in zip(*(column.tolist() for column in columns), strict=True))


def _all_rows(allocations: Allocations, budget: int, cap: int) -> list[tuple[str, np.ndarray]]:
    return [(method, allocations.rows(method, budget, cap)) for method in METHODS]
