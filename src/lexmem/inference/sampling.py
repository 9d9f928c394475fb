"""How the next token is chosen from logits."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from lexmem.spec.errors import UserError


@dataclass(frozen=True)
class Sampling:
    """Temperature 0 takes the most likely token (greedy); else one is drawn, by a generator seeded with ``seed``.

    ``top_k`` keeps that many of the most likely (0: all); ``top_p`` keeps the fewest most likely whose probabilities
    reach it (nucleus sampling, Holtzman et al. 2020).

    Raises:
        UserError: for a value out of range.
    """

    temperature: float
    top_k: int
    top_p: float
    seed: int

    def __post_init__(self) -> None:
        if not (math.isfinite(self.temperature) and self.temperature >= 0):
            raise UserError(f"temperature = {self.temperature}: must be a number from 0 (greedy) up")
        if self.top_k < 0:
            raise UserError(f"top_k = {self.top_k}: must be 0 (all tokens) or more")
        if not 0 < self.top_p <= 1:
            raise UserError(f"top_p = {self.top_p}: must be above 0 and at most 1 (all tokens)")


GREEDY = Sampling(temperature=0.0, top_k=0, top_p=1.0, seed=0)


def choose(logits_BV: Tensor, sampling: Sampling, generator: torch.Generator) -> Tensor:
    """One id a sequence ``(B,)``."""
    if sampling.temperature == 0:
        return logits_BV.argmax(dim=-1)
    # In float64 and from the maximum down, so that no temperature overflows.
    logits_BV = logits_BV.double()
    scaled_BV = (logits_BV - logits_BV.amax(dim=-1, keepdim=True)) / sampling.temperature
    if sampling.top_k:
        kept = min(sampling.top_k, scaled_BV.shape[-1])
        least_B1 = scaled_BV.topk(kept, dim=-1).values[:, -1:]
        scaled_BV = scaled_BV.masked_fill(scaled_BV < least_B1, -math.inf)
    probs_BV = scaled_BV.softmax(dim=-1)
    if sampling.top_p < 1:
        sorted_BV, order_BV = probs_BV.sort(dim=-1, descending=True, stable=True)
        before_BV = sorted_BV.cumsum(dim=-1) - sorted_BV  # the most likely has nothing before it and is always kept
        probs_BV = probs_BV.scatter(1, order_BV, sorted_BV.masked_fill(before_BV >= sampling.top_p, 0.0))
    return torch.multinomial(probs_BV, 1, generator=generator)[:, 0]
