"""LookupTable: the only way to hold rows that are chosen by a token id."""

from typing import Protocol

import torch.nn.functional as F
from torch import Tensor

from lexmem.model.cost import FLOAT_BYTES, CostContext
from lexmem.model.module import Init, Module

TABLE_INIT = Init(std=0.02)


class Fetch(Protocol):
    """Rows on their way from wherever a table is stored."""

    def get(self) -> Tensor:
        """Wait for the rows ``(n, width)``."""
        ...


class Storage(Protocol):
    """A place where the rows of one table are kept."""

    def fetch(self, rows_n: Tensor) -> Fetch:
        """Start bringing the rows with these indices."""
        ...


class _Resident:
    def __init__(self, rows: Tensor) -> None:
        self._rows = rows

    def get(self) -> Tensor:
        return self._rows


class LookupTable(Module):
    """``(rows, width)`` parameters, of which a token reads ``rows_per_token`` on average.

    In training the rows are a parameter with dense gradients. For inference ``storage`` may be set to another tier;
    the modules that read the table do not know.
    """

    def __init__(self, rows: int, width: int, rows_per_token: float) -> None:
        super().__init__()
        self.rows, self.width, self.rows_per_token = rows, width, rows_per_token
        self.declare("weight", rows, width, init=TABLE_INIT, group="table")
        self.storage: Storage | None = None

    def active(self, context: CostContext) -> float:
        return self.rows_per_token * self.width

    def bytes_gathered(self, context: CostContext) -> float:
        return FLOAT_BYTES * self.rows_per_token * self.width

    def fetch(self, rows_n: Tensor) -> Fetch:
        """Start bringing rows ``(n,)``; ``.get()`` of the answer waits for them: ``(n, width)``."""
        if self.storage is None:
            return _Resident(F.embedding(rows_n, self.weight))
        return self.storage.fetch(rows_n)
