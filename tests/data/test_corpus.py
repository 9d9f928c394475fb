"""The corpus stage on files, hub folders and packaged sources built here."""

import hashlib
import json
from dataclasses import replace

import pandas as pd
import pytest

from lexmem.data.corpus import SPLITS, build_corpus, read_documents
from lexmem.data.sources.own import open_files, open_hub
from lexmem.data.sources.source import Source
from lexmem.spec.errors import UserError
from lexmem.spec.params import CorpusParams

PARAMS = CorpusParams(sources=["made"], valid_fraction=0.2, test_fraction=0.1)


def _source(texts, name="made", sha256=""):
    return Source(name, "apt", "made-package", "1.0", "public domain", sha256, False, lambda: iter(texts))


def _documents(folder):
    return {split: list(read_documents(folder / f"{split}.jsonl")) for split in SPLITS}


def _texts(folder):
    return {document["text"] for split in _documents(folder).values() for document in split}


def test_splits_are_disjoint_mixed_and_accounted_for(tmp_path):
    sources = [_source([f"a{i}" for i in range(60)], "a"), _source([f"b{i}" for i in range(40)], "b")]
    manifest = build_corpus(PARAMS, sources, tmp_path / "corpus")
    documents = _documents(tmp_path / "corpus")
    assert {name: len(split) for name, split in documents.items()} == {"train": 70, "valid": 20, "test": 10}
    assert len({document["id"] for split in documents.values() for document in split}) == 100
    assert {document["source"] for document in documents["train"][:20]} == {"a", "b"}
    assert manifest == json.loads((tmp_path / "corpus/manifest.json").read_text())
    for name, split in documents.items():
        assert manifest["splits"][name]["documents"] == len(split)
        assert manifest["splits"][name]["bytes"] == sum(len(document["text"]) for document in split)
        data = (tmp_path / f"corpus/{name}.jsonl").read_bytes()
        assert manifest["splits"][name]["sha256"] == hashlib.sha256(data).hexdigest()
    assert [source["documents"] for source in manifest["sources"]] == [60, 40]
    assert manifest["sources"][0]["licence"] == "public domain"


def test_order_depends_on_the_seed_and_not_on_the_order_of_sources(tmp_path):
    a, b = _source([f"a{i}" for i in range(30)], "a"), _source([f"b{i}" for i in range(30)], "b")
    build_corpus(PARAMS, [a, b], tmp_path / "ab")
    build_corpus(PARAMS, [a, b], tmp_path / "again")
    build_corpus(PARAMS, [b, a], tmp_path / "ba")
    build_corpus(PARAMS.model_copy(update={"seed": 1}), [a, b], tmp_path / "other")
    for split in SPLITS:
        files = [(tmp_path / run / f"{split}.jsonl").read_bytes() for run in ("ab", "again", "ba", "other")]
        assert files[0] == files[1] == files[2] != files[3]
    manifests = [(tmp_path / run / "manifest.json").read_bytes() for run in ("ab", "again")]
    assert manifests[0] == manifests[1]


def test_the_shuffled_order_is_the_same_on_every_machine(tmp_path):
    build_corpus(PARAMS, [_source(list("abcdefghij"))], tmp_path / "corpus")
    order = [document["text"] for split in SPLITS for document in read_documents(tmp_path / f"corpus/{split}.jsonl")]
    assert "".join(order) == "eghcifdbaj"


def test_hard_text_survives_byte_for_byte(tmp_path):
    hard = [
        "\ufeffBOM",
        "NUL\x00inside",
        "CR\rLF\r\n\r\nend\r\n",
        "e\u0301 combining",
        "<|endoftext|>",
        "\u2028 line",
        '"\\',
    ]
    for number, text in enumerate(hard):
        with (tmp_path / f"{number}.txt").open("w", encoding="utf-8", newline="") as file:
            file.write(text)
    build_corpus(PARAMS, [open_files(f"{tmp_path}/*.txt")], tmp_path / "corpus")
    assert _texts(tmp_path / "corpus") == set(hard)


def test_empty_documents_are_dropped_and_surrogates_replaced_and_both_counted(tmp_path):
    rows = [
        {"text": "good"},
        {"text": ""},
        {"text": " \r\n\t"},
        {"text": "lone \ud800 and \udfff"},
        {"text": "pair 😀"},
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    manifest = build_corpus(PARAMS, [open_files(f"{tmp_path}/a.jsonl")], tmp_path / "corpus")
    assert _texts(tmp_path / "corpus") == {"good", "lone \ufffd and \ufffd", "pair 😀"}
    (source,) = manifest["sources"]
    assert (source["dropped_empty"], source["replaced_surrogates"], source["documents"]) == (2, 2, 3)


def test_an_empty_source_is_an_error_that_names_it(tmp_path):
    (tmp_path / "a.txt").write_text(" \n ")
    with pytest.raises(UserError, match=r"source 'files:.*a\.txt': there is no text in it \(empty documents: 1\)"):
        build_corpus(PARAMS, [open_files(f"{tmp_path}/a.txt")], tmp_path / "corpus")
    assert not (tmp_path / "corpus").exists()


def test_one_document_cannot_be_split(tmp_path):
    with pytest.raises(UserError, match=r"1 document\(s\) from made cannot be split into train, 1 valid and 1 test"):
        build_corpus(PARAMS, [_source(["only"])], tmp_path / "corpus")


def test_hundred_documents_of_one_word(tmp_path):
    manifest = build_corpus(PARAMS, [_source([f"w{i}" for i in range(100)])], tmp_path / "corpus")
    assert manifest["splits"]["train"]["documents"] == 70


def test_another_text_than_pinned_is_an_error_with_both_checksums(tmp_path):
    texts = ["one", "two", "three", "four"]
    right = hashlib.sha256(b"one\0two\0three\0four\0").hexdigest()
    manifest = build_corpus(PARAMS, [_source(texts, sha256=right)], tmp_path / "corpus")
    assert manifest["sources"][0]["sha256"] == right
    with pytest.raises(UserError, match=f"has sha256 {right}, expected {'0' * 64}: apt package made-package 1.0"):
        build_corpus(PARAMS, [_source(texts, sha256="0" * 64)], tmp_path / "corpus")


def test_duplicates_are_dropped_from_the_later_source_and_counted(tmp_path):
    same = " ".join(f"word{i}" for i in range(40))
    sources = [_source([same, "x", "y", "z"], "a"), _source([same, f"{same}\n\nmore", "u", "v"], "b")]
    manifest = build_corpus(PARAMS, sources, tmp_path / "corpus")
    a, b = manifest["sources"]
    assert (a["documents"], a["dropped_duplicates"]) == (4, 0)
    assert (b["documents"], b["dropped_duplicates"], b["dropped_paragraphs"]) == (3, 1, 2)
    assert "more" in _texts(tmp_path / "corpus")


def test_max_documents_caps_the_corpus_and_bounds_the_reading_of_streams(tmp_path):
    taken = []

    def read():
        for number in range(1_000_000):
            taken.append(number)
            yield f"document {number}"

    params = PARAMS.model_copy(update={"max_documents": 10})
    stream = replace(_source([], "stream"), streamed=True, read=read)
    manifest = build_corpus(params, [stream, _source([f"w{i}" for i in range(50)])], tmp_path / "corpus")
    assert sum(split["documents"] for split in manifest["splits"].values()) == 10
    assert sum(source["documents"] for source in manifest["sources"]) == 10
    assert len(taken) <= 11


def test_long_files_are_cut_at_paragraphs(tmp_path):
    paragraphs = [" ".join(f"p{i}w{j}" for j in range(200)) for i in range(50)]
    (tmp_path / "book.txt").write_text("\n\n".join(paragraphs))
    build_corpus(PARAMS, [open_files(f"{tmp_path}/book.txt")], tmp_path / "corpus")
    texts = _texts(tmp_path / "corpus")
    assert all(len(text) <= 8000 for text in texts)
    assert sorted(paragraph for text in texts for paragraph in text.split("\n\n")) == sorted(paragraphs)


def test_files_of_three_kinds_through_one_glob(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.txt").write_text("from text")
    (tmp_path / "deep/b.jsonl").write_text('{"text": "from lines", "other": 1}\n')
    pd.DataFrame({"text": ["from table", "row two"], "n": [1, 2]}).to_parquet(tmp_path / "deep/c.parquet")
    source = open_files(f"{tmp_path}/**/*")
    assert list(source.read()) == ["from text", "from lines", "from table", "row two"]
    assert source.kind == "files"


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.txt", b"caf\xe9 bar", r"a\.txt: not UTF-8 at byte 3"),
        ("a.jsonl", b'{"text": "x"}\n{"text": ', r"a\.jsonl:2: not JSON"),
        ("a.jsonl", b'{"txt": "x"}\n', r"a\.jsonl:1: expected text in column 'text'; found: txt"),
        ("a.jsonl", b'{"text": null}\n', r"a\.jsonl:1: expected text in column 'text'"),
        ("a.jsonl", b"[1]\n", r"a\.jsonl:1: expected text in column 'text'; found: list"),
        ("a.parquet", b"half a table", r"a\.parquet: not Parquet"),
        ("a.csv", b"text\nx\n", r"a\.csv: cannot read '\.csv'; allowed: \.jsonl, \.parquet, \.txt"),
    ],
)
def test_files_that_cannot_be_read_are_named(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(UserError, match=message):
        list(open_files(f"{tmp_path}/*").read())


def test_a_glob_without_files_and_a_table_without_text(tmp_path):
    with pytest.raises(UserError, match=r"source 'files:nowhere/\*\.txt': no file matches"):
        open_files("nowhere/*.txt")
    pd.DataFrame({"body": ["x"]}).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(UserError, match=r"a\.parquet: no column 'text'; found: body"):
        list(open_files(f"{tmp_path}/a.parquet").read())


def test_a_folder_of_the_hubs_format_goes_through_the_same_stage(tmp_path):
    folder = tmp_path / "dataset"
    folder.mkdir()
    for split, count in {"train": 30, "validation": 5}.items():
        rows = (json.dumps({"text": f"{split} {number}"}) for number in range(count))
        (folder / f"{split}.jsonl").write_text("\n".join(rows))
    manifest = build_corpus(PARAMS, [open_hub(str(folder))], tmp_path / "corpus")
    assert manifest["sources"][0]["documents"] == 30
    assert all(text.startswith("train ") for text in _texts(tmp_path / "corpus"))
    assert len(list(open_hub(f"{folder}::validation").read())) == 5
    with pytest.raises(UserError, match=r"source 'hub:.*::tset': cannot be read \("):
        list(open_hub(f"{folder}::tset").read())
    with pytest.raises(UserError, match=r"source 'hub:.*missing': cannot be read \("):
        list(open_hub(f"{tmp_path}/missing").read())
