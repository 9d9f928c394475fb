"""params.yaml takes a preset's study and keeps its comments."""

import shutil
from pathlib import Path

import pytest

from lexmem.spec.activate import activate
from lexmem.spec.errors import UserError
from lexmem.spec.params import load_preset, load_study, preset_names

ROOT = Path(__file__).parents[2]


STUDY = """# The study.
preset: smoke

# Runs.
variants: [dense]
seeds: [0]

# One block a run.
configs:
  dense: {}
"""


@pytest.fixture
def root(tmp_path):
    (tmp_path / "params.yaml").write_text(STUDY)
    shutil.copytree(ROOT / "presets", tmp_path / "presets")
    activate("pocket", tmp_path)
    return tmp_path


def study_of(root: Path, name: str):
    return load_preset(name, root).study.model_dump()


@pytest.mark.parametrize("name", preset_names())
def test_there_and_back_gives_the_same_file(root, name):
    before = (root / "params.yaml").read_text()
    assert activate(name, root) == (name != "pocket")
    study = load_study(root).model_dump()
    assert study.pop("preset") == name
    assert study == study_of(root, name)
    activate("pocket", root)
    assert (root / "params.yaml").read_text() == before


def test_nothing_is_written_if_nothing_changes(root):
    stamp = (root / "params.yaml").stat()
    assert not activate("pocket", root)
    assert (root / "params.yaml").stat().st_mtime_ns == stamp.st_mtime_ns
    assert (root / "params.yaml").stat().st_ino == stamp.st_ino


def test_comments_stay(root):
    path = root / "params.yaml"
    path.write_text(path.read_text().replace("  dense: {}\n", "  dense: {}  # the yardstick\n"))
    comments = [line.split("#")[1] for line in path.read_text().splitlines() if "#" in line]
    activate("smoke", root)
    text = path.read_text()
    assert [line.split("#")[1] for line in text.splitlines() if "#" in line] == comments
    assert "the yardstick" in text


def test_runs_of_ones_own_stay_and_those_of_a_preset_are_set(root):
    path = root / "params.yaml"
    text = path.read_text().rstrip() + "\n  mine: {variant: tide, banks: 2}\n"
    text = text.replace("moe: {top_k: 2,", "moe: {top_k: 3,").replace("l3]", "l3, mine]")
    assert "top_k: 3" in text and "mine]" in text
    path.write_text(text)
    activate("smoke", root)
    study = load_study(root)
    configs = dict(study.configs)
    assert configs.pop("mine") == {"variant": "tide", "banks": 2}
    assert configs == study_of(root, "smoke")["configs"]
    assert study.variants == [*study_of(root, "smoke")["variants"], "mine"]


def test_a_block_of_another_preset_is_dropped(root):
    other = (root / "presets/smoke.yaml").read_text().replace("    l3: {}", "    l3: {}\n    extra: {variant: tide}")
    (root / "presets/other.yaml").write_text(other)
    activate("other", root)
    assert "extra" in load_study(root).configs
    activate("pocket", root)
    assert "extra" not in load_study(root).configs


def test_an_unknown_preset_changes_nothing(root):
    before = (root / "params.yaml").read_text()
    with pytest.raises(UserError, match="did you mean 'smoke'"):
        activate("smok", root)
    assert (root / "params.yaml").read_text() == before
