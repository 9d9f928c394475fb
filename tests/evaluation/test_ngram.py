import math
from collections import Counter

import numpy as np
import pytest

from lexmem.evaluation.batching import Request
from lexmem.evaluation.ngram import NgramModel, NgramScorer
from lexmem.spec.errors import UserError

V = 6  # the last id never occurs


class Dumb:
    """Interpolated modified Kneser-Ney with dictionaries, straight from the formulas."""

    def __init__(self, ids: list[int], order: int = 4) -> None:
        ring = ids[-(order - 1) :] + ids
        grams = Counter(tuple(ring[i : i + order]) for i in range(len(ids)))
        self.counts = {order: grams}
        for length in range(order - 1, 0, -1):
            # An n-gram counts the distinct ids to its left.
            self.counts[length] = Counter(gram[1:] for gram in self.counts[length + 1])
        self.discounts = {length: self.discount(counts) for length, counts in self.counts.items()}

    @staticmethod
    def discount(counts: Counter) -> list[float]:
        n1, n2, n3, n4 = (sum(c == k for c in counts.values()) for k in (1, 2, 3, 4))
        if n1 and n2 and n3:
            y = n1 / (n1 + 2 * n2)
            found = [1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
            if min(found) > 0:
                return [0.0, *found]
        return [0.0, 0.5, 1.0, 1.5]

    def p(self, target: int, context: tuple[int, ...]) -> float:
        counts, discount = self.counts[len(context) + 1], self.discounts[len(context) + 1]
        shorter = self.p(target, context[1:]) if context else 1 / V
        followers = {gram[-1]: c for gram, c in counts.items() if gram[:-1] == context}
        if not followers:
            return shorter
        c = followers.get(target, 0)
        left = sum(discount[min(k, 3)] for k in followers.values())
        return (c - discount[min(c, 3)] + left * shorter) / sum(followers.values())


@pytest.fixture(scope="module", params=[12, 400])
def ids(request):
    rng = np.random.default_rng(request.param)
    return rng.choice(5, request.param, p=[0.4, 0.3, 0.2, 0.07, 0.03])


@pytest.fixture(scope="module")
def contexts():
    rng = np.random.default_rng(9)
    found = rng.integers(0, V, (80, 3))
    for row, missing in enumerate([1, 2, 3] * 5):
        found[row, :missing] = V  # shorter contexts: nothing on the left
    return found


def test_equals_the_dictionary(ids, contexts):
    model, dumb = NgramModel(ids, V), Dumb(ids.tolist())
    for target in range(V):
        expected = [dumb.p(target, tuple(int(i) for i in context if i < V)) for context in contexts]
        np.testing.assert_allclose(model.probability(contexts, np.full(len(contexts), target)), expected, rtol=1e-12)


def test_sums_to_one_and_leaves_nothing_at_zero(ids, contexts):
    model = NgramModel(ids, V)
    p = np.stack([model.probability(contexts, np.full(len(contexts), target)) for target in range(V)], axis=1)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    assert p.min() > 0


def test_likeliest_is_the_argmax(ids, contexts):
    model = NgramModel(ids, V)
    p = np.stack([model.probability(contexts, np.full(len(contexts), target)) for target in range(V)], axis=1)
    np.testing.assert_allclose(p[np.arange(len(p)), model.likeliest(contexts)], p.max(axis=1), rtol=1e-12)


def test_scores_requests_with_the_three_ids_before(ids, monkeypatch):
    dumb = Dumb(ids.tolist())
    requests = [
        Request((0,), (1, 2)),
        Request((3, 1, 0, 2, 1), (0,)),
        Request((1, 1), (0, 0, 0, 5)),
        Request((0,), (0,)),
    ]
    scorer = NgramScorer(NgramModel(ids, V), max_len=8)
    heard = []
    scores = scorer.score(requests, heard.append)
    for request, score in zip(requests, scores, strict=True):
        total, before, greedy = 0.0, list(request.context), True
        for token in request.continuation:
            context = tuple(before[-3:])
            total += math.log(dumb.p(token, context))
            greedy &= dumb.p(token, context) >= max(dumb.p(other, context) for other in range(V)) - 1e-12
            before.append(token)
        assert score.log_likelihood == pytest.approx(total, rel=1e-12)
        assert score.greedy == greedy
    monkeypatch.setattr("lexmem.evaluation.ngram.AT_ONCE", 1)
    assert scorer.score(requests, heard.append) == scores
    assert heard == [4, 1, 1, 1, 1]


def test_token_losses_see_their_window_only(ids):
    model, dumb = NgramModel(ids, V), Dumb(ids.tolist())
    windows = np.array([[0, 1, 0, 0, 2], [5, 0, 1, 1, 3]])
    losses = NgramScorer(model, max_len=4).token_losses(windows)
    for window, row in zip(windows.tolist(), losses, strict=True):
        expected = [-math.log(dumb.p(window[end], tuple(window[max(0, end - 3) : end]))) for end in range(1, 5)]
        np.testing.assert_allclose(row, expected, rtol=1e-12)


def test_greedy_follows_the_text_it_has_learned():
    scorer = NgramScorer(NgramModel(np.array([0, 1, 2, 3, 4] * 20), V), max_len=6)
    assert list(scorer.greedy([0, 1])) == [2, 3, 4, 0, 1]


def test_too_little_text_or_too_many_ids_is_an_error():
    with pytest.raises(UserError, match="at least 4 training tokens, got 3"):
        NgramModel(np.arange(3), V)
    with pytest.raises(UserError, match=r"vocab_size = 65536.*at most 65535"):
        NgramModel(np.arange(9), 65536)
