"""The allocation table's figures and the thinned frame of the plot."""

import numpy as np
import pandas as pd

from lexmem.allocation import METHODS, Allocations
from lexmem.allocation.summary import MAX_RANKS, summarise, write_frame


def zipf_allocations(vocab: int) -> Allocations:
    counts = (1e6 / np.arange(1, vocab + 1)).astype(np.int64)
    rng = np.random.default_rng(0)
    order = rng.permutation(vocab)
    return Allocations(
        rng.choice(order, vocab * 3, p=counts / counts.sum()).astype(np.int32), counts[np.argsort(order)]
    )


def test_summary_figures():
    allocations = zipf_allocations(500)
    summary = summarise(allocations, budget=1000, cap=16)
    assert list(summary) == list(METHODS)
    for method, figures in summary.items():
        rows = allocations.rows(method, 1000, 16)
        assert figures["sum"] == 1000 and figures["max"] == rows.max() <= 16
        assert figures["tokens_at_one"] == (rows == 1).sum() and figures["tokens_at_cap"] == (rows == 16).sum()
    assert summary["uniform"]["expected_rows"] == 2 < summary["lzw"]["expected_rows"]


def test_frame_lists_every_rank_of_a_small_vocabulary_and_thins_a_large_one(tmp_path):
    for vocab in (100, 20_000):
        allocations = zipf_allocations(vocab)
        write_frame(tmp_path / "allocation.csv", allocations, vocab * 2, 16)
        frame = pd.read_csv(tmp_path / "allocation.csv")
        assert frame.columns.tolist() == ["method", "rank", "token", "count", "rows"]
        for method, part in frame.groupby("method"):
            assert part["rank"].is_monotonic_increasing and part["rank"].is_unique
            assert part["rank"].iloc[0] == 1 and part["rank"].iloc[-1] == vocab
            assert part["count"].is_monotonic_decreasing
            assert len(part) == vocab if vocab == 100 else 500 < len(part) <= MAX_RANKS
            assert part["rows"].tolist() == allocations.rows(method, vocab * 2, 16)[part["token"]].tolist()
