"""Rows a token from the allocate stage's file, for any method, budget and cap."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from lexmem.allocation import baselines, walk
from lexmem.spec.errors import UserError, nearest
from lexmem.spec.files import replacing

Method = Literal["lzw", "uniform", "frequency"]
METHODS: tuple[Method, ...] = get_args(Method)


@dataclass(frozen=True)
class Allocations:
    """What every allocation is computed from: codewords and token counts of the training prefix.

    Attributes:
        last: last token of each codeword in the algorithm's final order, int32 (codewords,).
        counts: occurrences of each token in the training prefix, int64 (V,).
    """

    last: np.ndarray
    counts: np.ndarray

    @classmethod
    def load(cls, path: Path) -> "Allocations":
        """Read ``codewords.npz`` from ``path``, the file or its folder.

        Raises:
            UserError: if there is none.
        """
        file = path / "codewords.npz" if path.is_dir() else path
        if not file.is_file():
            raise UserError(f"{file}: no such file; run the allocate stage first")
        with np.load(file) as arrays:
            return cls(arrays["last"], arrays["counts"])

    def save(self, path: Path) -> None:
        """Write ``codewords.npz``, the same bytes for the same codewords."""
        with replacing(path) as temporary, temporary.open("wb") as file:
            np.savez(file, last=self.last, counts=self.counts, vocab_size=np.int64(self.vocab_size))

    @property
    def vocab_size(self) -> int:
        return len(self.counts)

    @cached_property
    def by_frequency(self) -> np.ndarray:
        """Token ids from the most to the least frequent, ties by id, int64 (V,)."""
        return np.argsort(-self.counts, kind="stable")

    def rows(self, method: Method, budget: int, cap: int) -> np.ndarray:
        """Rows of each token, int64 (V,): ``1 <= rows <= cap`` and ``rows.sum() == budget``.

        ``lzw`` walks the codewords; ``uniform`` gives every token the same; ``frequency`` follows the counts.
        Where a method has no more to say (codewords run out, every token that occurs is at the cap, or the budget
        is no multiple of V), the rest goes out in rounds of one row a token, most frequent first, ties by id.

        Raises:
            UserError: if ``budget`` is under V or over V x ``cap``, or for an unknown ``method``.
        """
        v = self.vocab_size
        if not v <= budget <= v * cap:
            raise UserError(
                f"a budget of {budget} rows does not fit: {v} tokens of at least 1 and at most cap = {cap} rows "
                f"allow {v} to {v * cap}"
            )
        if method == "lzw":
            rows = walk.from_codewords(self.last, v, budget, cap)
        elif method == "uniform":
            rows = np.full(v, budget // v)
        elif method == "frequency":
            rows = baselines.proportional(self.counts, budget, cap)
        else:
            raise UserError(f"allocation method = {method!r}: {nearest(method, METHODS)}")
        return walk.fill(rows, self.by_frequency, budget, cap)

    def expected_rows(self, rows: np.ndarray) -> float:
        """Mean rows looked up a training token, ``sum_t p(t) rows_t``; the plain mean if nothing was counted."""
        total = self.counts.sum()
        return float(self.counts @ rows / total) if total else float(rows.mean())
