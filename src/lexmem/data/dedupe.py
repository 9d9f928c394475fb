"""Duplicate paragraphs and near-duplicate documents.

Words are runs of letters and digits, case folded. A paragraph of at least 13 words that stands word for word in an
earlier document (or earlier in its own) is dropped; so is a document that repeats an earlier one whole. Of what
remains, a document is dropped when at least half of its distinct 13-grams of words stand in earlier documents,
whether those were dropped or not.

Memory: about 8 bytes a paragraph and 30 bytes a word at the peak, beside the texts: 1 GB for 20 M words.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lexmem.data.sources.passages import paragraphs

GRAM = 13
OVERLAP = 0.5
_WORD = re.compile(r"\w+")
_STEP = np.uint64(0x9E3779B97F4A7C15)  # odd: multiplying by it loses no bit of a 64-bit hash


@dataclass(frozen=True)
class Unique:
    """What remains: the kept texts by index, and how many paragraphs each document lost before that."""

    texts: dict[int, str]
    paragraphs_dropped: np.ndarray  # int64 (documents,)


def drop_duplicates(texts: Iterable[str]) -> Unique:
    """Unique documents of ``texts``; of duplicates the first stays."""
    hashes = _WordHashes()
    seen_documents: set[bytes] = set()
    seen_paragraphs: set[bytes] = set()
    kept: dict[int, str] = {}
    lost: list[int] = []
    grams: list[np.ndarray] = []
    for index, text in enumerate(texts):
        whole = _digest(text.encode())
        text, words, dropped = _without_repeats(text, hashes, seen_paragraphs)
        lost.append(dropped)
        if whole not in seen_documents and text.strip():
            kept[index] = text
            grams.append(np.unique(_grams(words)))
        seen_documents.add(whole)
    near = _overlap(grams) >= OVERLAP
    remaining = {index: text for (index, text), repeats in zip(kept.items(), near, strict=True) if not repeats}
    return Unique(remaining, np.array(lost, dtype=np.int64))


class _WordHashes(dict[str, int]):
    """64-bit hashes of words, the same on every machine; each distinct word is hashed once."""

    def __missing__(self, word: str) -> int:
        self[word] = value = int.from_bytes(_digest(word.encode()), "little")
        return value

    def of(self, text: str) -> np.ndarray:
        """uint64 (words,) of a text."""
        words = _WORD.findall(text.lower())
        return np.fromiter(map(self.__getitem__, words), dtype=np.uint64, count=len(words))


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=8).digest()


def _without_repeats(text: str, hashes: _WordHashes, seen: set[bytes]) -> tuple[str, np.ndarray, int]:
    """The text without paragraphs in ``seen`` (which learns the new ones), its words, and how many were dropped."""
    pieces = [*paragraphs(text), ""]
    kept: list[str] = []
    words: list[np.ndarray] = []
    dropped = 0
    for paragraph, border in zip(pieces[::2], pieces[1::2], strict=True):
        found = hashes.of(paragraph)
        if len(found) >= GRAM:
            key = _digest(found.tobytes())
            if key in seen:
                dropped += 1
                continue
            seen.add(key)
        kept.append(paragraph + border)
        words.append(found)
    return ("".join(kept) if dropped else text), np.concatenate(words or [hashes.of("")]), dropped


def _grams(words: np.ndarray) -> np.ndarray:
    """Hashes of all runs of GRAM words: uint64 (max(0, words - GRAM + 1),)."""
    count = len(words) - GRAM + 1
    if count < 1:
        return words[:0]
    hashes = np.zeros(count, dtype=np.uint64)
    for offset in range(GRAM):
        hashes = hashes * _STEP + words[offset : offset + count]
    return hashes


def _overlap(grams: list[np.ndarray]) -> np.ndarray:
    """The share of each document's distinct grams that earlier documents have: float64 (documents,)."""
    sizes = np.array([len(document) for document in grams], dtype=np.int64)
    if not sizes.sum():
        return np.zeros(len(grams))
    hashes = np.concatenate(grams)
    grams.clear()  # the copies are as large as the whole
    order = np.argsort(hashes, kind="stable")  # stable: within a run of equal hashes the earliest document is first
    ordered = hashes[order]
    repeated = np.empty(len(hashes), dtype=bool)
    repeated[order] = np.concatenate([[False], ordered[1:] == ordered[:-1]])
    owners = np.repeat(np.arange(len(sizes)), sizes)
    return np.bincount(owners, weights=repeated, minlength=len(sizes)) / np.maximum(sizes, 1)
