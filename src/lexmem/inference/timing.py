"""How fast models decode: ways of keeping tables, interleaved in one process."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lexmem.inference.decode import next_logits
from lexmem.inference.offload import Offload, Tier
from lexmem.model.decoder import Decoder

WARMUP_TOKENS = 8


@dataclass(frozen=True)
class Candidate:
    """A model whose tables are in one tier, read with or without prefetch."""

    variant: str
    model: Decoder
    tables: Offload
    prefetch: bool

    @property
    def tier(self) -> Tier:
        return self.tables.tier


@dataclass(frozen=True)
class Steps:
    """Latency (seconds) of each step of one decoding, and what its tables cost in all."""

    seconds: list[float]
    stall_seconds: float
    bytes_read: int

    def summary(self, batch_size: int) -> dict[str, float]:
        """Speed over all sequences; latency and stall of a step, which gives every sequence one token; bytes a token
        made (sequences of a batch share the rows of a token they have in common)."""
        p10, p50, p90 = (1e3 * value for value in np.quantile(self.seconds, [0.1, 0.5, 0.9]).tolist())
        steps = len(self.seconds)
        return {
            "tokens_per_second": batch_size * steps / sum(self.seconds),
            "ms_per_token_p50": p50,
            "p10": p10,
            "p90": p90,
            "stall_ms_per_token": 1e3 * self.stall_seconds / steps,
            "bytes_per_token": self.bytes_read / (batch_size * steps),
        }


@torch.inference_mode()
def time_decode(candidate: Candidate, ids_BT: Tensor, prompt_tokens: int) -> Steps:
    """Prefill the first ``prompt_tokens`` ids and time a step for each of the others.

    A step chooses a token as greedy decoding does, but the text's own is fed next: all models meet the same ids.
    """
    model, tables = candidate.model, candidate.tables
    tables.prefetch = candidate.prefetch
    cache = model.new_cache(*ids_BT.shape)
    next_logits(model, ids_BT[:, :prompt_tokens], cache).argmax(dim=-1).tolist()
    tables.meter.reset()
    seconds = []
    for position in range(prompt_tokens, ids_BT.shape[1]):
        started = perf_counter()
        next_logits(model, ids_BT[:, position : position + 1], cache).argmax(dim=-1).tolist()
        seconds.append(perf_counter() - started)
    return Steps(seconds, tables.meter.stall_seconds, tables.meter.bytes_read)


def decode_rows(
    candidates: Sequence[Candidate],
    batch_sizes: Sequence[int],
    texts_NT: Tensor,
    prompt_tokens: int,
    repeats: int,
    advance: Callable[[float], None],
) -> list[dict[str, Any]]:
    """Time every candidate at every batch size, ``repeats`` times after a warm-up.

    Within a repeat all decode the same texts, one setting after the other; each repeat begins with another setting,
    so that a disturbance of the machine falls on all alike.

    Args:
        candidates: what to compare.
        batch_sizes: sequences decoded side by side.
        texts_NT: held-out ids, a text a row, with the prompt in front.
        prompt_tokens: ids prefilled, not timed.
        repeats: how often.
        advance: hears of every timed decoding.
    """
    settings = [(candidate, batch) for candidate in candidates for batch in batch_sizes]
    for candidate, batch in settings:
        time_decode(candidate, _batch(texts_NT, 0, batch)[:, : prompt_tokens + WARMUP_TOKENS], prompt_tokens)
    rows = []
    for repeat in range(repeats):
        first = repeat * len(settings) // repeats
        for candidate, batch in settings[first:] + settings[:first]:
            steps = time_decode(candidate, _batch(texts_NT, repeat, batch), prompt_tokens)
            setting = {"variant": candidate.variant, "tier": candidate.tier, "prefetch": candidate.prefetch}
            rows.append(setting | {"batch_size": batch, "repeat": repeat} | steps.summary(batch))
            advance(1)
    return rows


def _batch(texts_NT: Tensor, repeat: int, batch: int) -> Tensor:
    return texts_NT[torch.arange(repeat * batch, (repeat + 1) * batch) % len(texts_NT)]


def medians(rows: Sequence[dict[str, Any]], by: Sequence[str], value: str) -> dict[tuple, float]:
    """Median of ``value`` over the rows that agree in the columns ``by``."""
    groups: dict[tuple, list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in by), []).append(row[value])
    return {key: statistics.median(values) for key, values in groups.items()}
