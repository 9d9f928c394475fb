"""Reading a trained model back."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from tokenizers import Tokenizer

from lexmem.allocation import Allocations
from lexmem.data.tokenizer import load_tokenizer
from lexmem.model.build import decoder_of_plan
from lexmem.model.decoder import Decoder
from lexmem.spec.errors import UserError
from lexmem.spec.files import read_json


@dataclass(frozen=True)
class Run:
    """A trained model in evaluation mode, its plan entry and its tokenizer."""

    model: Decoder
    plan: dict[str, Any]
    tokenizer: Tokenizer


def load_run(path: Path) -> Run:
    """Read a folder that :func:`lexmem.model.save.save_run` wrote.

    Raises:
        UserError: if there is no finished model at ``path``.
    """
    if not (path / "model.safetensors").exists():
        raise UserError(f"{path}: no trained model here; the pretrain stage makes it")
    plan = read_json(path / "plan.json")
    model = decoder_of_plan(plan, Allocations.load(path))
    try:
        model.load_state_dict(load_file(path / "model.safetensors"))
    except (SafetensorError, RuntimeError) as error:
        raise UserError(
            f"{path / 'model.safetensors'} is damaged or of another plan: {' '.join(str(error).split())}"
        ) from None
    return Run(model.eval(), plan, load_tokenizer(path / "tokenizer.json"))
