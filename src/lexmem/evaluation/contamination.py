"""How many evaluation items stand in the training text: an item is contaminated when most of its 13-grams do.

Words are runs of letters and digits, lower-cased (ASCII); bytes of other scripts count as letters. Every 13-gram of
words is a 64-bit hash, computed with numpy over chunks of text, so a corpus of 19 M words takes seconds and little
memory. Grams do not cross documents.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

GRAM = 13  # words, as in the GPT-3 report
CHUNK_BYTES = 4 << 20
FILTER_BITS = 24  # of a hash, that index the filter before the exact search

_FOLD = np.arange(256, dtype=np.uint8)
_FOLD[ord("A") : ord("Z") + 1] += 32
_SEPARATORS = [c for c in range(128) if not chr(c).isalnum()]
_FOLD[_SEPARATORS] = 0

_BYTE_BASE = np.uint64(0x9E3779B97F4A7C15)
_WORD_BASE = np.uint64(0xD1B54A32D192ED03)
_POWERS = np.multiply.accumulate(np.full(64, _BYTE_BASE))  # a word's bytes from the 65th on start again


@dataclass(frozen=True)
class Contamination:
    """Counts for one task.

    ``items`` in all, of which ``short`` have no 13-gram and cannot be judged; ``contaminated`` have more than half of
    their 13-grams in the text.
    """

    items: int
    short: int
    contaminated: int


def contaminated(tasks: Mapping[str, list[str]], texts: Iterable[str]) -> dict[str, Contamination]:
    """Count every task's contaminated items.

    Args:
        tasks: the text of every item, by task.
        texts: documents of the training text; read once.
    """
    grams = {name: gram_hashes(items) for name, items in tasks.items()}
    wanted = np.unique(np.concatenate([hashes for hashes, _ in grams.values()] or [np.empty(0, np.uint64)]))
    found = _occur(wanted, texts)
    return {name: _count(len(tasks[name]), *grams[name], wanted, found) for name in tasks}


def gram_hashes(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """All 13-grams of some texts: hashes, uint64 (G,), and the index of each one's text, int64 (G,)."""
    encoded = [text.encode("utf-8", "replace") for text in texts]
    starts = np.cumsum([0, *(len(part) + 1 for part in encoded)])[:-1]
    folded = _FOLD[np.frombuffer(b"\n".join(encoded), np.uint8)]
    inside = folded > 0
    word_starts = np.flatnonzero(inside & ~np.concatenate(([False], inside[:-1])))
    if len(word_starts) < GRAM:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    words = _word_hashes(folded[inside], np.cumsum(inside)[word_starts] - 1)
    n = len(words) - GRAM + 1
    hashes = words[:n].copy()
    for k in range(1, GRAM):
        hashes *= _WORD_BASE
        hashes += words[k : k + n]
    owner = np.searchsorted(starts, word_starts, side="right") - 1
    whole = owner[:n] == owner[GRAM - 1 :]
    return _mix(hashes[whole]), owner[:n][whole]


def _word_hashes(letters: np.ndarray, first: np.ndarray) -> np.ndarray:
    """Hash of each word; ``first`` is where it begins in ``letters``, the bytes of all words."""
    lengths = np.diff(np.append(first, len(letters)))
    place = np.arange(len(letters)) - np.repeat(first, lengths)
    return _mix(np.add.reduceat(letters.astype(np.uint64) * _POWERS[place % len(_POWERS)], first))


def _mix(values: np.ndarray) -> np.ndarray:
    """Spread each hash over all 64 bits (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _occur(wanted: np.ndarray, texts: Iterable[str]) -> np.ndarray:
    """Which of the sorted hashes occur in the texts, bool (W,)."""
    shift = np.uint64(64 - FILTER_BITS)
    maybe = np.zeros(1 << FILTER_BITS, bool)
    maybe[wanted >> shift] = True
    found = np.zeros(len(wanted), bool)
    for chunk in _chunks(texts):
        hashes, _ = gram_hashes(chunk)
        hashes = hashes[maybe[hashes >> shift]]
        place = np.minimum(np.searchsorted(wanted, hashes), len(wanted) - 1)
        found[place[wanted[place] == hashes]] = True
    return found


def _chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    chunk, size = [], 0
    for text in texts:
        chunk.append(text)
        size += len(text)
        if size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _count(items: int, hashes: np.ndarray, owner: np.ndarray, wanted: np.ndarray, found: np.ndarray) -> Contamination:
    grams = np.bincount(owner, minlength=items)
    hits = np.bincount(owner, weights=found[np.searchsorted(wanted, hashes)], minlength=items)
    return Contamination(items, int(np.sum(grams == 0)), int(np.sum(hits * 2 > grams)))
