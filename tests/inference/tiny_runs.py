"""Every variant of the registry, tiny and with random weights."""

from pathlib import Path

import numpy as np
import torch

from lexmem.allocation import Allocations
from lexmem.data.tokenizer import train_tokenizer
from lexmem.model.build import decoder_of_plan
from lexmem.model.decoder import Decoder
from lexmem.model.module import initialise
from lexmem.spec.files import write_json
from lexmem.spec.params import AllocateParams, ModelParams
from lexmem.spec.registry import load_variant

VOCAB = 288
EOT = VOCAB - 1
TEXTS = [
    "The ship sailed over the sea and the sailors sang of the ship and the sea.",
    "A sailor who sang was seen by the shore; the shore was seen by the sailor.",
    "Over the sea, over the shore, the singer and the sailor sailed and sang.",
]
MODEL = ModelParams(width=32, layers=4, heads=4, kv_heads=2, ffn_width=48)


def plan_of(variant: str) -> dict:
    return {
        "variant": variant,
        "type": variant,
        "config": load_variant(variant)().model_dump(mode="json"),
        "model": MODEL.model_dump(mode="json"),
        "vocab_size": VOCAB,
        "allocate": AllocateParams(rows_per_token=4.0, cap=16).model_dump(mode="json"),
    }


def make_allocations() -> Allocations:
    rng = np.random.default_rng(0)
    last = np.concatenate([np.arange(VOCAB), rng.zipf(1.5, 4000) % VOCAB])
    return Allocations(last.astype(np.int32), rng.multinomial(10_000, np.full(VOCAB, 1 / VOCAB)))


def make_decoder(variant: str) -> Decoder:
    """As trained: no parameter is left at a start under which a variant would do nothing."""
    torch.set_num_threads(1)
    model = decoder_of_plan(plan_of(variant), make_allocations())
    initialise(model, seed=0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    return model.eval()


def write_inputs(folder: Path) -> None:
    """The tokenizer and the codewords that a run takes along."""
    train_tokenizer(TEXTS, VOCAB).save(str(folder / "tokenizer.json"))
    make_allocations().save(folder / "codewords.npz")


def write_tokens(folder: Path, tokens: int) -> None:
    """Token files of random ids, the same number in each split."""
    folder.mkdir(parents=True)
    for number, split in enumerate(("train", "valid", "test")):
        np.random.default_rng(number).integers(0, VOCAB, tokens).astype("<u2").tofile(folder / f"{split}.bin")
    splits = {split: {"tokens": tokens} for split in ("train", "valid", "test")}
    write_json(folder / "meta.json", {"vocab_size": VOCAB, "eot_id": EOT, "dtype": "<u2", "splits": splits})
