"""Byte-level BPE: round trips, the end-of-text literal, determinism and small corpora."""

import random

import pytest

from lexmem.data.tokenizer import END_OF_TEXT, load_tokenizer, token_bytes, train_tokenizer
from lexmem.spec.errors import UserError

TEXT = "the cat sat on a mat while 1847 other cats, it's said, weren't there: naïve façade."
VOCAB = 300


def sentences(n: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    return [" ".join(rng.choices(TEXT.split(), k=12)) for _ in range(n)]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(sentences(200), VOCAB)


@pytest.mark.parametrize(
    "text",
    [
        "nul \0 inside",
        "\ufeffbyte order mark",
        "one\r\ntwo\rthree\n\n\n  four",
        "cafe\u0301 and café, Z\u0351\u036b\u0343 stacked",
        "日本語 русский עברית 🧪\u200d🔬",
        "\u2028 line separator \x85 next line",
        " leading,  double   and trailing spaces  \t",
        "",
    ],
)
def test_any_text_comes_back_byte_for_byte(tokenizer, text):
    ids = tokenizer.encode(text).ids
    assert tokenizer.decode(ids).encode() == text.encode()
    assert token_bytes(tokenizer)[ids].sum() == len(text.encode())


def test_the_literal_end_of_text_is_plain_text(tokenizer, tmp_path):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    text = f"before{END_OF_TEXT}after {END_OF_TEXT}"
    eot_id = tokenizer.token_to_id(END_OF_TEXT)
    for read in (tokenizer, load_tokenizer(tmp_path / "tokenizer.json")):
        ids = read.encode(text).ids
        assert eot_id not in ids
        assert read.decode(ids) == text


def test_the_literal_is_no_single_token_even_where_it_is_frequent():
    tokenizer = train_tokenizer([END_OF_TEXT * 50 + text for text in sentences(200)], VOCAB)
    ids = tokenizer.encode(END_OF_TEXT).ids
    assert len(ids) > 1 and tokenizer.token_to_id(END_OF_TEXT) not in ids


def test_end_of_text_is_the_last_id_and_has_no_bytes(tokenizer):
    assert tokenizer.get_vocab_size() == VOCAB
    assert tokenizer.token_to_id(END_OF_TEXT) == VOCAB - 1
    lengths = token_bytes(tokenizer)
    assert lengths[-1] == 0 and lengths[:-1].min() == 1


def test_every_byte_has_its_own_id(tokenizer):
    assert sorted(len(token) for token, i in tokenizer.get_vocab().items() if i < 256) == [1] * 256


def test_numbers_are_cut_into_groups_of_three(tokenizer):
    pieces = [piece for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str("in 1234567 ways")]
    assert pieces == ["in", "Ġ", "123", "456", "7", "Ġways"]


def test_combining_marks_stay_in_their_word(tokenizer):
    assert len(tokenizer.pre_tokenizer.pre_tokenize_str("cafe\u0301s")) == 1


def test_same_text_gives_the_same_tokenizer(tokenizer):
    assert train_tokenizer(iter(sentences(200)), VOCAB).to_str() == tokenizer.to_str()


@pytest.mark.parametrize("texts", [[], [""], ["abc"]])
def test_too_little_text_is_an_error_naming_both_numbers(texts):
    with pytest.raises(UserError, match=r"vocab_size = 300: .* only 257 entries"):
        train_tokenizer(texts, VOCAB)


def test_a_missing_or_broken_file_is_one_line(tmp_path):
    path = tmp_path / "tokenizer.json"
    with pytest.raises(UserError, match="no such tokenizer"):
        load_tokenizer(path)
    path.write_text("{}")
    with pytest.raises(UserError, match="not a tokenizer file"):
        load_tokenizer(path)
