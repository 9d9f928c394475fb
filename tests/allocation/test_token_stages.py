"""Stages tokenize and allocate, one after the other, on a corpus of a few kilobytes."""

import json
import random
from pathlib import Path

import numpy as np
import pytest
from ruamel.yaml import YAML

from lexmem.allocation import Allocations
from lexmem.data.tokens import TokenFiles
from lexmem.spec.errors import UserError
from pipelines import allocate, tokenize

SMOKE = Path(__file__).parents[2] / "presets" / "smoke.yaml"


def write_preset(**budget: int) -> None:
    preset = YAML(typ="safe").load(SMOKE.read_text())
    preset["tokenizer"] = {"vocab_size": 300, "sample_mb": 1.0}
    preset["budget"] |= budget
    with Path("presets/tiny.yaml").open("w") as file:
        YAML().dump(preset, file)


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project folder, made the working directory, with one preset and its corpus."""
    monkeypatch.chdir(tmp_path)
    Path("presets").mkdir()
    write_preset(tokens=4096)
    corpus = Path("data/tiny/corpus")
    corpus.mkdir(parents=True)
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefgh", k=rng.randint(2, 7))) for _ in range(90)]
    for split, n in (("train", 400), ("valid", 5), ("test", 5)):
        texts = (" ".join(rng.choices(words, k=rng.randint(5, 40))) for _ in range(n))
        (corpus / f"{split}.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    (corpus / "manifest.json").write_text('{"sha256": "x"}')
    return tmp_path


def contents(root: Path) -> dict[str, bytes]:
    """Every file but the timings, in which equal runs differ."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.name != "timing.json"]
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


def test_outputs_are_whole_consistent_and_the_same_twice(project):
    tokenize.main("tiny")
    allocate.main("tiny")
    first = contents(project)
    tokens, allocations = TokenFiles.open(Path("data/tiny/tokens")), Allocations.load(Path("data/tiny/allocation"))
    assert np.array_equal(allocations.counts, tokens.counts(4096))
    summary = json.loads(first["results/tiny/metrics/allocate/allocation.json"])
    assert summary["budget"] == 600 == allocations.rows("lzw", 600, 16).sum()
    assert summary["codewords"] == len(allocations.last) and not summary["full"]
    assert first["results/tiny/metrics/allocate/allocation.csv"].count(b"\n") == 1 + 3 * 300
    tokenize.main("tiny")
    allocate.main("tiny")
    assert contents(project) == first


def test_a_failed_stage_leaves_what_was_there(project):
    tokenize.main("tiny")
    before = contents(project)
    write_preset(tokens=10**7)
    with pytest.raises(UserError, match=r"budget.tokens = 10000000 needs .* but data/tiny/tokens has"):
        allocate.main("tiny")
    (project / "presets" / "tiny.yaml").write_bytes(before["presets/tiny.yaml"])
    (project / "data/tiny/corpus/test.jsonl").write_text("{}\n")
    with pytest.raises(UserError, match=r"test\.jsonl:1"):
        tokenize.main("tiny")
    (project / "data/tiny/corpus/test.jsonl").write_bytes(before["data/tiny/corpus/test.jsonl"])
    assert contents(project) == before
