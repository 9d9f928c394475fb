"""Which forward passes a set of requests needs: inputs merged, common beginnings shared, rows packed into batches.

The choices of a multiple-choice item differ in their last tokens only. Inputs are sorted, so that one that begins
another comes just before it and needs no row of its own (causality), and so that neighbours with a long common
beginning can compute it once, in a key-value cache.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

# Shared beginnings are cut to a multiple of this, so that many rows have one of equal length and fit one batch.
SHARED_STEP = 8

Ids = tuple[int, ...]


class Request(NamedTuple):
    """Score ``continuation`` after ``context``; both have at least one id."""

    context: Ids
    continuation: Ids


@dataclass
class Row:
    """One input of the model; its first ``shared`` ids are also the first of its neighbours.

    ``longest`` is the length of the longest of them. ``reads`` lists ``(request, first)``: the request's continuation
    is predicted at positions ``first`` and on.
    """

    ids: Ids
    shared: int = 0
    longest: int = 0
    reads: list[tuple[int, int]] = field(default_factory=list)

    @property
    def prefix(self) -> Ids:
        return self.ids[: self.shared]

    @property
    def suffix(self) -> Ids:
        """Never empty: at least one id is computed in the row itself."""
        return self.ids[self.shared :]


def make_rows(requests: Sequence[Request]) -> list[Row]:
    """The fewest inputs from which every request can be read."""
    inputs = [request.context + request.continuation[:-1] for request in requests]
    distinct = sorted(set(inputs))
    longest = [ids for ids, after in pairwise([*distinct, ()]) if after[: len(ids)] != ids]
    rows = [Row(ids) for ids in longest]
    for index, (request, ids) in enumerate(zip(requests, inputs, strict=True)):
        # Everything from `ids` up to the last sequence that begins with it is contiguous in the sorted list.
        rows[bisect_left(longest, ids)].reads.append((index, len(request.context) - 1))
    _share(rows)
    return rows


def make_batches(rows: Sequence[Row], batch_tokens: int) -> Iterator[list[Row]]:
    """Rows with equal ``shared``, the longest first; rows x longest is at most ``batch_tokens`` (or one row)."""
    batch: list[Row] = []
    for row in sorted(rows, key=lambda row: (row.shared, row.longest, row.ids), reverse=True):
        full = batch and (len(batch) + 1) * batch[0].longest > batch_tokens
        if full or (batch and batch[0].shared != row.shared):
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch


def _share(rows: list[Row]) -> None:
    """Cut the sorted rows into runs that share a beginning; a row joins a run only if that saves more ids."""
    start, shared = 0, 0
    for index in range(1, len(rows) + 1):
        members = index - start
        common = _common(rows[start].ids, rows[index].ids) if index < len(rows) else 0
        joined = common if members == 1 else min(common, shared)
        if members * joined > (members - 1) * shared:
            shared = joined
            continue
        longest = max(len(row.ids) for row in rows[start:index])
        for row in rows[start:index]:
            row.shared, row.longest = shared, longest
        start, shared = index, 0


def _common(a: Ids, b: Ids) -> int:
    """Ids that both begin with, cut so that each keeps one of its own."""
    limit = min(len(a), len(b)) - 1
    equal = next((i for i in range(limit) if a[i] != b[i]), limit)
    return equal // SHARED_STEP * SHARED_STEP
