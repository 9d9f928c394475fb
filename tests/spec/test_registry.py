"""Variants are found by their files."""

import subprocess
import sys

import pytest

import lexmem.variants
from lexmem.spec.errors import UserError
from lexmem.spec.registry import load_variant, resolve, variant_types
from lexmem.spec.section import Section


def test_types_are_the_files_that_are_not_private(tmp_path, monkeypatch):
    (tmp_path / "fancy.py").write_text("raise RuntimeError('imported')\n")
    (tmp_path / "_helper.py").write_text("")
    monkeypatch.setattr(lexmem.variants, "__path__", [*lexmem.variants.__path__, str(tmp_path)])
    monkeypatch.setattr(lexmem.variants.__spec__, "submodule_search_locations", lexmem.variants.__path__)
    found = variant_types()
    assert {"dense", "moe", "tide", "l3", "fancy"} <= set(found)
    assert found == sorted(found)
    assert "_helper" not in found


def test_listing_imports_no_torch():
    code = (
        "import sys; from lexmem.spec.registry import variant_types; variant_types(); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", variant_types())
def test_every_file_has_a_config(name):
    config = load_variant(name)
    assert issubclass(config, Section)
    assert config.__module__ == f"lexmem.variants.{name}"


def test_an_unknown_variant_names_those_there_are():
    with pytest.raises(UserError) as caught:
        load_variant("tied")
    line = str(caught.value)
    assert "variant = 'tied'" in line
    assert "allowed: " in line and "l3" in line
    assert "did you mean 'tide'?" in line


def test_a_block_names_its_type_or_is_named_after_it():
    assert resolve("tide", {"banks": 3}) == ("tide", load_variant("tide")(banks=3))
    assert resolve("tide-k3", {"variant": "tide", "banks": 3}) == ("tide", load_variant("tide")(banks=3))


def test_resolving_leaves_the_block_as_it_is():
    block = {"variant": "tide", "banks": 3}
    resolve("x", block)
    assert block == {"variant": "tide", "banks": 3}


@pytest.mark.parametrize(
    ("label", "block", "parts"),
    [
        ("tide", {"bank": 3}, ["params.yaml: configs.tide", "'bank'", "did you mean 'banks'?"]),
        ("tide", {"banks": "3"}, ["params.yaml: configs.tide", "banks = '3'", "integer"]),
        ("no-such-file", {"banks": 3}, ["params.yaml: configs.no-such-file", "variant = 'no-such-file'", "allowed: "]),
        ("no-such-file", {"variant": "mo"}, ["params.yaml: configs.no-such-file", "did you mean 'moe'?"]),
        ("no-such-file", {"variant": ["moe"]}, ["params.yaml: configs.no-such-file", "allowed: "]),
        ("moe", {"experts": 2, "top_k": 3}, ["params.yaml: configs.moe", "top_k = 3", "experts = 2"]),
        ("moe", None, ["params.yaml: configs.moe", "expected a block"]),
    ],
)
def test_a_wrong_block_is_one_line_with_its_label(label, block, parts):
    with pytest.raises(UserError) as caught:
        resolve(label, block)
    line = str(caught.value)
    assert "\n" not in line
    assert [part for part in parts if part not in line] == []
