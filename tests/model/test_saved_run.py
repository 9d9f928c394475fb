"""A finished model as a folder."""

import pytest
import torch

from lexmem.allocation import Allocations
from lexmem.model.build import decoder_of_plan
from lexmem.model.module import initialise
from lexmem.model.run import load_run
from lexmem.model.save import save_run
from lexmem.spec.errors import UserError
from lexmem.spec.files import read_json
from lexmem.spec.registry import variant_types


@pytest.mark.parametrize("kind", variant_types())
def test_a_saved_run_computes_the_same_logits_with_nothing_but_its_folder(project, kind):
    made = project(run={"variant": kind})
    layout, plan = made.layout, read_json(made.layout.plan("run"))
    model = decoder_of_plan(plan, Allocations.load(layout.allocation))
    initialise(model, 5)
    path = layout.run("run", 5)
    save_run(path, model, plan, layout.tokens, layout.allocation)
    names = ["codewords.npz", "model.safetensors", "plan.json", "tokenizer.json"]
    assert sorted(file.name for file in path.iterdir()) == names
    (made.root / "data").rename(made.root / "elsewhere")
    run = load_run(path)
    ids = torch.tensor([[1, 7, 7, 250, 999]])
    assert torch.equal(run.model(ids)[0], model.eval()(ids)[0])
    assert run.plan == plan and not run.model.training
    assert run.tokenizer.get_vocab_size() == made.vocab
    assert run.tokenizer.encode_special_tokens, "the literal text of a special token is plain text"


def test_a_folder_without_weights_is_one_clear_line(tmp_path):
    with pytest.raises(UserError, match="no trained model here") as refused:
        load_run(tmp_path)
    assert "\n" not in str(refused.value)
