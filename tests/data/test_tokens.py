"""Token files, the training prefix, and windows that are a pure function of seed and step."""

import json
from pathlib import Path

import numpy as np
import pytest

from lexmem.data.tokens import TokenFiles, TrainingWindows, heldout_windows, id_dtype
from lexmem.spec.errors import UserError

VOCAB, EOT = 50, 49


def write(path: Path, documents: dict[str, list[list[int]]], vocab: int = VOCAB) -> TokenFiles:
    path.mkdir()
    sizes = {}
    for split, ids in documents.items():
        flat = np.array([i for document in ids for i in [*document, vocab - 1]], id_dtype(vocab))
        flat.tofile(path / f"{split}.bin")
        np.save(path / f"{split}.offsets.npy", np.cumsum([0, *(len(document) + 1 for document in ids)]))
        sizes[split] = {"tokens": len(flat), "documents": len(ids)}
    np.save(path / "token_bytes.npy", np.ones(vocab, np.int32))
    meta = {"vocab_size": vocab, "eot_id": vocab - 1, "dtype": id_dtype(vocab).str, "splits": sizes}
    (path / "meta.json").write_text(json.dumps(meta))
    return TokenFiles.open(path)


@pytest.fixture
def tokens(tmp_path):
    rng = np.random.default_rng(0)
    train = [rng.integers(0, EOT, n).tolist() for n in rng.integers(0, 40, 60)]
    return write(tmp_path / "tokens", {"train": train, "valid": [[1, 2, 3, 4, 5, 6], [7, 8]], "test": []})


def test_splits_are_read_only_maps_of_all_ids(tokens):
    ids = tokens.split("train")
    assert isinstance(ids, np.memmap) and not ids.flags.writeable
    assert len(ids) == tokens.meta["splits"]["train"]["tokens"]
    assert tokens.split("valid").tolist() == [1, 2, 3, 4, 5, 6, EOT, 7, 8, EOT]
    assert len(tokens.split("test")) == 0


def test_offsets_cut_the_split_at_documents(tokens):
    for split in ("train", "valid", "test"):
        ids, offsets = tokens.split(split), tokens.offsets(split)
        assert offsets[0] == 0 and offsets[-1] == len(ids)
        assert np.array_equal(np.flatnonzero(ids == EOT) + 1, offsets[1:])


def test_prefix_offsets_are_clipped_at_every_budget(tokens):
    n = len(tokens.split("train"))
    ends = np.flatnonzero(tokens.split("train") == EOT) + 1
    for budget in range(1, n + 1):
        expected = [0, *(end for end in ends if end < budget), budget]
        assert tokens.prefix_offsets(budget).tolist() == expected
        assert np.array_equal(tokens.prefix(budget), tokens.split("train")[:budget])


def test_counts_are_of_the_prefix(tokens):
    counts = tokens.counts(100)
    assert counts.dtype == np.int64 and counts.shape == (VOCAB,) and counts.sum() == 100
    assert counts[EOT] == (tokens.split("train")[:100] == EOT).sum()


def test_a_prefix_beyond_train_names_both_numbers(tokens):
    n = len(tokens.split("train"))
    for ask in (tokens.prefix, tokens.prefix_offsets, tokens.counts):
        with pytest.raises(UserError, match=rf"needs {n + 1} training tokens, but .* has {n}; lower"):
            ask(n + 1)


def test_unknown_split_and_missing_folder_are_one_line(tokens, tmp_path):
    with pytest.raises(UserError, match=r"'vaild'.*did you mean 'valid'"):
        tokens.split("vaild")
    with pytest.raises(UserError, match="run the tokenize stage"):
        TokenFiles.open(tmp_path / "nowhere")


@pytest.mark.parametrize(("vocab", "n_bytes"), [(65_536, 2), (65_537, 4)])
def test_ids_widen_where_the_vocabulary_outgrows_two_bytes(tmp_path, vocab, n_bytes):
    tokens = write(tmp_path / "wide", {"train": [[0, vocab - 2]]}, vocab)
    assert (tokens.path / "train.bin").stat().st_size == 3 * n_bytes
    assert tokens.split("train").tolist() == [0, vocab - 2, vocab - 1]
    assert tokens.eot_id == vocab - 1 and tokens.counts(3)[-1] == 1


def windows(tokens: TokenFiles, seed: int) -> TrainingWindows:
    return TrainingWindows(tokens, budget_tokens=500, seq_len=16, batch_size=4, seed=seed)


def test_batches_are_a_pure_function_of_seed_and_step(tokens):
    one, two = windows(tokens, 3), windows(tokens, 3)
    forward = [one.batch(step) for step in range(len(one))]
    backward = [two.batch(step) for step in reversed(range(len(two)))][::-1]
    assert np.array_equal(forward, backward)
    assert forward[0].shape == (4, 17) and forward[0].dtype == np.int64


def test_seeds_permute_the_same_windows(tokens):
    ids = tokens.split("train")
    expected = sorted(ids[i * 16 : i * 16 + 17].tolist() for i in range(500 // 64 * 4))
    orders = [
        np.concatenate([w.batch(s) for s in range(len(w))]).tolist()
        for w in map(lambda s: windows(tokens, s), range(3))
    ]
    assert all(sorted(order) == expected for order in orders)
    assert orders[0] != orders[1] != orders[2]


def test_steps_are_whole_batches_and_no_more(tokens):
    w = windows(tokens, 0)
    assert len(w) == 500 // (16 * 4)
    for step in (-1, len(w)):
        with pytest.raises(IndexError):
            w.batch(step)


def test_the_last_target_may_be_one_past_the_prefix_but_not_past_train(tmp_path):
    tokens = write(tmp_path / "exact", {"train": [[1, 2, 3, 4, 5, 6, 7, 8]]})
    assert TrainingWindows(tokens, 8, 4, 2, seed=0).batch(0).max() == EOT
    (tmp_path / "short").mkdir()
    short = write(tmp_path / "short" / "tokens", {"train": [[1, 2, 3, 4, 5, 6, 7]]})
    with pytest.raises(UserError, match=r"needs 9 training tokens, but .* has 8"):
        TrainingWindows(short, 8, 4, 2, seed=0)


def test_a_budget_under_one_step_is_refused(tokens):
    with pytest.raises(UserError, match="under one step"):
        TrainingWindows(tokens, 63, 16, 4, seed=0)


def test_heldout_windows_score_each_target_once(tokens):
    batches = list(heldout_windows(tokens, "valid", seq_len=2, max_tokens=100, batch_size=3))
    assert [batch.shape for batch in batches] == [(3, 3), (1, 3)]
    targets = np.concatenate(batches)[:, 1:].ravel()
    assert targets.tolist() == tokens.split("valid")[1:9].tolist()
    limited = np.concatenate(list(heldout_windows(tokens, "valid", 2, max_tokens=5, batch_size=3)))
    assert limited.shape == (2, 3)


@pytest.mark.parametrize(("split", "seq_len", "max_tokens"), [("test", 2, 100), ("valid", 10, 100), ("valid", 4, 3)])
def test_heldout_without_a_window_is_an_error_at_once(tokens, split, seq_len, max_tokens):
    with pytest.raises(UserError, match=f"{split}: no window of seq_len = {seq_len}"):
        heldout_windows(tokens, split, seq_len, max_tokens, batch_size=2)
