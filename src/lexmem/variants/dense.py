"""Dense: the base decoder as it is."""

from typing import ClassVar

from lexmem.model.decoder import Decoder
from lexmem.spec.variant import InstallContext, VariantConfig


class Config(VariantConfig):
    """The baseline has no parameters of its own."""

    title: ClassVar[str] = "Dense"

    def install(self, decoder: Decoder, context: InstallContext) -> None:
        """Nothing to install."""
