"""Cross-entropy fused with the head, in chunks of rows: the ``(N, V)`` logits never exist at once.

Gradients of a chunk are made while its logits are at hand, so the backward pass only scales them.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

CHUNK_ROWS = 512


class _LinearCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, z_loss: float) -> tuple:
        rows = hidden_ND.shape[0]
        grad_hidden = torch.empty_like(hidden_ND)
        grad_weight = torch.zeros_like(weight_VD)
        cross_entropy = hidden_ND.new_zeros(())
        square_lse = hidden_ND.new_zeros(())
        for start in range(0, rows, CHUNK_ROWS):
            hidden, targets = hidden_ND[start : start + CHUNK_ROWS], targets_N[start : start + CHUNK_ROWS, None]
            logits = hidden @ weight_VD.T
            lse = torch.logsumexp(logits, dim=-1, keepdim=True)
            cross_entropy += (lse - logits.gather(1, targets)).sum()
            square_lse += lse.square().sum()
            slope = logits.sub_(lse).exp_()  # softmax; in place, as the logits are not needed again
            if z_loss:
                slope *= 1 + 2 * z_loss * lse
            slope.scatter_add_(1, targets, slope.new_full(targets.shape, -1.0))
            grad_hidden[start : start + CHUNK_ROWS] = slope @ weight_VD
            grad_weight.addmm_(slope.T, hidden)
        ctx.save_for_backward(grad_hidden, grad_weight)
        ctx.rows = rows
        mean = cross_entropy / rows
        ctx.mark_non_differentiable(mean)
        return mean + z_loss * square_lse / rows, mean

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor, _: Tensor) -> tuple:
        grad_hidden, grad_weight = ctx.saved_tensors
        scale = grad_loss / ctx.rows
        return grad_hidden * scale, grad_weight * scale, None, None


def linear_cross_entropy(
    hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor, z_loss: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Mean training loss and mean cross-entropy (nats, no gradient) of next-token prediction.

    The loss is ``CE + z_loss * logsumexp(logits)^2`` (PaLM, section 5).
    """
    return _LinearCrossEntropy.apply(hidden_ND, weight_VD, targets_N, z_loss)


@torch.no_grad()
def token_losses(hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Tensor:
    """Cross-entropy (nats) of each position ``(N,)``, without gradients."""
    chunks = zip(hidden_ND.split(CHUNK_ROWS), targets_N.split(CHUNK_ROWS), strict=True)
    return torch.cat([F.cross_entropy(h @ weight_VD.T, t, reduction="none") for h, t in chunks])
