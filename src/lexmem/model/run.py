"""A trained model as a folder: weights, plan entry, tokenizer, allocation. Nothing else is needed to use it."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import load_file, save_file

from lexmem.allocation import Allocations
from lexmem.model.decoder import Decoder
from lexmem.spec.errors import UserError
from lexmem.spec.files import read_json, replacing, write_json
from lexmem.spec.params import AllocateParams, ModelParams
from lexmem.spec.registry import load_variant
from lexmem.spec.variant import InstallContext, VariantConfig

if TYPE_CHECKING:
    from tokenizers import Tokenizer


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


@dataclass(frozen=True)
class Run:
    """A trained model in evaluation mode, its plan entry and its tokenizer."""

    model: Decoder
    plan: dict[str, Any]
    tokenizer: Tokenizer


def save_run(path: Path, model: Decoder, plan: dict[str, Any], tokens: Path, allocation: Path) -> None:
    """Write a finished model to ``path`` in one rename."""
    with replacing(path) as folder:
        folder.mkdir()
        save_file({name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()},
                  folder / "model.safetensors")  # fmt: skip
        write_json(folder / "plan.json", plan)
        shutil.copy(tokens / "tokenizer.json", folder)
        shutil.copy(allocation / "codewords.npz", folder)


def load_run(path: Path) -> Run:
    """Read a folder that :func:`save_run` wrote.

    Raises:
        UserError: if there is no finished model at ``path``.
    """
    from lexmem.data.tokenizer import load_tokenizer

    if not (path / "model.safetensors").exists():
        raise UserError(f"{path}: no trained model here; the pretrain stage makes it")
    plan = read_json(path / "plan.json")
    model = decoder_of_plan(plan, Allocations.load(path))
    model.load_state_dict(load_file(path / "model.safetensors"))
    return Run(model.eval(), plan, load_tokenizer(path / "tokenizer.json"))
