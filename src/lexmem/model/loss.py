"""Cross-entropy fused with the head, in chunks of rows: the ``(N, V)`` logits never exist at once.

Gradients of a chunk are made while its logits are at hand, so the backward pass only scales them. Products are in the
type of the states (under autocast: its type); logits, losses and sums over chunks are at least float32.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK_ROWS = 512


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, z_loss: float) -> tuple:
        rows, narrow = hidden_ND.shape[0], hidden_ND.dtype
        wide = torch.promote_types(narrow, torch.float32)
        grad_hidden = torch.empty_like(hidden_ND)
        grad_weight = torch.zeros_like(weight_VD, dtype=wide)
        cross_entropy = hidden_ND.new_zeros((), dtype=wide)
        square_lse = hidden_ND.new_zeros((), dtype=wide)
        for start in range(0, rows, CHUNK_ROWS):
            hidden, targets = hidden_ND[start : start + CHUNK_ROWS], targets_N[start : start + CHUNK_ROWS, None]
            logits = (hidden @ weight_VD.T).to(wide)
            chosen = logits.gather(1, targets)
            top = logits.amax(dim=-1, keepdim=True)
            slope = logits.sub_(top).exp_()  # softmax but for its sum; in place, as the logits are not needed again
            total = slope.sum(dim=-1, keepdim=True)
            lse = top + total.log()
            cross_entropy += (lse - chosen).sum()
            square_lse += lse.square().sum()
            slope *= (1 + 2 * z_loss * lse) / total
            slope.scatter_add_(1, targets, slope.new_full(targets.shape, -1.0))
            slope = slope.to(narrow)
            grad_hidden[start : start + CHUNK_ROWS] = slope @ weight_VD
            if narrow == wide:
                grad_weight.addmm_(slope.T, hidden)
            else:
                grad_weight += slope.T @ hidden
        ctx.save_for_backward(grad_hidden, grad_weight)
        ctx.rows = rows
        mean = cross_entropy / rows
        ctx.mark_non_differentiable(mean)
        return mean + z_loss * square_lse / rows, mean

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> tuple:
        grad_hidden, grad_weight = ctx.saved_tensors
        scale = grad_loss / ctx.rows
        return grad_hidden * scale, (grad_weight * scale).to(grad_hidden.dtype), None, None


def linear_cross_entropy(
    hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, z_loss: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Mean training loss and mean cross-entropy (nats, no gradient) of next-token prediction.

    The loss is ``CE + z_loss * logsumexp(logits)^2`` (PaLM, section 5).
    """
    device = hidden_ND.device.type
    if torch.is_autocast_enabled(device):
        narrow = torch.get_autocast_dtype(device)
        hidden_ND, weight_VD = hidden_ND.to(narrow), weight_VD.to(narrow)
    with torch.autocast(device, enabled=False):
        return _LinearCrossEntropy.apply(hidden_ND, weight_VD, targets_N, z_loss)


@torch.no_grad()
def token_losses(hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Tensor:
    """Cross-entropy (nats, at least float32) of each position ``(N,)``, without gradients."""
    wide = torch.promote_types(hidden_ND.dtype, torch.float32)
    chunks = zip(hidden_ND.split(CHUNK_ROWS), targets_N.split(CHUNK_ROWS), strict=True)
    return torch.cat([F.cross_entropy((h @ weight_VD.T).to(wide), t, reduction="none") for h, t in chunks])
