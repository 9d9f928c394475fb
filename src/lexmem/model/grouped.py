"""Products grouped by token id: every position with the rows of its own id, over a batch sorted once.

Shapes: N positions, U distinct ids, R rows gathered (ids ascending, each id's rows side by side), G groups of one
bucket, n positions and r rows a group, D and E widths.

Two backends compute the same: ``reference`` walks the ids one by one with exact sizes (what the FLOP ledger counts);
``bucketed`` pads each id's run of positions and rows to powers of two (at most the longest) and multiplies all ids of
one size in a batch.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from lexmem.model.tokens import TokenIndex

Backend = Literal["reference", "bucketed"]


@dataclass(frozen=True)
class Bucket:
    """All ids whose run and rows have the same padded size."""

    positions_Gn: Tensor
    valid_Gn: Tensor
    rows_Gr: Tensor
    used_Gr: Tensor


class Grouping:
    """Which rows (of ``counts_U`` gathered per distinct id) every position of ``tokens`` meets."""

    def __init__(self, tokens: TokenIndex, rows_U: Tensor, backend: Backend) -> None:
        self.tokens, self.rows_U, self.backend = tokens, rows_U, backend

    @cached_property
    def buckets(self) -> list[Bucket]:
        """Buckets of the ``bucketed`` backend."""
        return list(_padded_buckets(self.tokens, self.rows_U, pad=True))

    @cached_property
    def groups(self) -> list[Bucket]:
        """One exact bucket an id, for the ``reference`` backend."""
        return list(_padded_buckets(self.tokens, self.rows_U, pad=False))

    @cached_property
    def parts(self) -> list[Bucket]:
        """The buckets of the chosen backend."""
        return self.groups if self.backend == "reference" else self.buckets

    @cached_property
    def _positions(self) -> Tensor:
        return torch.cat([part.positions_Gn.reshape(-1) for part in self.parts])

    @cached_property
    def _rows(self) -> Tensor:
        return torch.cat([part.rows_Gr.reshape(-1) for part in self.parts])

    @cached_property
    def _back_N(self) -> Tensor:
        valid = torch.cat([part.valid_Gn.reshape(-1) for part in self.parts]).nonzero()[:, 0]
        back = torch.empty_like(self.tokens.flat_N)
        back[self._positions[valid]] = valid
        return back

    def by_position(self, x_ND: Tensor) -> list[Tensor]:
        """``(G, n, D)`` a bucket. One gather for all buckets: its backward pass is one sum."""
        return self._cut(x_ND[self._positions], [part.positions_Gn.shape for part in self.parts])

    def by_row(self, rows_RD: Tensor) -> list[Tensor]:
        """``(G, r, D)`` a bucket."""
        return self._cut(rows_RD[self._rows], [part.rows_Gr.shape for part in self.parts])

    def to_positions(self, parts: list[Tensor]) -> Tensor:
        """Put ``(G, n, D)`` results of all buckets back in the order of positions: ``(N, D)``."""
        return torch.cat([part.flatten(0, 1) for part in parts])[self._back_N]

    @staticmethod
    def _cut(padded: Tensor, shapes: list[torch.Size]) -> list[Tensor]:
        pieces = padded.split([shape.numel() for shape in shapes])
        return [piece.view(*shape, -1) for piece, shape in zip(pieces, shapes, strict=True)]


def mix_rows(weights_NR: Tensor, rows_RD: Tensor, grouping: Grouping) -> Tensor:
    """``y[n] = sum_r weights[n, r] rows_of_id(n)[r]``: a mix of each position's own rows; ``(N, D)``.

    Every id has the same number of rows, the width of ``weights_NR``.
    """
    products = zip(grouping.by_position(weights_NR), grouping.by_row(rows_RD), strict=True)
    return grouping.to_positions([weights @ rows for weights, rows in products])


def attend_rows(
    query_ND: Tensor, keys_RD: Tensor, values_RE: Tensor, grouping: Grouping, want_weights: bool = False
) -> tuple[Tensor, Tensor | None]:
    """``V_t^T softmax(K_t q)`` with each position's own rows: block-diagonal attention; ``(N, E)``.

    With ``want_weights`` also the entropy (nats) of every position's weights ``(N,)``.
    """
    outputs, entropies = [], []
    inputs = zip(
        grouping.parts,
        grouping.by_position(query_ND),
        grouping.by_row(keys_RD),
        grouping.by_row(values_RE),
        strict=True,
    )
    for part, query, keys, values in inputs:
        scores = query @ keys.transpose(1, 2)  # (G, n, r)
        scores = scores.masked_fill(~part.used_Gr[:, None], float("-inf"))
        weights = scores.softmax(dim=-1)
        outputs.append(weights @ values)
        if want_weights:
            entropies.append(torch.special.entr(weights.detach()).sum(-1, keepdim=True))
    entropy = grouping.to_positions(entropies)[:, 0] if want_weights else None
    return grouping.to_positions(outputs), entropy


def _padded_buckets(tokens: TokenIndex, rows_U: Tensor, pad: bool) -> Iterator[Bucket]:
    counts_U = tokens.counts_U
    first_position = counts_U.cumsum(0) - counts_U
    first_row = rows_U.cumsum(0) - rows_U
    if pad:
        sizes_U = torch.stack([_padded(counts_U), _padded(rows_U)], dim=1)
        sizes, bucket_U = torch.unique(sizes_U, dim=0, return_inverse=True)
    else:
        sizes, bucket_U = torch.stack([counts_U, rows_U], dim=1), torch.arange(len(counts_U), device=counts_U.device)
    members = bucket_U.argsort(stable=True).split(torch.bincount(bucket_U, minlength=len(sizes)).tolist())
    for (n, r), ids in zip(sizes.tolist(), members, strict=True):
        step_n = torch.arange(n, device=ids.device)
        step_r = torch.arange(r, device=ids.device)
        # Padding repeats the last position or row; its results are dropped, so it gets no gradient.
        run = torch.minimum(step_n, counts_U[ids, None] - 1) + first_position[ids, None]
        yield Bucket(
            positions_Gn=tokens.order_N[run],
            valid_Gn=step_n < counts_U[ids, None],
            rows_Gr=torch.minimum(step_r, rows_U[ids, None] - 1) + first_row[ids, None],
            used_Gr=step_r < rows_U[ids, None],
        )


def _padded(values: Tensor) -> Tensor:
    """The next power of two, but never more than the largest value: equal values are not padded at all."""
    return torch.minimum(2 ** (values.double().log2().ceil().long()), values.max())
