"""TokenIndex: a batch of ids sorted once, for every lookup and grouped product of a forward pass."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


class TokenIndex:
    """Ids ``(B, T)`` with, computed when first asked for, their sort order, unique ids and runs.

    ``N = B T`` positions are flattened row by row; ``U`` ids are distinct. The batch sorting of the L3 paper.
    """

    def __init__(self, ids_BT: Tensor) -> None:
        self.ids_BT = ids_BT
        self.flat_N = ids_BT.reshape(-1)

    @cached_property
    def _sorted(self) -> tuple[Tensor, Tensor]:
        return torch.sort(self.flat_N, stable=True)

    @property
    def order_N(self) -> Tensor:
        """Positions in the order of their ids (stable)."""
        return self._sorted[1]

    @cached_property
    def _runs(self) -> tuple[Tensor, Tensor]:
        return torch.unique_consecutive(self._sorted[0], return_counts=True)

    @property
    def unique_U(self) -> Tensor:
        """Distinct ids, ascending."""
        return self._runs[0]

    @property
    def counts_U(self) -> Tensor:
        """Positions of each distinct id: the lengths of the runs."""
        return self._runs[1]

    @cached_property
    def inverse_N(self) -> Tensor:
        """Index into ``unique_U`` of each position."""
        inverse = torch.empty_like(self.order_N)
        inverse[self.order_N] = torch.repeat_interleave(self.counts_U)
        return inverse


@dataclass(frozen=True)
class Site:
    """Where a module acts in this forward pass: the batch, what was prepared before the first block, the layer."""

    tokens: TokenIndex
    memory: dict[str, object]
    layer: int
    want: frozenset[str]
