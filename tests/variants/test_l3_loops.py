"""L3 against its loop in every form, and which rows its gradients may touch."""

import itertools

import numpy as np
import pytest
import reference
import torch

from lexmem.model.tokens import Site, TokenIndex
from lexmem.spec.errors import UserError
from lexmem.spec.params import AllocateParams
from lexmem.spec.registry import load_variant
from lexmem.variants.l3 import Config, LookupLayer, Tables, memory_name

# Rows a token: one, both sides of powers of two, and the cap (9), whose id repeats over the border of the sequences.
ROWS = np.array([1, 2, 3, 4, 5, 9, 1, 8, 7])
RUNS = torch.tensor([3, 1, 2, 4, 5, 17, 1, 8, 9])
FORMS = [
    {"tied": tied, "residual": residual, "query_norm": query, "concat_norm": concat, "scale": scale}
    for (tied, residual), (query, concat, scale) in itertools.product(
        itertools.product([False, True], ["add", "replace"]),
        [(True, False, False), (False, True, True), (True, True, False)],
    )
]


def parts(toy, config, dtype=torch.float64):
    """Tables and one layer with random parameters."""
    tables = Tables(ROWS, 2.0, 16, config).to(dtype)
    layer = LookupLayer(toy.base, 2.0, config).to(dtype)
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in [*tables.parameters(), *layer.parameters()]:
            parameter.normal_(0.2, 0.5)
    return tables, layer


def ours_and_loop(toy, config, ids, dtype=torch.float64):
    """Output and inputs (stream and every parameter) of the module and, cloned, of the loop."""
    tables, layer = parts(toy, config, dtype)
    x = torch.randn(*ids.shape, 16, dtype=dtype, requires_grad=True)
    tokens = TokenIndex(ids)
    y, _ = layer(x, Site(tokens, {memory_name(0): tables.prepare(tokens)}, 0, frozenset()))
    inputs = {"x": x} | dict(tables.named_parameters()) | dict(layer.named_parameters())
    clones = {name: tensor.detach().clone().requires_grad_() for name, tensor in inputs.items()}
    expected = reference.l3(
        clones["x"],
        ids,
        ROWS.tolist(),
        clones["keys.weight"],
        clones["keys.weight" if config.tied else "values.weight"],
        clones["up.weight"],
        clones["up_norm.weight"],
        torch.cat([clones["mix_lookup.weight"], clones["mix_stream.weight"]], dim=1),
        clones["query_norm.weight"] if config.query_norm else None,
        clones["concat_norm.weight"] if config.concat_norm else None,
        16**-0.5 if config.scale else 1.0,
        config.residual == "add",
        toy.base.norm_eps,
        config.up_norm_eps,
    )
    return (y, list(inputs.values())), (expected, list(clones.values()))


@pytest.mark.parametrize("backend", ["reference", "bucketed"])
@pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(str(value) for value in form.values()))
def test_equals_the_loop_with_every_gradient(toy, form, backend):
    ids = torch.arange(len(ROWS)).repeat_interleave(RUNS).view(2, -1)
    assert ids[0, -1] == ids[1, 0] == ROWS.argmax()
    (y, inputs), (expected, clones) = ours_and_loop(toy, Config(**form, backend=backend), ids)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-12)
    direction = torch.randn_like(y)
    torch.testing.assert_close(
        torch.autograd.grad(y, inputs, direction),
        torch.autograd.grad(expected, clones, direction),
        rtol=1e-9,
        atol=1e-11,
    )


@pytest.mark.parametrize(
    "ids",
    [[[5]], [[0]], [[8, 0, 8], [3, 5, 8]], [[6] * 20]],
    ids=["one token at the cap", "one token, one row", "unsorted", "one id of one row"],
)
def test_float32_gives_the_loop_to_1e_5(toy, ids):
    (y, _), (expected, _) = ours_and_loop(toy, Config(), torch.tensor(ids), torch.float32)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-5)


def test_a_one_row_id_has_no_key_gradient(toy):
    tables, layer = parts(toy, Config())
    tokens = TokenIndex(torch.tensor([[0, 5, 0, 6]]))
    y, _ = layer(
        torch.randn(1, 4, 16, dtype=torch.float64),
        Site(tokens, {memory_name(0): tables.prepare(tokens)}, 0, frozenset()),
    )
    y.square().sum().backward()
    first = ROWS.cumsum() - ROWS
    assert not tables.keys.weight.grad[first[[0, 6]]].any()
    assert tables.values.weight.grad[first[[0, 6]]].any(dim=1).all()


@pytest.mark.parametrize("tied", [False, True])
def test_no_row_of_another_id_gets_gradient(toy, tied):
    decoder = toy.shaken("l3", tied=tied)
    decoder(torch.tensor([[1, 30, 1]]))[0].square().sum().backward()
    tables = decoder.memories[memory_name(0)]
    owners = torch.repeat_interleave(torch.arange(toy.vocab), tables.count_V)
    for table in tables.children():
        assert owners[table.weight.grad.any(dim=1)].unique().tolist() in ([1, 30], [1])
    value_table = tables.keys if tied else tables.values
    assert owners[value_table.weight.grad.any(dim=1)].unique().tolist() == [1, 30]


def test_row_attention_is_the_entropy_of_a_position_over_its_own_rows(toy):
    decoder, ids = toy.shaken("l3"), torch.arange(toy.vocab).view(2, -1)
    _, aux = decoder(ids, want=frozenset({"row_attention"}))
    (entropy,) = aux.diagnostics["row_attention"].values()
    count = decoder.memories[memory_name(0)].count_V
    assert not entropy[count == 1].any()
    assert (entropy[count > 1] > 0).all() and (entropy <= count.log() + 1e-5).all()


def test_replace_starts_as_the_identity_and_add_as_nothing(toy):
    dense, ids = toy.build("dense"), toy.ids(2, 9)
    for residual in ("add", "replace"):
        logits, _ = toy.build("l3", residual=residual)(ids)
        torch.testing.assert_close(logits, dense(ids)[0], rtol=0, atol=1e-6)


def test_tables_share_nothing_and_take_their_rows_from_config_or_preset(toy):
    decoder = toy.build("l3", layers=[0, 1])
    assert sorted(decoder.memories) == ["l3_0", "l3_1"]
    for tables in decoder.memories.values():
        assert tables.count_V.sum() == tables.keys.rows == tables.values.rows == 2 * toy.vocab
        assert tables.keys.width == 16 and tables.values.width == 8
    assert not torch.equal(decoder.memories["l3_0"].keys.weight, decoder.memories["l3_1"].keys.weight)
    own = toy.build("l3", rows_per_token=3.0, cap=4, allocation="frequency").memories["l3_0"]
    assert own.count_V.sum() == 3 * toy.vocab and own.count_V.max() == 4


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_the_middle_exists_at_every_depth(toy, depth):
    decoder = toy.build("l3", toy.base.model_copy(update={"layers": depth}))
    assert [layer for layer, block in enumerate(decoder.blocks) if block.between] == [max(0, depth // 2 - 1)]
    assert decoder(toy.ids(1, 4))[0].isfinite().all()


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"layers": [2]}, ["layers = [2]", "blocks 0 to 1"]),
        ({"rows_per_token": 0.5}, ["30 rows", "60"]),
        ({"rows_per_token": 10.0, "cap": 9}, ["600 rows", "540"]),
        ({"layers": [1, 1]}, ["layers", "twice"]),
        ({"mix_std": -0.1}, ["mix_std = -0.1"]),
    ],
)
def test_impossible_configs_are_refused_in_one_line(toy, config, words):
    with pytest.raises(UserError) as refused:
        load_variant("l3").read(config, "configs.l3").install(toy.build("dense"), toy.context)
    assert "\n" not in str(refused.value)
    assert all(word in str(refused.value) for word in words)


def test_a_uniform_allocation_of_one_row_fits(toy):
    context = type(toy.context)(toy.allocations, AllocateParams(rows_per_token=1.0, cap=1))
    decoder = toy.build("dense")
    load_variant("l3")(layers=[0]).install(decoder, context)
    assert (decoder.memories["l3_0"].count_V == 1).all()
