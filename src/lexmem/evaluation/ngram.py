"""Interpolated modified Kneser-Ney n-grams over token ids: the floor of every table.

Chen & Goodman (1998), "An Empirical Study of Smoothing Techniques for Language Modeling", section 3: three discounts an
order, estimated from counts of counts; below the highest order an n-gram counts its distinct left neighbours. The
lowest order is interpolated with the uniform distribution, so every id has a probability above zero.

The stream is read as a ring, so that each n-gram has a left and a right neighbour, and each order's n-grams are exactly
the next order's contexts. Everything is a sorted array: an n-gram is one integer in base V + 1, whose digit V means
"nothing here" and is never seen.

Shapes: G n-grams of an order, N queries, K = order - 1 ids of context, W windows of T + 1 ids.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lexmem.evaluation.batching import Request
from lexmem.evaluation.scorer import Score
from lexmem.spec.errors import UserError

ORDER = 4
AT_ONCE = 1 << 20  # queries


@dataclass(frozen=True)
class Level:
    """The n-grams of one length, each also a context of the next length.

    Attributes:
        keys: uint64 (G,), ascending.
        probability: of the last id after the others, float64 (G,).
        backoff: weight of the shorter context's distribution after this n-gram, float64 (G,); empty at the top.
        likeliest: the most probable id after this n-gram, (G,); empty at the top.
    """

    keys: np.ndarray
    probability: np.ndarray
    backoff: np.ndarray
    likeliest: np.ndarray


class NgramModel:
    """``p(id | up to order - 1 ids before it)``.

    Args:
        ids: the training stream, (N,).
        vocab_size: V.
        order: longest n-gram.

    Raises:
        UserError: if the stream is shorter than an n-gram, or the vocabulary too large for 64-bit keys.
    """

    def __init__(self, ids: np.ndarray, vocab_size: int, order: int = ORDER) -> None:
        if len(ids) < order:
            raise UserError(f"an n-gram model of order {order} needs at least {order} training tokens, got {len(ids)}")
        if (vocab_size + 1) ** order > 2**64:
            raise UserError(
                f"tokenizer.vocab_size = {vocab_size}: n-grams of order {order} are packed into 64 bits, which holds "
                f"vocabularies of at most {int(2 ** (64 / order)) - 1}"
            )
        self.vocab_size, self.order = vocab_size, order
        self._base = np.uint64(vocab_size + 1)
        self.levels: list[Level] = []
        self._estimate(*self._count(ids))

    def _count(self, ids: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray], list[np.ndarray]]:
        """Keys, adjusted counts and, for n > 1, the place of each n-gram's suffix one level down; shortest first."""
        ring = np.concatenate([ids[len(ids) - self.order + 1 :], ids])
        grams = np.zeros(len(ids), np.uint64)
        for offset in range(self.order):
            grams *= self._base
            grams += ring[offset : offset + len(ids)].astype(np.uint64)
        grams.sort()
        starts = _run_starts(grams)
        counts = [_run_lengths(starts, len(grams))]
        keys, suffixes = [grams[starts]], []
        for length in range(self.order - 1, 0, -1):
            grams = keys[0] % self._base**length
            order = np.argsort(grams)
            grams = grams[order]
            starts = _run_starts(grams)
            counts.insert(0, _run_lengths(starts, len(grams)))
            keys.insert(0, grams[starts])
            suffix = np.empty(len(grams), np.int32 if len(starts) < 2**31 else np.int64)
            suffix[order] = np.repeat(np.arange(len(starts), dtype=suffix.dtype), counts[0])
            suffixes.insert(0, suffix)
        return keys, counts, suffixes

    def _estimate(self, keys: list[np.ndarray], counts: list[np.ndarray], suffixes: list[np.ndarray]) -> None:
        # The empty context: every id seen follows it.
        discount = _discounts(counts[0])
        total = counts[0].sum()
        uniform = discount[np.minimum(counts[0], 3)].sum() / total / self.vocab_size
        self._unigram = np.full(self.vocab_size, uniform)
        self._unigram[keys[0].astype(np.int64)] += _discounted(counts[0], discount) / total
        probability = self._unigram[keys[0].astype(np.int64)]
        # The best id after the shorter context of each context, and its probability there.
        best = np.array([self._unigram.argmax()])
        best_p = self._unigram[best]
        shorter = np.zeros(len(keys[0]), np.int64)
        for level in range(1, self.order):
            starts = _run_starts(keys[level] // self._base)  # one run a context: the n-grams of the level below
            sizes = _run_lengths(starts, len(keys[level]))
            discount = _discounts(counts[level])
            totals = np.add.reduceat(counts[level], starts, dtype=np.int64)
            backoff = np.add.reduceat(discount[np.minimum(counts[level], 3)], starts) / totals
            longer = _discounted(counts[level], discount)
            longer /= np.repeat(totals, sizes)
            longer += np.repeat(backoff, sizes) * probability[suffixes[level - 1]]

            top_p = np.maximum.reduceat(longer, starts)
            tops = np.flatnonzero(longer == np.repeat(top_p, sizes))
            top = (keys[level][tops[np.searchsorted(tops, starts)]] % self._base).astype(np.int64)
            backed_off = backoff * best_p[shorter]
            best = np.where(top_p >= backed_off, top, best[shorter])
            best_p = np.maximum(top_p, backed_off)
            self.levels.append(Level(keys[level - 1], probability, backoff, best))
            probability, shorter = longer, suffixes[level - 1]
        self.levels.append(Level(keys[-1], probability, np.empty(0), np.empty(0, np.int64)))

    def probability(self, context_NK: np.ndarray, target_N: np.ndarray) -> np.ndarray:
        """``p(target | context)``, float64 (N,); ids V at a context's start stand for none."""
        p = self._unigram[target_N]
        for length, (context_N, place_N, known_N) in enumerate(self._contexts(context_NK)):
            p = np.where(known_N, self.levels[length].backoff[place_N] * p, p)
            longer = self.levels[length + 1]
            place_N, seen_N = _find(longer.keys, context_N * self._base + target_N.astype(np.uint64))
            p = np.where(seen_N, longer.probability[place_N], p)
        return p

    def likeliest(self, context_NK: np.ndarray) -> np.ndarray:
        """The most probable id after each context, (N,)."""
        best = np.full(len(context_NK), self._unigram.argmax())
        for length, (_, place_N, known_N) in enumerate(self._contexts(context_NK)):
            best = np.where(known_N, self.levels[length].likeliest[place_N], best)
        return best

    def _contexts(self, context_NK: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """For context lengths 1, 2, ...: keys, their places in the level, and whether they are there."""
        digits = context_NK.astype(np.uint64)
        key = np.zeros(len(digits), np.uint64)
        for length in range(1, self.order):
            key = key + digits[:, -length] * self._base ** (length - 1)
            yield key, *_find(self.levels[length - 1].keys, key)


class NgramScorer:
    """An :class:`NgramModel` behind the protocol of :class:`lexmem.evaluation.scorer.Scorer`.

    ``max_len`` is that of the models it is a floor for, so that it is asked exactly what they are.
    """

    def __init__(self, model: NgramModel, max_len: int) -> None:
        self.model, self.max_len = model, max_len
        self._reach = model.order - 1
        self._nothing = [model.vocab_size] * self._reach

    def score(self, requests: Sequence[Request], advance: Callable[[int], None]) -> list[Score]:
        scores: list[Score] = []
        for start, stop in _chunks([len(request.continuation) for request in requests]):
            part = requests[start:stop]
            stream: list[int] = []
            ends = []
            for context, continuation in part:
                stream += [*self._nothing, *context[-self._reach :], *continuation]
                ends.append(len(stream))
            lengths = np.array([len(continuation) for _, continuation in part])
            at = np.repeat(np.array(ends) - np.cumsum(lengths), lengths) + np.arange(lengths.sum())
            ids = np.array(stream)
            context_NK = ids[at[:, None] + np.arange(-self._reach, 0)]
            starts = np.cumsum(lengths) - lengths
            sums = np.add.reduceat(np.log(self.model.probability(context_NK, ids[at])), starts)
            whole = np.logical_and.reduceat(self.model.likeliest(context_NK) == ids[at], starts)
            scores += [Score(float(a), bool(b)) for a, b in zip(sums, whole, strict=True)]
            advance(len(part))
        return scores

    def token_losses(self, windows: np.ndarray) -> np.ndarray:
        padded = np.pad(windows[:, :-1], ((0, 0), (self._reach - 1, 0)), constant_values=self.model.vocab_size)
        context_NK = np.lib.stride_tricks.sliding_window_view(padded, self._reach, axis=1).reshape(-1, self._reach)
        return -np.log(self.model.probability(context_NK, windows[:, 1:].reshape(-1))).reshape(len(windows), -1)

    def greedy(self, context: Sequence[int]) -> Iterator[int]:
        ids = [*self._nothing, *context]
        for _ in range(self.max_len - len(context) + 1):
            ids.append(int(self.model.likeliest(np.array([ids[-self._reach :]]))[0]))
            yield ids[-1]


def _run_starts(ascending: np.ndarray) -> np.ndarray:
    """Where each run of equal values begins."""
    return np.flatnonzero(np.concatenate([[True], ascending[1:] != ascending[:-1]]))


def _run_lengths(starts: np.ndarray, end: int) -> np.ndarray:
    """Lengths of the runs, in the smallest integers that hold them."""
    return np.diff(starts, append=end).astype(np.int32 if end < 2**31 else np.int64)


def _find(ascending: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A valid place for each value, and whether the value is there."""
    place = np.minimum(np.searchsorted(ascending, wanted), len(ascending) - 1)
    return place, ascending[place] == wanted


def _discounts(counts: np.ndarray) -> np.ndarray:
    """What is taken from n-grams seen 0, 1, 2 and 3 or more times (Chen & Goodman's D1, D2, D3+)."""
    once, twice, thrice, four = (int((counts == n).sum()) for n in (1, 2, 3, 4))
    if once and twice and thrice:
        y = once / (once + 2 * twice)
        found = np.array([0.0, 1 - 2 * y * twice / once, 2 - 3 * y * thrice / twice, 3 - 4 * y * four / thrice])
        if (found[1:] > 0).all():
            return found
    # Too little text (or too few ids) for the estimate: the fallback that KenLM documents.
    return np.array([0.0, 0.5, 1.0, 1.5])


def _discounted(counts: np.ndarray, discount: np.ndarray) -> np.ndarray:
    return counts - discount[np.minimum(counts, 3)]


def _chunks(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Ranges of requests with about ``AT_ONCE`` ids in all, at least one request each."""
    start, held = 0, 0
    for index, length in enumerate(lengths):
        held += length
        if held >= AT_ONCE:
            yield start, index + 1
            start, held = index + 1, 0
    if start < len(lengths):
        yield start, len(lengths)
