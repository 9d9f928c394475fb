"""What every variant's file declares: a ``Config`` derived from :class:`VariantConfig`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import Field

from lexmem.spec.params import AllocateParams
from lexmem.spec.section import Section

if TYPE_CHECKING:
    from dataclasses import dataclass

    from lexmem.allocation import Allocations
    from lexmem.model.decoder import Decoder
else:
    from dataclasses import dataclass

Quantity = Literal["flops", "total", "table_bytes"]


@dataclass(frozen=True)
class InstallContext:
    """What a variant may read when it puts its modules on a decoder."""

    allocations: Allocations
    allocate: AllocateParams


class VariantConfig(Section):
    """Parameters of a variant, and how to install it on a decoder.

    ``match`` says which quantity equals which other run's; ``knobs`` (of the class) says which integer the planner
    turns to make it so: a field of the base model or of the config itself.
    """

    title: ClassVar[str]
    # Values of the config under which the variant computes exactly what the dense decoder computes.
    degenerate: ClassVar[dict[str, Any]] = {}
    knobs: ClassVar[dict[str, str]] = {"flops": "ffn_width"}
    # Names under which its sites return diagnostics.
    diagnostics: ClassVar[tuple[str, ...]] = ()

    match: dict[Quantity, str] = Field(default={"flops": "dense"})

    def install(self, decoder: Decoder, context: InstallContext) -> None:
        """Put modules on the sites of ``decoder``."""
        raise NotImplementedError
