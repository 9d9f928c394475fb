"""MoE against its loop with each backend, its losses, and the routings that must be refused."""

import importlib.util

import pytest
import reference
import torch

from lexmem.model.experts import BACKENDS, loop_ffn
from lexmem.model.tokens import Site, TokenIndex
from lexmem.spec.errors import UserError
from lexmem.variants.moe import Config

NAMES = ("router", "gate", "up", "down")


def layer_of(toy, **config):
    return toy.shaken("moe", **config).blocks[0].ffn


def apply(layer, n, want=frozenset()):
    """Run one layer on positions ``(N, D)``."""
    tokens = TokenIndex(torch.zeros(1, len(n), dtype=torch.long))
    y, aux = layer(n[None], Site(tokens, {}, 0, want))
    return y[0], aux


@pytest.mark.parametrize("backend", ["loop", "grouped_mm"])
@pytest.mark.parametrize(
    ("experts", "top_k", "renormalise"), [(5, 2, False), (5, 2, True), (4, 1, False), (3, 3, False), (3, 3, True)]
)
def test_equals_the_loop_with_every_gradient(toy, backend, experts, top_k, renormalise):
    config = {"experts": experts, "top_k": top_k, "renormalise": renormalise, "backend": backend}
    layer = layer_of(toy, **config, balance_loss=0.5, router_z_loss=0.25)
    n = torch.randn(23, 16, requires_grad=True)
    y, aux = apply(layer, n)
    ours = [n, *(getattr(layer, name) for name in NAMES)]
    theirs = [tensor.detach().double().requires_grad_() for tensor in ours]
    expected, balance, z = reference.moe(*theirs, top_k, renormalise)
    layers = toy.base.layers
    losses = {"balance": 0.5 / layers * balance, "router_z": 0.25 / layers * z}
    torch.testing.assert_close(y.double(), expected, rtol=0, atol=1e-5)
    assert aux.losses.keys() == losses.keys()
    for name, value in losses.items():
        assert aux.losses[name].item() == pytest.approx(value.item(), rel=1e-5)
    direction = torch.randn_like(y)
    found = torch.autograd.grad([y, *aux.losses.values()], ours, [direction, None, None])
    wanted = torch.autograd.grad([expected, *losses.values()], theirs, [direction.double(), None, None])
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-5)


def test_all_experts_chosen_equal_the_dense_mixture(toy):
    layer, n = layer_of(toy, experts=4, top_k=4), torch.randn(9, 16)
    weights = (n @ layer.router.T).softmax(-1)
    hidden = torch.einsum("nd,edf->enf", n, layer.gate), torch.einsum("nd,edf->enf", n, layer.up)
    each = torch.einsum("enf,efd->end", torch.nn.functional.silu(hidden[0]) * hidden[1], layer.down)
    torch.testing.assert_close(apply(layer, n)[0], torch.einsum("ne,end->nd", weights, each), rtol=0, atol=1e-5)


@pytest.mark.parametrize("backend", ["loop", "grouped_mm"])
def test_experts_that_no_token_chooses_have_zero_gradient(toy, backend):
    layer = layer_of(toy, experts=6, top_k=1, backend=backend)
    want = frozenset({"expert_choice"})
    y, aux = apply(layer, torch.randn(2, 16), want)
    chosen = aux.diagnostics["expert_choice"][0].unique()
    (y * torch.randn_like(y)).sum().backward()
    for name in NAMES[1:]:
        gradient = getattr(layer, name).grad
        assert gradient.isfinite().all()
        assert gradient.flatten(1).any(dim=1).nonzero()[:, 0].tolist() == chosen.tolist()


def test_nothing_is_dropped_however_skewed_the_routing(toy):
    layer = layer_of(toy, experts=4, top_k=2)
    with torch.no_grad():
        layer.router[:2] += 50 * torch.ones(16)  # every position of positive sum chooses the first two
    n = torch.rand(37, 16)
    y, aux = apply(layer, n, frozenset({"expert_choice", "router_probabilities"}))
    choice, probs = aux.diagnostics["expert_choice"][0], aux.diagnostics["router_probabilities"][0]
    assert torch.bincount(choice.flatten(), minlength=4).tolist() == [37, 37, 0, 0]
    assert probs.shape == (37, 4)
    assert y.any(dim=1).all()


def test_the_loss_of_a_balanced_router_is_one_whatever_top_k_is(toy):
    """Hugging Face's function gives top_k here, as its shares sum to top_k; Switch's and ours sum to one."""
    from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

    for top_k in (1, 2, 4):
        layer = layer_of(toy, experts=4, top_k=top_k, balance_loss=1.0)
        n = torch.eye(16)[:4].repeat(5, 1)
        with torch.no_grad():
            # Position i prefers experts i, i + 1, ..: each is chosen equally often, and probabilities average to 1/4.
            order = torch.stack([torch.arange(4).roll(i) for i in range(4)])
            layer.router.zero_()[:, :4] = -order.float().T
        _, aux = apply(layer, n)
        assert aux.losses["balance"].item() * toy.base.layers == pytest.approx(1.0, abs=1e-5)
        theirs = load_balancing_loss_func((n @ layer.router.T,), num_experts=4, top_k=top_k)
        assert theirs.item() == pytest.approx(top_k, abs=1e-5)


def test_router_works_in_float32_under_mixed_precision(toy):
    layer, n = layer_of(toy), torch.randn(50, 16)
    want = frozenset({"router_probabilities"})
    exact = apply(layer, n, want)[1].diagnostics["router_probabilities"][0]
    with torch.autocast("cpu", torch.bfloat16):
        mixed = apply(layer, n, want)[1].diagnostics["router_probabilities"][0]
    assert torch.equal(mixed, exact)


def test_selection_bias_moves_towards_balance_and_weighs_nothing(toy):
    layer = layer_of(toy, experts=4, top_k=2, bias_rate=0.01, balance_loss=0.0)
    n = torch.randn(40, 16)
    want = frozenset({"expert_choice"})
    y, aux = apply(layer, n, want)
    assert not layer.bias.any(), "evaluation does not move it"
    counts = torch.bincount(aux.diagnostics["expert_choice"][0].flatten(), minlength=4)
    apply(layer.train(), n)
    torch.testing.assert_close(layer.bias, 0.01 * torch.sign(20.0 - counts))
    layer.eval()
    layer.bias.fill_(7.0)  # the same for all: the choice and the weights stay
    torch.testing.assert_close(apply(layer, n)[0], y)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"experts": 2, "top_k": 3}, "top_k = 3 exceeds experts = 2"),
        ({"top_k": 1, "renormalise": True}, "gives the router no gradient"),
        ({"backend": "grouped"}, "backend = 'grouped'"),
    ],
)
def test_impossible_routing_is_refused_in_one_line(config, words):
    with pytest.raises(UserError, match=words) as refused:
        Config.read(config, "configs.moe")
    assert "\n" not in str(refused.value)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("backend", ["grouped_mm", "megablocks"])
def test_cuda_backends_in_bfloat16_equal_the_loop(backend):
    if backend == "megablocks" and not importlib.util.find_spec("megablocks"):
        pytest.skip("needs megablocks (requirements-megablocks.txt)")
    torch.manual_seed(0)
    sizes = torch.tensor([5, 0, 130, 64], device="cuda")
    shapes = ((199, 64), (4, 64, 128), (4, 64, 128), (4, 128, 64))
    tensors = [(0.3 * torch.randn(*shape, device="cuda")).bfloat16().requires_grad_() for shape in shapes]
    results = []
    for grouped_ffn, inputs in ((BACKENDS[backend], tensors), (loop_ffn, [t.detach().float() for t in tensors])):
        inputs = [tensor.requires_grad_() for tensor in inputs]
        y = grouped_ffn(inputs[0], sizes, *inputs[1:])
        gradients = torch.autograd.grad((y.float() * y.float().detach().cos()).sum(), inputs)
        results.append([y.float(), *(gradient.float() for gradient in gradients)])
    for one, other in zip(*results, strict=True):
        assert (one - other).norm() <= 2e-2 * other.norm()
    assert not results[0][2][1].any(), "an expert without tokens"
