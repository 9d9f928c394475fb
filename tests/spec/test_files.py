"""Outputs are whole or not there."""

import json
import math

import pytest

from lexmem.spec.files import read_json, replacing, sha256_file, sha256_json, write_json


def entries(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_a_file_takes_its_place_at_the_end(tmp_path):
    target = tmp_path / "deep" / "er" / "file"
    with replacing(target) as temporary:
        temporary.write_text("new")
        assert not target.exists()
    assert target.read_text() == "new"
    assert entries(target.parent) == {"file"}


@pytest.mark.parametrize("old", ["file", "folder"])
@pytest.mark.parametrize("new", ["file", "folder"])
def test_anything_replaces_anything(tmp_path, old, new):
    target = tmp_path / "out"
    for kind, content in ((old, "old"), (new, "new")):
        with replacing(target) as temporary:
            if kind == "folder":
                temporary.mkdir()
                (temporary / content).write_text(content)
            else:
                temporary.write_text(content)
    assert entries(tmp_path) == {"out"}
    assert (entries(target) if new == "folder" else target.read_text()) == ({"new"} if new == "folder" else "new")


def test_an_error_leaves_what_was_there(tmp_path):
    target = tmp_path / "out"
    target.write_text("old")
    with pytest.raises(RuntimeError), replacing(target) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert target.read_text() == "old"
    assert entries(tmp_path) == {"out"}


def test_a_leftover_of_a_killed_process_is_no_obstacle(tmp_path):
    with replacing(tmp_path / "out") as temporary:
        name = temporary.name
        temporary.write_text("1")
    (tmp_path / name).mkdir()
    with replacing(tmp_path / "out") as temporary:
        temporary.write_text("2")
    assert (tmp_path / "out").read_text() == "2"


def test_json_is_stable_and_ends_in_a_newline(tmp_path):
    value = {"b": 1, "a": [0.1, None, "é"]}
    write_json(tmp_path / "x.json", value)
    assert read_json(tmp_path / "x.json") == value
    assert (tmp_path / "x.json").read_text().endswith("}\n")
    assert list(json.loads((tmp_path / "x.json").read_text())) == ["b", "a"]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_json_has_no_infinities(tmp_path, number):
    write_json(tmp_path / "x.json", {"loss": 1.0})
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "x.json", {"loss": number})
    assert read_json(tmp_path / "x.json") == {"loss": 1.0}


def test_hashes(tmp_path):
    (tmp_path / "abc").write_bytes(b"abc")
    assert sha256_file(tmp_path / "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256_json({"a": 1, "b": 2}) == sha256_json({"b": 2, "a": 1})
    assert sha256_json({"a": 1}) != sha256_json({"a": 2})
