"""The base decoder against a loop over positions and heads."""

import pytest
import reference
import torch


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("kv_heads", [None, 2, 1])
def test_dense_equals_the_loop_with_every_gradient(toy, tied, kv_heads):
    base = toy.base.model_copy(update={"tied": tied, "kv_heads": kv_heads, "rope_theta": 100.0})
    decoder = toy.shaken("dense", base).double()
    ids = toy.ids(1, 6)
    logits, aux = decoder(ids)
    clones = {name: value.detach().clone().requires_grad_() for name, value in decoder.named_parameters()}
    expected = reference.decoder(ids[0].tolist(), clones, 2, 4, kv_heads or 4, 100.0, base.norm_eps)
    # Angles are float32 whatever the type of the weights.
    torch.testing.assert_close(logits[0], expected, rtol=0, atol=1e-5)
    direction = torch.randn_like(expected)
    found = torch.autograd.grad(logits[0], list(decoder.parameters()), direction)
    wanted = torch.autograd.grad(expected, list(clones.values()), direction)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    assert aux.losses == {} and aux.diagnostics == {}


def test_an_untied_head_is_a_parameter_of_its_own_and_a_tied_one_is_none(toy):
    tied = toy.build("dense", toy.base.model_copy(update={"tied": True}))
    assert tied.head_weight is tied.embedding.weight and "head.weight" not in dict(tied.named_parameters())
    untied = toy.build("dense")
    assert untied.head_weight is untied.head.weight and not torch.equal(untied.head_weight, untied.embedding.weight)


def test_matrices_that_write_into_the_stream_start_smaller(toy):
    block = toy.build("dense", toy.base.model_copy(update={"width": 64, "ffn_width": 64, "layers": 8})).blocks[3]
    for small, full in ((block.attention.output, block.attention.query), (block.ffn.down, block.ffn.up)):
        assert small.weight.std().item() / full.weight.std().item() == pytest.approx(1 / 4, rel=0.1)


def test_a_cache_does_not_take_more_than_it_was_made_for(toy):
    decoder = toy.build("dense")
    cache = decoder.new_cache(batch_size=1, max_len=4)
    decoder(toy.ids(1, 4), cache)
    with pytest.raises(ValueError, match="5 tokens do not fit into a cache of 4"):
        decoder(toy.ids(1, 1), cache)
