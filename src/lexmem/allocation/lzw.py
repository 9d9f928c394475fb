"""Codewords of the training text: the parse of L3's Algorithm 1 (Tseng & De Sa 2026, arXiv:2601.21461).

The dictionary starts with every single token, count 0. A line (here: one document, without its end-of-text id) is
cut into phrases: from a token, extend while the phrase is in the dictionary. The first phrase that is not becomes a
codeword of count 1, its prefix (the longest known phrase) counts once more, and the next phrase starts after it, as
in LZ78.

At a line's end a phrase remains. One token alone counts nothing. A longer one is a codeword already, and here the
two listings differ:

========  ==========================================================================================================
faithful  as published: the prefix counts once more and the phrase is written again with count 1, losing its count
fixed     the phrase, whose codeword would be sent, counts once more
========  ==========================================================================================================
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from lexmem.data.tokens import CHUNK
from lexmem.progress import metered

Listing = Literal["fixed", "faithful"]


@dataclass(frozen=True)
class Codewords:
    """A dictionary of phrases in order of discovery; the single tokens by id come first.

    Attributes:
        last: last token of each phrase, int32 (n,).
        prefix: index of the phrase without its last token, int32 (n,); -1 for single tokens.
        counts: int64 (n,).
        full: whether phrases were left out because the dictionary had reached its bound.
    """

    last: np.ndarray
    prefix: np.ndarray
    counts: np.ndarray
    full: bool

    def __len__(self) -> int:
        return len(self.last)

    def sorted_last(self) -> np.ndarray:
        """Last tokens by falling count, ties in order of discovery, int32 (n,)."""
        return self.last[np.argsort(-self.counts, kind="stable")]


class Parser:
    """The parse of a stream of ids, fed in chunks; where the stream is cut changes nothing.

    Memory is bounded: beyond ``max_codewords`` phrases of two tokens or more no phrase is added (it ends there all the
    same, and its prefix still counts). It takes 48 to 80 bytes a codeword allowed for.

    Args:
        vocab_size: V.
        eot_id: ends a line and is in no phrase; it keeps its single-token codeword, of count 0.
        listing: see the module.
        max_codewords: bound of the dictionary, single tokens apart. Half the ids to come is always enough.
    """

    def __init__(self, vocab_size: int, eot_id: int, listing: Listing, max_codewords: int) -> None:
        size = vocab_size + max_codewords
        self._last = np.zeros(size, np.int32)
        self._last[:vocab_size] = np.arange(vocab_size)
        self._prefix = np.full(size, -1, np.int32)
        self._counts = np.zeros(size, np.int64)
        # Open addressing, at most half full: (phrase << 32 | next token, longer phrase) side by side in one cache line.
        self._table = np.full((1 << (2 * max_codewords + 1).bit_length(), 2), -1, np.int64)
        self._state = np.array([vocab_size, _NO_PHRASE, 0], np.int64)  # codewords, the open phrase, full
        self._eot_id = eot_id
        self._faithful = listing == "faithful"
        self._parse = _compiled()

    def feed(self, ids: np.ndarray) -> None:
        """Parse the next ids of the stream, (n,) of any integer type."""
        arrays = (self._last, self._prefix, self._counts, self._table, self._state)
        self._parse(np.array(ids, np.int32), self._eot_id, self._faithful, *arrays)

    def finish(self) -> Codewords:
        """End the last line and return the dictionary."""
        self.feed(np.array([self._eot_id]))
        n, _, full = self._state
        return Codewords(self._last[:n].copy(), self._prefix[:n].copy(), self._counts[:n].copy(), bool(full))


def parse(ids: np.ndarray, vocab_size: int, eot_id: int, listing: Listing, max_codewords: int) -> Codewords:
    """Codewords of a whole stream, (n,), read in chunks; the arguments are :class:`Parser`'s."""
    parser = Parser(vocab_size, eot_id, listing, min(max_codewords, len(ids) // 2))
    with metered("codewords", len(ids) / 1e3, "k tokens") as advance:
        for start in range(0, len(ids), CHUNK):
            chunk = ids[start : start + CHUNK]
            parser.feed(chunk)
            advance(len(chunk) / 1e3)
    return parser.finish()


_NO_PHRASE = -1
_TYPES = "void(i4[::1], i8, b1, i4[::1], i4[::1], i8[::1], i8[:, ::1], i8[::1])"


def _parse(
    ids: np.ndarray,
    eot_id: int,
    faithful: bool,
    last: np.ndarray,
    prefix: np.ndarray,
    counts: np.ndarray,
    table: np.ndarray,
    state: np.ndarray,
) -> None:
    n, phrase = state[0], state[1]
    mask = np.uint64(len(table) - 1)
    for i in range(len(ids)):
        token = np.int64(ids[i])
        if token == eot_id:
            if phrase >= 0 and prefix[phrase] >= 0:
                if faithful:
                    counts[prefix[phrase]] += 1
                    counts[phrase] = 1
                else:
                    counts[phrase] += 1
            phrase = _NO_PHRASE
        elif phrase < 0:
            phrase = token
        else:
            key = phrase << 32 | token
            mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
            slot = (mixed ^ (mixed >> np.uint64(32))) & mask
            while table[slot, 0] >= 0 and table[slot, 0] != key:
                slot = (slot + np.uint64(1)) & mask
            if table[slot, 0] == key:
                phrase = table[slot, 1]
                continue
            counts[phrase] += 1
            if n < len(last):
                table[slot, 0], table[slot, 1] = key, n
                last[n], prefix[n], counts[n] = token, phrase, 1
                n += 1
            else:
                state[2] = 1
            phrase = _NO_PHRASE
    state[0], state[1] = n, phrase


@cache
def _compiled() -> Callable[..., None]:
    """The machine code of the parse for one set of types, kept on disk where some folder for it can be written."""
    import numba  # slow to import, and only the parse needs it

    try:
        return numba.njit(_TYPES, cache=True)(_parse)
    except (RuntimeError, OSError):  # no writable folder
        return numba.njit(_TYPES)(_parse)
