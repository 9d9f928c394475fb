"""A tokenizer and a decoder, both tiny and real, for the tests of this folder."""

import pytest
import torch

from lexmem.evaluation.quiet import silence

silence()

from lexmem.data.tokenizer import train_tokenizer  # noqa: E402
from lexmem.model.decoder import Decoder  # noqa: E402
from lexmem.model.module import initialise  # noqa: E402
from lexmem.spec.params import ModelParams  # noqa: E402

VOCAB = 288
TEXTS = [
    "The ship sailed over the sea and the sailors sang of the ship and the sea.",
    "A sailor who sang was seen by the shore; the shore was seen by the sailor.",
    "Over the sea, over the shore, the singer and the sailor sailed and sang.",
]


@pytest.fixture(scope="session")
def tokenizer():
    return train_tokenizer(TEXTS, VOCAB)


@pytest.fixture(scope="session")
def decoder():
    """Random weights, large enough that predictions differ from one another."""
    params = ModelParams(width=32, layers=2, heads=4, kv_heads=2, ffn_width=48, init_std=0.3)
    model = Decoder(params, VOCAB)
    initialise(model, seed=0)
    torch.set_num_threads(1)
    return model.eval()
