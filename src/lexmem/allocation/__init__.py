"""Which token gets how many lookup rows."""

from lexmem.allocation.allocations import METHODS, Allocations

__all__ = ["METHODS", "Allocations"]
