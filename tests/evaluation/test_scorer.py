import random

import numpy as np
import pytest
import torch

from lexmem.evaluation.batching import Request
from lexmem.evaluation.scorer import DecoderScorer

MAX_LEN = 64
VOCAB = 288


def nothing(count: int) -> None: ...


def dumb(decoder, request: Request) -> tuple[float, bool]:
    """One request, one forward pass, one token after the other."""
    ids = torch.tensor([[*request.context, *request.continuation]])
    with torch.no_grad():
        log_p = decoder(ids)[0][0].double().log_softmax(-1)
    total, greedy = 0.0, True
    for offset, token in enumerate(request.continuation):
        at = len(request.context) - 1 + offset
        total += float(log_p[at, token])
        greedy &= int(log_p[at].argmax()) == token
    return total, greedy


@pytest.fixture(scope="module")
def requests(decoder):
    """Shared contexts, inputs that begin others, duplicates, one-token and greedy continuations."""
    rng = random.Random(1)
    asked = []
    for _ in range(12):
        context = tuple(rng.choices(range(VOCAB), k=rng.randint(1, 40)))
        for _ in range(3):
            asked.append(Request(context, tuple(rng.choices(range(VOCAB), k=rng.randint(1, 12)))))
        asked += [Request(context, (rng.randrange(VOCAB),)) for _ in range(2)]
        asked.append(asked[-3])
        with torch.no_grad():
            best = int(decoder(torch.tensor([context]))[0][0, -1].argmax())
        asked += [Request(context, (best,)), Request(context[:-1] or (0,), (context[-1], best))]
    rng.shuffle(asked)
    return asked


@pytest.mark.parametrize("batch_tokens", [1, 512, 8192])
def test_equals_one_request_at_a_time(decoder, requests, batch_tokens):
    scores = DecoderScorer(decoder, MAX_LEN, batch_tokens).score(requests, nothing)
    expected = [dumb(decoder, request) for request in requests]
    np.testing.assert_allclose([s.log_likelihood for s in scores], [e[0] for e in expected], rtol=1e-5)
    assert [s.greedy for s in scores] == [e[1] for e in expected]
    assert any(s.greedy for s in scores) and not all(s.greedy for s in scores)


def test_logits_in_chunks_equal_logits_at_once(decoder, requests, monkeypatch):
    scorer = DecoderScorer(decoder, MAX_LEN, 512)
    whole = scorer.score(requests, nothing)
    monkeypatch.setattr("lexmem.evaluation.scorer.LOGITS_AT_ONCE", 3 * decoder.vocab_size)
    parts = scorer.score(requests, nothing)
    np.testing.assert_allclose([s.log_likelihood for s in parts], [s.log_likelihood for s in whole], rtol=1e-5)
    assert [s.greedy for s in parts] == [s.greedy for s in whole]


def test_progress_adds_up(decoder, requests):
    heard = []
    DecoderScorer(decoder, MAX_LEN, 512).score(requests, heard.append)
    assert sum(heard) == len(requests) and len(heard) > 1


def test_token_losses_equal_a_loop(decoder):
    windows = np.random.default_rng(0).integers(0, VOCAB, (3, 9))
    losses = DecoderScorer(decoder, MAX_LEN, 512).token_losses(windows)
    for window, row in zip(windows, losses, strict=True):
        for end in range(1, 9):
            expected = -dumb(decoder, Request(tuple(window[:end]), (window[end],)))[0]
            assert row[end - 1] == pytest.approx(expected, rel=1e-5)


def test_greedy_reads_at_most_max_len_ids(decoder):
    context = [5, 6, 7]
    written = list(DecoderScorer(decoder, 10, 512).greedy(context))
    assert len(written) == 8  # the last is predicted from ten ids
    for token in written:
        with torch.no_grad():
            assert token == int(decoder(torch.tensor([context]))[0][0, -1].argmax())
        context = [*context, token]
