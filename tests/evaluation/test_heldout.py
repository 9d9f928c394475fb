import math

import numpy as np
import pytest
import torch

from lexmem.data.tokens import TokenFiles
from lexmem.evaluation.heldout import (
    HeldoutLosses,
    count_words,
    deciles,
    equal_type_bins,
    heldout_losses,
    log_width_bins,
    summarise,
)
from lexmem.evaluation.scorer import DecoderScorer
from lexmem.spec.errors import UserError

SEQ_LEN = 16
DOCUMENTS = [
    "The sailor sang over the sea;\nthe ship  sailed.",
    "naïve\u0301 ship and a sailor\x00 who sang",
    "The shore was seen.",
]


@pytest.fixture
def tokens(tmp_path, tokenizer):
    return write_tokens(tmp_path, tokenizer, DOCUMENTS)


def write_tokens(folder, tokenizer, documents) -> TokenFiles:
    from lexmem.data.tokenizer import token_bytes

    eot_id = tokenizer.get_vocab_size() - 1
    ids = [token for text in documents for token in [*tokenizer.encode(text).ids, eot_id]]
    np.array(ids, "<u2").tofile(folder / "test.bin")
    np.save(folder / "token_bytes.npy", token_bytes(tokenizer))
    meta = {"vocab_size": eot_id + 1, "eot_id": eot_id, "dtype": "<u2", "splits": {"test": {}}}
    return TokenFiles(folder, meta)


def test_equals_a_dumb_loop(decoder, tokenizer, tokens):
    ids = tokens.split("test").tolist()
    heldout = heldout_losses(DecoderScorer(decoder, SEQ_LEN, 512), tokens, SEQ_LEN, max_tokens=10_000, batch_size=2)
    losses, pieces = [], []
    for start in range(0, (len(ids) - 1) // SEQ_LEN * SEQ_LEN, SEQ_LEN):
        window = ids[start : start + SEQ_LEN + 1]
        with torch.no_grad():
            log_p = decoder(torch.tensor([window[:-1]]))[0][0].double().log_softmax(-1)
        losses += [-float(log_p[i, token]) for i, token in enumerate(window[1:])]
        pieces += window[1:]
    np.testing.assert_array_equal(heldout.targets, pieces)
    np.testing.assert_allclose(heldout.losses, losses, rtol=1e-4)

    summary = summarise(heldout, tokens, tokenizer)
    text = [(token, loss) for token, loss in zip(pieces, losses, strict=True) if token != tokens.eot_id]
    nats, n_bytes = sum(loss for _, loss in text), sum(len(tokenizer.id_to_token(token)) for token, _ in text)
    assert len(text) < len(pieces), "the scored text holds a document's end"
    words = sum(len(part.split()) for part in _between(pieces, tokens.eot_id, tokenizer))
    assert summary["tokens"] == len(pieces)
    assert (summary["words"], summary["bytes"]) == (words, n_bytes)
    assert summary["loss"] == pytest.approx(np.mean(losses), rel=1e-5)
    assert summary["token_perplexity"] == pytest.approx(math.exp(np.mean(losses)), rel=1e-4)
    assert summary["bits_per_byte"] == pytest.approx(nats / n_bytes / math.log(2), rel=1e-5)
    assert summary["word_perplexity"] == pytest.approx(math.exp(nats / words), rel=1e-4)
    assert summary["byte_perplexity"] == pytest.approx(math.exp(nats / n_bytes), rel=1e-4)


def _between(ids, eot_id, tokenizer):
    part = []
    for token in [*ids, eot_id]:
        if token == eot_id:
            yield tokenizer.decode(part)
            part = []
        else:
            part.append(token)


def test_all_of_the_text_is_counted_in_bytes_and_words(tokenizer, tokens):
    ids = np.array(tokens.split("test"), np.int64)
    summary = summarise(HeldoutLosses(ids, np.ones(len(ids))), tokens, tokenizer)
    assert summary["bytes"] == sum(len(text.encode()) for text in DOCUMENTS)
    assert summary["words"] == sum(len(text.split()) for text in DOCUMENTS)


def test_a_document_end_ends_a_word(tokenizer):
    eot_id = tokenizer.get_vocab_size() - 1
    ids = [*tokenizer.encode("sea").ids, eot_id, *tokenizer.encode("ship").ids]
    assert count_words(np.array(ids), eot_id, tokenizer) == 2


def test_text_without_words_is_an_error(tmp_path, tokenizer):
    tokens = write_tokens(tmp_path, tokenizer, [""] * 20)
    with pytest.raises(UserError, match="no words"):
        summarise(HeldoutLosses(np.full(5, tokens.eot_id), np.ones(5)), tokens, tokenizer)


def test_a_split_under_one_window_is_an_error(decoder, tmp_path, tokenizer):
    tokens = write_tokens(tmp_path, tokenizer, ["sea"])
    with pytest.raises(UserError, match="test"):
        heldout_losses(DecoderScorer(decoder, SEQ_LEN, 512), tokens, SEQ_LEN, max_tokens=100, batch_size=2)


def test_a_loss_that_overflows_stays_finite(tokenizer, tokens):
    ids = np.array(tokens.split("test"), np.int64)
    summary = summarise(HeldoutLosses(ids, np.full(len(ids), 1e6)), tokens, tokenizer)
    assert all(math.isfinite(value) for value in summary.values())


def test_bins_of_equally_many_types():
    counts = np.array([0, 5, 1, 900, 7, 2, 2, 0, 40, 3, 11, 80, 100])
    bins = equal_type_bins(counts)
    assert bins[[0, 7]].tolist() == [0, 0]
    seen = np.flatnonzero(counts)
    assert np.bincount(bins[seen], minlength=11)[1:].tolist() == [2] + [1] * 9
    ascending = seen[np.argsort(counts[seen], kind="stable")]
    assert (np.diff(bins[ascending]) >= 0).all()
    assert bins[2] == 1 and bins[3] == 10


def test_bins_of_equal_width_in_log_count():
    counts = np.array([0, 1, 2, 10, 99, 1024])
    # Ten bins of 2 ** 0, 2 ** 1, ... 2 ** 10.
    assert log_width_bins(counts).tolist() == [0, 1, 2, 4, 7, 10]
    assert log_width_bins(np.array([3, 0, 3])).tolist() == [1, 0, 1]
    assert log_width_bins(np.zeros(3, int)).tolist() == [0, 0, 0]


def test_deciles_weigh_targets_and_leave_out_empty_bins():
    counts = np.array([0, *range(1, 21)])
    frame = deciles(HeldoutLosses(np.array([0, 1, 2, 2, 20]), np.array([9.0, 1.0, 2.0, 3.0, 5.0])), counts)
    equal = frame[frame["bins"] == "equal_type"].set_index("bin")
    assert equal.index.tolist() == [0, 1, 10]
    assert equal["types"].tolist() == [1, 2, 2]
    assert equal["tokens"].tolist() == [1, 3, 1]
    assert equal["loss"].tolist() == [9.0, 2.0, 5.0]
    log = frame[frame["bins"] == "log_width"]
    assert log["tokens"].sum() == 5 and set(frame["bins"]) == {"equal_type", "log_width"}
