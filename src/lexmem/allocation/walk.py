"""From sorted codewords to rows a token: the second half of Algorithm 1, and what follows when codewords run out."""

import numpy as np


def from_codewords(last: np.ndarray, vocab_size: int, budget: int, cap: int) -> np.ndarray:
    """One row to every token, then one to each codeword's last token unless it is at ``cap``, until ``budget``.

    Args:
        last: last token of each codeword, in order of falling count, (codewords,).
        vocab_size: V.
        budget: total rows, at least V.
        cap: most rows a token.

    Returns:
        int64 (V,), summing to ``budget``, or to less if the codewords run out.
    """
    granted = last[_occurrence(last) < cap - 1][: budget - vocab_size]
    return 1 + np.bincount(granted, minlength=vocab_size)


def fill(rows: np.ndarray, order: np.ndarray, budget: int, cap: int) -> np.ndarray:
    """Give what is left of ``budget`` in rounds: one row a token along ``order``, passing over those at ``cap``.

    Args:
        rows: rows so far, (V,), summing to at most ``budget``.
        order: every token id once, (V,).
        budget: total rows, at most V x ``cap``.
        cap: most rows a token.

    Returns:
        int64 (V,), summing to ``budget``.
    """
    rows = rows.astype(np.int64)
    left = budget - int(rows.sum())
    while left > 0:
        round_ = order[rows[order] < cap][:left]
        rows[round_] += 1
        left -= len(round_)
    return rows


def _occurrence(tokens: np.ndarray) -> np.ndarray:
    """For each position, how often its token occurred before it, int64."""
    order = np.argsort(tokens, kind="stable")
    ordered = tokens[order]
    is_first = np.append(True, ordered[1:] != ordered[:-1])[: len(tokens)]
    starts = np.flatnonzero(is_first)
    run = np.cumsum(is_first) - 1
    occurrence = np.empty(len(tokens), np.int64)
    occurrence[order] = np.arange(len(tokens)) - starts[run]
    return occurrence
