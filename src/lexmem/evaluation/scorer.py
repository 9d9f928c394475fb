"""What scores text: the one protocol behind the harness and the held-out loss, and the decoder's way of doing it.

Shapes: B rows of a batch, P shared ids, S own ids, D width, N positions, M pairs of a position and a target.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from lexmem.evaluation.batching import Request, Row, make_batches, make_rows
from lexmem.model.decoder import Cache, Decoder

LOGITS_AT_ONCE = 1 << 21  # 8 MiB of float32: the fastest of the powers of two tried on a CPU


class Score(NamedTuple):
    """Sum of ``log p`` (nats) over a continuation, and whether greedy decoding would have written it."""

    log_likelihood: float
    greedy: bool


class Scorer(Protocol):
    """A language model over token ids."""

    max_len: int  # most ids that it reads at a time

    def score(self, requests: Sequence[Request], advance: Callable[[int], None]) -> list[Score]:
        """Score requests of at most ``max_len`` input ids, in their order; ``advance`` hears how many are done."""
        ...

    def token_losses(self, windows: np.ndarray) -> np.ndarray:
        """``-log p`` in nats, float64 (B, T), of ids 1..T of each window given those before it; int64 (B, T + 1)."""
        ...

    def greedy(self, context: Sequence[int]) -> Iterator[int]:
        """The most likely ids after ``context``, one by one, until ``max_len`` ids have been read."""
        ...


class DecoderScorer:
    """Scores with a :class:`Decoder`; the head runs only at positions that some request reads.

    Args:
        model: in eval mode.
        max_len: the length it was trained at.
        batch_tokens: bound on ids in a forward pass.
    """

    def __init__(self, model: Decoder, max_len: int, batch_tokens: int) -> None:
        self.model, self.max_len, self.batch_tokens = model, max_len, batch_tokens
        self.device = next(model.parameters()).device

    @torch.inference_mode()
    def score(self, requests: Sequence[Request], advance: Callable[[int], None]) -> list[Score]:
        scores: dict[int, Score] = {}
        for batch in make_batches(make_rows(requests), self.batch_tokens):
            before = len(scores)
            scores.update(self._score_batch(batch, requests))
            advance(len(scores) - before)
        return [scores[index] for index in range(len(requests))]

    @torch.inference_mode()
    def token_losses(self, windows: np.ndarray) -> np.ndarray:
        ids = torch.from_numpy(windows).to(self.device)
        hidden, _ = self.model.hidden(ids[:, :-1])
        targets = ids[:, 1:].reshape(-1)
        log_p, _ = self._read(hidden.flatten(0, 1), torch.arange(len(targets), device=self.device), targets)
        return -log_p.double().cpu().numpy().reshape(len(windows), -1)

    @torch.inference_mode()
    def greedy(self, context: Sequence[int]) -> Iterator[int]:
        cache = self.model.new_cache(1, self.max_len)
        ids = torch.tensor([list(context)], device=self.device)
        while cache.length + ids.shape[1] <= self.max_len:
            hidden, _ = self.model.hidden(ids, cache)
            ids = self.model.logits(hidden[:, -1:]).argmax(-1)
            yield int(ids)

    def _score_batch(self, rows: list[Row], requests: Sequence[Request]) -> dict[int, Score]:
        prefixes = {prefix: number for number, prefix in enumerate(dict.fromkeys(row.prefix for row in rows))}
        prefix_B = [prefixes[row.prefix] for row in rows]
        shared = rows[0].shared
        states, cache = [], None
        if shared:
            hidden, cache = self._shared(list(prefixes), prefix_B, max(len(row.ids) for row in rows))
            states.append(hidden.flatten(0, 1))
        suffix = pad_sequence([torch.tensor(row.suffix) for row in rows], batch_first=True).to(self.device)
        hidden, _ = self.model.hidden(suffix, cache)  # what follows a row's end is padding that nothing reads
        states.append(hidden.flatten(0, 1))

        own = len(prefixes) * shared  # where the rows' own states begin in the concatenation
        positions, targets, lengths, order = [], [], [], []
        for number, row in enumerate(rows):
            for index, first in row.reads:
                continuation = requests[index].continuation
                at = np.arange(first, first + len(continuation))
                inside = own + number * suffix.shape[1] + at - shared
                positions.append(np.where(at < shared, prefix_B[number] * shared + at, inside))
                targets.extend(continuation)
                lengths.append(len(continuation))
                order.append(index)
        position_M = torch.from_numpy(np.concatenate(positions)).to(self.device)
        log_p, greedy = self._read(torch.cat(states), position_M, torch.tensor(targets, device=self.device))
        starts = np.cumsum([0, *lengths[:-1]])
        sums = np.add.reduceat(log_p.double().cpu().numpy(), starts)
        whole = np.logical_and.reduceat(greedy.cpu().numpy(), starts)
        return {index: Score(float(a), bool(b)) for index, a, b in zip(order, sums, whole, strict=True)}

    def _shared(self, prefixes: list[tuple[int, ...]], prefix_B: list[int], longest: int) -> tuple[Tensor, Cache]:
        """States (prefixes, P, D) of the shared ids, and a cache in which each of the B rows has read its own."""
        ids = torch.tensor(prefixes, device=self.device)
        short = self.model.new_cache(*ids.shape)
        hidden, _ = self.model.hidden(ids, short)
        cache = self.model.new_cache(len(prefix_B), longest)
        rows = torch.tensor(prefix_B, device=self.device)
        for layer, filled in zip(cache.layers, short.layers, strict=True):
            layer.append(0, filled.keys[rows], filled.values[rows])
        cache.length = short.length
        return hidden, cache

    def _read(self, hidden_ND: Tensor, position_M: Tensor, target_M: Tensor) -> tuple[Tensor, Tensor]:
        """``log p`` of each target and whether no id is likelier; each position's logits are made once."""
        needed, place_M = torch.unique(position_M, return_inverse=True)
        place_M, order_M = torch.sort(place_M)
        log_p = hidden_ND.new_empty(len(target_M), dtype=torch.float32)
        greedy = torch.empty(len(target_M), dtype=torch.bool, device=self.device)
        chunk = max(1, LOGITS_AT_ONCE // self.model.vocab_size)
        for start in range(0, len(needed), chunk):
            logits = self.model.logits(hidden_ND[needed[start : start + chunk]]).float()
            ends = torch.tensor([start, start + len(logits)], device=self.device)
            low, high = torch.searchsorted(place_M, ends).tolist()
            pairs, at = order_M[low:high], place_M[low:high] - start
            target = target_M[pairs]
            chosen, top = logits[at, target], logits.amax(-1)
            # log-sum-exp by hand: in place it takes half the time, and amax a quarter of argmax's.
            log_z = top + logits.sub_(top[:, None]).exp_().sum(-1).log()
            log_p[pairs] = chosen - log_z[at]
            greedy[pairs] = chosen == top[at]
        return log_p, greedy
