"""From a plan entry to a decoder with its variant's modules installed."""

from typing import Any

from lexmem.allocation import Allocations
from lexmem.model.decoder import Decoder
from lexmem.spec.params import AllocateParams, ModelParams
from lexmem.spec.registry import load_variant
from lexmem.spec.variant import InstallContext, VariantConfig


def build_decoder(model: ModelParams, vocab_size: int, config: VariantConfig, context: InstallContext) -> Decoder:
    """The base decoder with a variant's modules installed; parameters are not yet initialised."""
    decoder = Decoder(model, vocab_size)
    config.install(decoder, context)
    return decoder


def decoder_of_plan(plan: dict[str, Any], allocations: Allocations) -> Decoder:
    """Build the decoder that a plan entry describes."""
    where = f"plan of {plan['variant']}"
    config = load_variant(plan["type"]).read(plan["config"], where)
    context = InstallContext(allocations, AllocateParams.read(plan["allocate"], where))
    return build_decoder(ModelParams.read(plan["model"], where), plan["vocab_size"], config, context)
