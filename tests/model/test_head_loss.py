"""The fused head and loss against plain autograd, over one chunk of rows and over several."""

import pytest
import reference
import torch
import torch.nn.functional as F

from lexmem.model.loss import CHUNK_ROWS, linear_cross_entropy, token_losses


def head(rows, dtype=torch.float64, vocab=7, width=4):
    torch.manual_seed(rows)
    hidden, weight = torch.randn(rows, width, dtype=dtype), torch.randn(vocab, width, dtype=dtype)
    return hidden.requires_grad_(), weight.requires_grad_(), torch.randint(0, vocab, (rows,))


@pytest.mark.parametrize("rows", [1, 9, CHUNK_ROWS, 2 * CHUNK_ROWS + 3])
@pytest.mark.parametrize("z_loss", [0.0, 0.3])
def test_equals_plain_autograd(rows, z_loss):
    hidden, weight, targets = head(rows)
    logits = hidden @ weight.T
    expected = F.cross_entropy(logits, targets) + z_loss * logits.logsumexp(-1).square().mean()
    loss, cross_entropy = linear_cross_entropy(hidden, weight, targets, z_loss)
    torch.testing.assert_close(loss, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(cross_entropy, F.cross_entropy(logits, targets).detach(), rtol=1e-12, atol=0)
    assert not cross_entropy.requires_grad
    # The loss is one term of several and may be scaled.
    found = torch.autograd.grad(3 * loss + hidden.sum(), (hidden, weight))
    wanted = torch.autograd.grad(3 * expected + hidden.sum(), (hidden, weight))
    torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-13)


def test_equals_the_loop():
    hidden, weight, targets = head(9)
    found = linear_cross_entropy(hidden, weight, targets, 0.1)
    torch.testing.assert_close(found, reference.cross_entropy(hidden, weight, targets, 0.1), rtol=1e-12, atol=0)


def test_large_logits_stay_finite():
    hidden, weight, targets = head(9, torch.float32)
    loss, _ = linear_cross_entropy(1e4 * hidden, weight, targets, 1e-6)
    loss.backward()
    assert loss.isfinite() and hidden.grad.isfinite().all() and weight.grad.isfinite().all()


def test_gradients_reach_a_tied_weight_from_both_uses():
    hidden, weight, targets = head(9)
    loss, _ = linear_cross_entropy(hidden * weight[3], weight, targets)
    plain = F.cross_entropy((hidden * weight[3]) @ weight.T, targets)
    torch.testing.assert_close(torch.autograd.grad(loss, weight), torch.autograd.grad(plain, weight))


@pytest.mark.parametrize("mixed", [True, False])
def test_bfloat16_sums_in_float32(mixed):
    """A mean over thousands of rows in bfloat16 would be right to two digits only."""
    hidden, weight, targets = head(8 * CHUNK_ROWS, torch.float32, vocab=50, width=16)
    exact = F.cross_entropy((hidden.bfloat16() @ weight.bfloat16().T).float(), targets)
    inputs = (hidden, weight) if mixed else (hidden.bfloat16(), weight.bfloat16())
    with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
        loss, cross_entropy = linear_cross_entropy(*inputs, targets)
    loss.backward()
    assert loss.dtype == cross_entropy.dtype == torch.float32
    assert cross_entropy.item() == pytest.approx(exact.item(), rel=1e-5)
    expected = torch.autograd.grad(F.cross_entropy(hidden @ weight.T, targets), weight)[0]
    assert (weight.grad - expected).norm() < 2e-2 * expected.norm()
    assert token_losses(*inputs, targets).dtype == torch.float32


@pytest.mark.parametrize("rows", [1, CHUNK_ROWS, 2 * CHUNK_ROWS + 3])
def test_token_losses_are_those_of_each_position(rows):
    hidden, weight, targets = head(rows)
    losses = token_losses(hidden, weight, targets)
    torch.testing.assert_close(losses, F.cross_entropy(hidden @ weight.T, targets, reduction="none").detach())
    assert losses.shape == (rows,) and not losses.requires_grad
