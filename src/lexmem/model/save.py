"""A trained model as a folder: weights, plan entry, tokenizer, allocation. Nothing else is needed to use it."""

import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from lexmem.model.decoder import Decoder
from lexmem.spec.files import replacing, write_json


def save_run(path: Path, model: Decoder, plan: dict[str, Any], tokens: Path, allocation: Path) -> None:
    """Write a finished model to ``path`` in one rename."""
    with replacing(path) as folder:
        folder.mkdir()
        save_file({name: value.detach().cpu().contiguous() for name, value in model.state_dict().items()},
                  folder / "model.safetensors")  # fmt: skip
        write_json(folder / "plan.json", plan)
        shutil.copy(tokens / "tokenizer.json", folder)
        shutil.copy(allocation / "codewords.npz", folder)
