"""What a module costs a token: FLOPs, parameters by group, bytes gathered from tables."""

from __future__ import annotations

from dataclasses import dataclass, field

FLOAT_BYTES = 4
TRAINING_FACTOR = 3  # forward, and two products of the same size in the backward pass


@dataclass(frozen=True)
class CostContext:
    """What the cost of a token depends on besides the model: attention spans the full square of ``seq_len``."""

    seq_len: int


@dataclass(frozen=True)
class Cost:
    """Forward FLOPs (multiply and add count two), parameters by group, active parameters, gathered bytes; a token."""

    flops_forward: float = 0.0
    params: dict[str, int] = field(default_factory=dict)
    active: float = 0.0
    bytes_gathered: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        groups = self.params | other.params
        return Cost(
            self.flops_forward + other.flops_forward,
            {group: self.params.get(group, 0) + other.params.get(group, 0) for group in groups},
            self.active + other.active,
            self.bytes_gathered + other.bytes_gathered,
        )

    @property
    def flops_training(self) -> float:
        """Training FLOPs a token: three times the forward pass."""
        return TRAINING_FACTOR * self.flops_forward

    @property
    def total(self) -> int:
        """All parameters."""
        return sum(self.params.values())

    @property
    def table_bytes(self) -> int:
        """Bytes of all lookup tables in float32."""
        return FLOAT_BYTES * self.params.get("table", 0)
