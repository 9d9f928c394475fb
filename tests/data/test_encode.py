"""The tokenize stage on a small corpus: what is on disk decodes to what was read."""

import json
import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from lexmem.data import encode
from lexmem.data.encode import tokenize_corpus
from lexmem.data.tokenizer import END_OF_TEXT, load_tokenizer
from lexmem.data.tokens import TokenFiles
from lexmem.spec.errors import UserError
from lexmem.spec.params import TokenizerParams

PARAMS = TokenizerParams(vocab_size=300, sample_mb=0.01)
HARD = ["nul \0", "\ufeffbom", "a\r\nb\rc\n", "cafe\u0301", "\u2028\x85", f"x{END_OF_TEXT}y", END_OF_TEXT, " "]


def documents(n: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    words = ["".join(rng.choices("abcdefgh", k=rng.randint(1, 7))) for _ in range(80)]
    return [" ".join(rng.choices(words, k=rng.randint(1, 60))) for _ in range(n)]


def write_corpus(path: Path, splits: dict[str, list[str]]) -> Path:
    path.mkdir()
    for split, texts in splits.items():
        lines = (json.dumps({"id": str(i), "source": "s", "text": t}, ensure_ascii=False) for i, t in enumerate(texts))
        (path / f"{split}.jsonl").write_bytes("".join(line + "\n" for line in lines).encode())
    (path / "manifest.json").write_text(json.dumps({"sha256": "corpus-hash"}))
    return path


@pytest.fixture
def splits():
    return {"train": documents(100, 0) + HARD, "valid": [*HARD, *documents(9, 1)], "test": []}


@pytest.fixture
def corpus(tmp_path, splits):
    return write_corpus(tmp_path / "corpus", splits)


def test_every_document_comes_back_between_its_offsets(corpus, splits, tmp_path):
    tokenize_corpus(corpus, tmp_path / "tokens", PARAMS)
    tokens, tokenizer = TokenFiles.open(tmp_path / "tokens"), load_tokenizer(tmp_path / "tokens" / "tokenizer.json")
    for split, texts in splits.items():
        ids, offsets = tokens.split(split), tokens.offsets(split)
        assert (ids == tokens.eot_id).sum() == len(texts)
        spans = pairwise(offsets)
        assert [tokenizer.decode(ids[start : end - 1].tolist()) for start, end in spans] == texts
        assert tokens.meta["splits"][split] == {
            "tokens": len(ids),
            "documents": len(texts),
            "bytes": sum(len(text.encode()) for text in texts),
            "words": sum(len(text.split()) for text in texts),
        }
        assert tokens.token_bytes[ids].sum() == tokens.meta["splits"][split]["bytes"]
    assert tokens.meta["corpus_sha256"] == "corpus-hash" and tokens.meta["dtype"] == "<u2"


def test_the_same_corpus_gives_the_same_bytes(corpus, tmp_path):
    tokenize_corpus(corpus, tmp_path / "one", PARAMS)
    tokenize_corpus(corpus, tmp_path / "two", PARAMS)
    files = [{p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("one", "two")]
    assert files[0] == files[1] and len(files[0]) == 9


def test_batches_and_cut_documents_change_no_token(tmp_path, monkeypatch):
    texts = ["\n".join(documents(40, 2)), "!\n\n \nword 12\n34\n\té\na" * 9, *documents(20, 3)]
    corpus = write_corpus(tmp_path / "corpus", {"train": documents(100, 0) + texts, "valid": texts, "test": []})
    tokenize_corpus(corpus, tmp_path / "whole", PARAMS)
    monkeypatch.setattr(encode, "BATCH", 100)
    monkeypatch.setattr(encode, "PIECE", 1)
    assert len(list(encode._pieces(texts[0]))) == 40
    tokenize_corpus(corpus, tmp_path / "pieces", PARAMS)
    for name in ("train.bin", "train.offsets.npy", "valid.bin", "valid.offsets.npy"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "pieces" / name).read_bytes()


def test_the_sample_is_the_start_of_train(tmp_path):
    start, other = documents(300, 0), documents(300, 9)
    found = []
    for name, rest in (("a", start), ("b", other)):
        corpus = write_corpus(tmp_path / name, {"train": start + rest, "valid": [], "test": []})
        tokenize_corpus(corpus, tmp_path / f"{name}-tokens", PARAMS)
        found.append((tmp_path / f"{name}-tokens" / "tokenizer.json").read_bytes())
    assert sum(len(text) for text in start) > PARAMS.sample_mb * 1e6
    assert found[0] == found[1]


def test_an_empty_or_missing_corpus_is_an_error_naming_the_path(tmp_path):
    with pytest.raises(UserError, match=r"manifest\.json: no such file; run the corpus stage"):
        tokenize_corpus(tmp_path / "none", tmp_path / "tokens", PARAMS)
    corpus = write_corpus(tmp_path / "corpus", {"train": [], "valid": [], "test": []})
    with pytest.raises(UserError, match=r"corpus/train\.jsonl: no documents"):
        tokenize_corpus(corpus, tmp_path / "tokens", PARAMS)


@pytest.mark.parametrize("split", ["train", "valid"])
@pytest.mark.parametrize("line", ['{"txt": "not"}', '{"text": "cut', "[]"])
def test_a_broken_line_is_named(corpus, tmp_path, split, line):
    (corpus / f"{split}.jsonl").write_text(f'{{"text": "fine"}}\n{line}\n')
    with pytest.raises(UserError, match=rf"{split}\.jsonl:2: not a JSON object"):
        tokenize_corpus(corpus, tmp_path / "tokens", PARAMS)


def test_offsets_are_int64_from_zero(corpus, tmp_path):
    tokenize_corpus(corpus, tmp_path / "tokens", PARAMS)
    for split, n in (("train", 108), ("valid", 17), ("test", 0)):
        offsets = TokenFiles.open(tmp_path / "tokens").offsets(split)
        assert offsets.dtype == np.int64 and offsets.shape == (n + 1,) and offsets[0] == 0
