"""Token files of a corpus: memory-mapped ids a split, document borders, the training prefix and its batches."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lexmem.spec.errors import UserError, nearest
from lexmem.spec.files import read_json

CHUNK = 1 << 22  # ids that are widened at a time where a whole split is read


def id_dtype(vocab_size: int) -> np.dtype:
    """Little-endian type on disk: uint16 while every id fits, else uint32."""
    return np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")


@dataclass(frozen=True)
class TokenFiles:
    """A folder written by the tokenize stage. Each document's ids are followed by ``eot_id``."""

    path: Path
    meta: dict[str, Any]

    @classmethod
    def open(cls, path: Path) -> "TokenFiles":
        """Raises:
        UserError: if ``path`` has no ``meta.json``.
        """
        if not (path / "meta.json").is_file():
            raise UserError(f"{path}: no token files; run the tokenize stage first")
        return cls(path, read_json(path / "meta.json"))

    @property
    def vocab_size(self) -> int:
        return self.meta["vocab_size"]

    @property
    def eot_id(self) -> int:
        return self.meta["eot_id"]

    @cached_property
    def token_bytes(self) -> np.ndarray:
        """Bytes of text behind each id, int32 (V,); 0 for end-of-text."""
        return np.load(self.path / "token_bytes.npy")

    def split(self, name: str) -> np.ndarray:
        """All ids of a split, (N,), read-only and mapped from disk."""
        self._known(name)
        path, dtype = self.path / f"{name}.bin", np.dtype(self.meta["dtype"])
        if path.stat().st_size == 0:  # an empty file cannot be mapped
            return np.empty(0, dtype)
        return np.memmap(path, dtype, mode="r")

    def offsets(self, name: str) -> np.ndarray:
        """Start of every document and the end of the last, int64 (documents + 1,)."""
        self._known(name)
        return np.load(self.path / f"{name}.offsets.npy", mmap_mode="r")

    def prefix(self, budget_tokens: int) -> np.ndarray:
        """The training set: the first ``budget_tokens`` ids of train.

        Raises:
            UserError: if train is shorter.
        """
        self.require(budget_tokens, f"budget.tokens = {budget_tokens}")
        return self.split("train")[:budget_tokens]

    def prefix_offsets(self, budget_tokens: int) -> np.ndarray:
        """Document borders of :meth:`prefix`, int64; the last document is cut at ``budget_tokens``."""
        self.require(budget_tokens, f"budget.tokens = {budget_tokens}")
        offsets = self.offsets("train")
        return np.append(offsets[: np.searchsorted(offsets, budget_tokens)], budget_tokens)

    def counts(self, budget_tokens: int) -> np.ndarray:
        """Occurrences of each id in :meth:`prefix`, int64 (V,)."""
        return count_ids(self.prefix(budget_tokens), self.vocab_size)

    def _known(self, name: str) -> None:
        if name not in self.meta["splits"]:
            raise UserError(f"split = {name!r}: {nearest(name, self.meta['splits'])}")

    def require(self, n: int, what: str) -> None:
        """Raises:
        UserError: if train has fewer than ``n`` ids; ``what`` asked for them.
        """
        have = self.meta["splits"]["train"]["tokens"]
        if n > have:
            raise UserError(
                f"{what} needs {n} training tokens, but {self.path} has {have}; lower budget.tokens or add sources"
            )


def count_ids(ids: np.ndarray, vocab_size: int) -> np.ndarray:
    """Occurrences of each id, int64 (V,), in bounded memory."""
    counts = np.zeros(vocab_size, np.int64)
    for start in range(0, len(ids), CHUNK):
        counts += np.bincount(ids[start : start + CHUNK], minlength=vocab_size)
    return counts


class TrainingWindows:
    """Batches of the training set, each a pure function of (seed, step).

    Window ``i`` is the ids ``[i T, i T + T]``: T inputs and their T targets. The windows are the same for every
    seed (the first ``steps x batch_size`` of the prefix); a seed only permutes them. ``len()`` is the number of steps.
    The last window's last target may be the one id after the prefix.

    Args:
        tokens: the token files.
        budget_tokens: length of the training set.
        seq_len: T.
        batch_size: windows a step.
        seed: of the permutation.

    Raises:
        UserError: if the prefix is under one step or train is too short.
    """

    def __init__(self, tokens: TokenFiles, budget_tokens: int, seq_len: int, batch_size: int, seed: int) -> None:
        self._steps = budget_tokens // (seq_len * batch_size)
        self._seq_len, self._batch_size = seq_len, batch_size
        n_windows = self._steps * batch_size
        if n_windows == 0:
            raise UserError(f"budget.tokens = {budget_tokens} is under one step of {batch_size} x {seq_len} tokens")
        tokens.require(max(budget_tokens, n_windows * seq_len + 1), f"budget.tokens = {budget_tokens}")
        self._ids = tokens.split("train")
        self._order = np.random.default_rng(seed).permutation(n_windows)

    def __len__(self) -> int:
        return self._steps

    def batch(self, step: int) -> np.ndarray:
        """Ids of one step, int64 (batch_size, seq_len + 1).

        Raises:
            IndexError: if ``step`` is not in ``[0, len(self))``.
        """
        if not 0 <= step < self._steps:
            raise IndexError(f"step {step} of {self._steps}")
        starts = self._order[step * self._batch_size : (step + 1) * self._batch_size] * self._seq_len
        return _windows(self._ids, starts, self._seq_len)


def heldout_windows(
    tokens: TokenFiles, split: str, seq_len: int, max_tokens: int, batch_size: int
) -> Iterator[np.ndarray]:
    """Consecutive windows of a held-out split, int64 (b, seq_len + 1) with b <= batch_size.

    At most ``max_tokens`` targets, each scored once; a remainder shorter than a window is left out.

    Raises:
        UserError: if not one window fits, before the first batch is asked for.
    """
    ids = tokens.split(split)
    n_windows = min(max_tokens, len(ids) - 1) // seq_len
    if n_windows < 1:
        raise UserError(
            f"{split}: no window of seq_len = {seq_len} fits in min({max_tokens} tokens asked for, {len(ids)} there); "
            "lower seq_len, raise the limit or add text"
        )
    starts = np.arange(n_windows) * seq_len
    return (_windows(ids, starts[i : i + batch_size], seq_len) for i in range(0, n_windows, batch_size))


def _windows(ids: np.ndarray, starts: np.ndarray, seq_len: int) -> np.ndarray:
    return np.stack([ids[start : start + seq_len + 1] for start in starts]).astype(np.int64)
