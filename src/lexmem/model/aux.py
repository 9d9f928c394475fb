"""What a forward pass returns beside its output."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Aux:
    """Auxiliary losses (weighted, summed over layers) and diagnostics (name -> layer -> tensor)."""

    losses: dict[str, Tensor] = field(default_factory=dict)
    diagnostics: dict[str, dict[int, Tensor]] = field(default_factory=dict)

    def __add__(self, other: Aux) -> Aux:
        losses = dict(self.losses)
        for name, value in other.losses.items():
            losses[name] = losses[name] + value if name in losses else value
        names = self.diagnostics | other.diagnostics
        diagnostics = {name: self.diagnostics.get(name, {}) | other.diagnostics.get(name, {}) for name in names}
        return Aux(losses, diagnostics)


NOTHING = Aux()
