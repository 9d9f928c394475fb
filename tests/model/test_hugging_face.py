"""Equality with a stranger's code by copied weights: Llama, OLMoE's and Mixtral's sparse blocks."""

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, MixtralConfig, OlmoeConfig
from transformers.models.mixtral.modeling_mixtral import MixtralSparseMoeBlock
from transformers.models.olmoe.modeling_olmoe import OlmoeSparseMoeBlock

from lexmem.model.tokens import Site, TokenIndex

LLAMA = {
    "embedding.weight": "model.embed_tokens.weight",
    "norm.weight": "model.norm.weight",
    "head.weight": "lm_head.weight",
    "attention_norm.weight": "input_layernorm.weight",
    "attention.query.weight": "self_attn.q_proj.weight",
    "attention.key.weight": "self_attn.k_proj.weight",
    "attention.value.weight": "self_attn.v_proj.weight",
    "attention.output.weight": "self_attn.o_proj.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "ffn.gate.weight": "mlp.gate_proj.weight",
    "ffn.up.weight": "mlp.up_proj.weight",
    "ffn.down.weight": "mlp.down_proj.weight",
}


def assert_same_gradient(found, wanted):
    """To 1e-5 of the largest entry: sums over many positions are larger than what they are sums of."""
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5 * max(1.0, wanted.abs().max().item()))


def llama_name(name):
    if not name.startswith("blocks."):
        return LLAMA[name]
    _, layer, rest = name.split(".", 2)
    return f"model.layers.{layer}.{LLAMA[rest]}"


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("tied", [False, True])
def test_dense_is_llama(toy, kv_heads, tied):
    base = toy.base.model_copy(update={"tied": tied, "kv_heads": kv_heads})
    ours = toy.shaken("dense", base)
    config = LlamaConfig(
        vocab_size=toy.vocab,
        hidden_size=base.width,
        intermediate_size=base.ffn_width,
        num_hidden_layers=base.layers,
        num_attention_heads=base.heads,
        num_key_value_heads=kv_heads,
        rms_norm_eps=base.norm_eps,
        rope_theta=base.rope_theta,
        tie_word_embeddings=tied,
    )
    theirs = LlamaForCausalLM(config).eval()
    weights = {llama_name(name): value.detach().clone() for name, value in ours.named_parameters()}
    if tied:
        weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    theirs.load_state_dict(weights, strict=True)
    ids = toy.ids(2, 11)
    logits, expected = ours(ids)[0], theirs(ids).logits
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)
    direction = torch.randn_like(logits)
    logits.backward(direction)
    expected.backward(direction)
    gradients = {name: parameter.grad for name, parameter in theirs.named_parameters()}
    for name, parameter in ours.named_parameters():
        assert_same_gradient(parameter.grad, gradients[llama_name(name)])


def olmoe(renormalise):
    config = OlmoeConfig(
        hidden_size=16, intermediate_size=12, num_experts=5, num_experts_per_tok=2, norm_topk_prob=renormalise
    )
    return OlmoeSparseMoeBlock(config)


def mixtral(renormalise):
    assert renormalise
    config = MixtralConfig(hidden_size=16, intermediate_size=12, num_local_experts=5, num_experts_per_tok=2)
    return MixtralSparseMoeBlock(config)


@pytest.mark.parametrize(("block", "renormalise"), [(olmoe, False), (olmoe, True), (mixtral, True)])
@pytest.mark.parametrize("backend", ["loop", "grouped_mm"])
def test_moe_is_the_sparse_block_of(toy, block, renormalise, backend):
    theirs = block(renormalise)
    ours = toy.shaken("moe", experts=5, top_k=2, renormalise=renormalise, backend=backend).blocks[0].ffn
    # There gate and up stand in one (E, 2 F, D) and products are with transposed matrices.
    weights = {
        "gate.weight": ours.router,
        "experts.gate_up_proj": torch.cat([ours.gate, ours.up], dim=2).transpose(1, 2),
        "experts.down_proj": ours.down.transpose(1, 2),
    }
    theirs.load_state_dict({name: value.detach().clone() for name, value in weights.items()}, strict=True)
    ids = toy.ids(3, 7)
    one = torch.randn(3, 7, 16, requires_grad=True)
    two = one.detach().clone().requires_grad_()
    y, _ = ours(one, Site(TokenIndex(ids), {}, 0, frozenset()))
    expected = theirs(two)
    torch.testing.assert_close(y, expected, rtol=0, atol=1e-5)
    direction = torch.randn_like(y)
    y.backward(direction)
    expected.backward(direction)
    gate_up = theirs.experts.gate_up_proj.grad.transpose(1, 2).chunk(2, dim=2)
    pairs = [
        (one.grad, two.grad),
        (ours.router.grad, theirs.gate.weight.grad),
        (ours.gate.grad, gate_up[0]),
        (ours.up.grad, gate_up[1]),
        (ours.down.grad, theirs.experts.down_proj.grad.transpose(1, 2)),
    ]
    for found, wanted in pairs:
        assert_same_gradient(found, wanted)
