"""TIDE against its loop, its limits and its routing weights."""

import pytest
import reference
import torch

from lexmem.model.tokens import Site, TokenIndex
from lexmem.variants.tide import MEMORY

# Runs of one id on both sides of every power of two, over the border of two sequences, and ids that come once.
RUNS = [1, 2, 3, 4, 5, 7, 8, 9, 1]


def run_ids(shuffled):
    flat = torch.arange(len(RUNS)).repeat_interleave(torch.tensor(RUNS))
    return (flat[torch.randperm(len(flat))] if shuffled else flat).view(2, -1)


@pytest.mark.parametrize("backend", ["reference", "bucketed"])
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(("gain", "null_bias"), [(True, False), (False, True)])
def test_equals_the_loop_with_every_gradient(toy, backend, shuffled, gain, null_bias):
    decoder = toy.shaken("tide", banks=3, bank_gain=gain, null_bias=null_bias, backend=backend).double()
    banks, router = decoder.memories[MEMORY], decoder.blocks[1].beside[0]
    ids = run_ids(shuffled)
    n = torch.randn(*ids.shape, 16, dtype=torch.float64, requires_grad=True)
    tokens = TokenIndex(ids)
    y, aux = router(n, Site(tokens, {MEMORY: banks.prepare(tokens)}, 1, frozenset()))
    ours = (
        [n, banks.table.weight, router.weight]
        + ([banks.gain] if gain else [])
        + ([router.null_bias] if null_bias else [])
    )
    theirs = [tensor.detach().clone().requires_grad_() for tensor in ours]
    expected = reference.tide(
        theirs[0],
        ids,
        theirs[1].view(toy.vocab, 3, 16).transpose(0, 1),
        theirs[3] if gain else None,
        theirs[2],
        theirs[-1] if null_bias else None,
        toy.base.norm_eps,
    )
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-12)
    direction = torch.randn_like(y)
    torch.testing.assert_close(
        torch.autograd.grad(y, ours, direction),
        torch.autograd.grad(expected, theirs, direction),
        rtol=1e-9,
        atol=1e-12,
    )
    assert aux.losses == {}


def test_float32_gives_the_loop_to_1e_5(toy):
    decoder = toy.shaken("tide", banks=3)
    banks, router = decoder.memories[MEMORY], decoder.blocks[0].beside[0]
    ids = run_ids(shuffled=True)
    n, tokens = torch.randn(*ids.shape, 16), TokenIndex(ids)
    y, _ = router(n, Site(tokens, {MEMORY: banks.prepare(tokens)}, 0, frozenset()))
    tables = banks.table.weight.view(toy.vocab, 3, 16).transpose(0, 1)
    expected = reference.tide(n, ids, tables, banks.gain, router.weight, None, toy.base.norm_eps)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-5)


def test_tends_to_dense_as_the_null_logit_rises(toy):
    dense, tide, ids = toy.shaken("dense"), toy.shaken("tide", banks=4, null_bias=True), toy.ids(2, 9)
    with torch.no_grad():
        own = dict(tide.named_parameters())
        for name, parameter in dense.named_parameters():
            own[name].copy_(parameter)
        expected, distances = dense(ids)[0], []
        for null_bias in (0.0, 5.0, 10.0, 15.0, 40.0):
            for block in tide.blocks:
                block.beside[0].null_bias.fill_(null_bias)
            distances.append((tide(ids)[0] - expected).abs().max().item())
    assert distances == sorted(distances, reverse=True)
    assert distances[0] > 1e-1 and distances[-1] < 1e-5


def test_weights_sum_to_one_and_start_uniform(toy):
    want = frozenset({"null_weight", "bank_weights"})
    _, shaken = toy.shaken("tide", banks=5)(toy.ids(2, 9), want=want)
    _, fresh = toy.build("tide", banks=5)(toy.ids(2, 9), want=want)
    for layer in range(toy.base.layers):
        banks, null = shaken.diagnostics["bank_weights"][layer], shaken.diagnostics["null_weight"][layer]
        assert banks.shape == (18, 5) and null.shape == (18,)
        torch.testing.assert_close(banks.sum(-1) + null, torch.ones(18))
        assert null.std() > 1e-3
        torch.testing.assert_close(fresh.diagnostics["null_weight"][layer], torch.full((18,), 1 / 6))


def test_rows_are_gathered_and_normalised_once_a_forward_pass(toy, monkeypatch):
    decoder, calls = toy.build("tide"), []
    norm = decoder.memories[MEMORY].norm
    monkeypatch.setattr(decoder.memories[MEMORY], "norm", lambda rows: calls.append(rows.shape) or norm(rows))
    decoder(torch.tensor([[4, 4, 7, 4]]))
    assert calls == [(2 * 8, 16)]


def test_no_row_of_another_id_gets_gradient(toy):
    decoder = toy.shaken("tide", banks=2)
    decoder(torch.tensor([[4, 9, 4]]))[0].square().sum().backward()
    moved = decoder.memories[MEMORY].table.weight.grad.any(dim=1).nonzero()[:, 0]
    assert moved.tolist() == [8, 9, 18, 19]
