"""The training prefix as text is exactly what its token ids spell."""

import json

import pytest

from lexmem.data.encode import tokenize_corpus
from lexmem.data.tokenizer import load_tokenizer
from lexmem.data.tokens import TokenFiles
from lexmem.evaluation.texts import first_texts, prefix_texts, read_jsonl
from lexmem.spec.errors import UserError
from lexmem.spec.files import write_json
from lexmem.spec.params import TokenizerParams

TEXTS = [f"Document {i}: the caf\u00e9 by the old mill.\n\nIts {i * 37} guests sat in the sun." for i in range(30)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A corpus of thirty documents with its token files."""
    folder = tmp_path_factory.mktemp("corpus")
    for split in ("train", "valid", "test"):
        lines = [json.dumps({"id": str(i), "source": "s", "text": text}) for i, text in enumerate(TEXTS)]
        (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    write_json(folder / "manifest.json", {"sha256": "0"})
    tokenize_corpus(folder, folder / "tokens", TokenizerParams(vocab_size=300))
    return folder


def test_prefix_is_whole_documents_and_the_cut_last_one(corpus):
    tokens = TokenFiles.open(corpus / "tokens")
    border = int(tokens.offsets("train")[7])
    tokenizer = load_tokenizer(corpus / "tokens" / "tokenizer.json")
    for budget in (1, 5, border - 1, border, border + 1, border + 9, len(tokens.split("train"))):
        texts = list(prefix_texts(corpus, corpus / "tokens", budget))
        ids = tokens.prefix(budget)
        assert "".join(texts) == tokenizer.decode(ids.tolist())
        assert texts[:-1] == TEXTS[: len(texts) - 1]
    assert list(prefix_texts(corpus, corpus / "tokens", border)) == TEXTS[:7]


def test_a_budget_beyond_the_corpus_is_refused(corpus):
    with pytest.raises(UserError, match=r"1000000"):
        list(prefix_texts(corpus, corpus / "tokens", 1_000_000))


def test_token_files_of_another_corpus_are_refused(corpus, tmp_path):
    write_json(tmp_path / "manifest.json", {"sha256": "1"})
    with pytest.raises(UserError, match=r"made from another text .* run the tokenize stage"):
        list(prefix_texts(tmp_path, corpus / "tokens", 5))


def test_first_texts_stop_at_a_size(corpus):
    assert first_texts(corpus / "test.jsonl", len(TEXTS[0]) + 1) == TEXTS[:2]
    assert first_texts(corpus / "test.jsonl", 10**9) == TEXTS


def test_broken_lines_and_missing_files_are_one_line(tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(UserError, match=r"items\.jsonl:2: not JSON"):
        list(read_jsonl(path))
    with pytest.raises(UserError, match=r"nothing\.jsonl: no such file"):
        list(read_jsonl(tmp_path / "nothing.jsonl"))
