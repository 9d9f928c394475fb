"""What is wrong with a study is said before any work."""

import shutil
from pathlib import Path

import pytest

from lexmem.spec.errors import UserError
from lexmem.spec.params import Study, TrainParams, load_preset
from lexmem.study.preflight import check, default_jobs

ROOT = Path(__file__).parents[2]


@pytest.fixture
def preset():
    return load_preset("smoke", ROOT)


def study(**configs) -> Study:
    values = {"preset": "smoke", "variants": list(configs), "seeds": [0], "configs": {"dense": {}} | configs}
    return Study.read(values, "params.yaml")


def test_the_studies_of_the_presets_pass(preset):
    check(study(**preset.study.configs), preset, ROOT)


@pytest.mark.parametrize(
    ("configs", "parts"),
    [
        ({"tide": {"bank": 2}}, ["configs.tide", "'bank'", "did you mean 'banks'?"]),
        ({"no-such-file": {}}, ["configs.no-such-file", "variant = 'no-such-file'"]),
        ({"tide": {"match": {"flops": "dens"}}}, ["configs.tide.match.flops = 'dens'", "did you mean 'dense'?"]),
    ],
)
def test_a_wrong_run_is_named(preset, configs, parts):
    with pytest.raises(UserError) as caught:
        check(study(**configs), preset, ROOT)
    assert [part for part in parts if part not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("section", "change", "parts"),
    [
        ("corpus", {"sources": ["sottu"]}, ["'sottu'", "sotu"]),
        ("tasks", {"names": ["arc_esy"]}, ["'arc_esy'", "arc_easy"]),
    ],
)
def test_a_wrong_source_or_task_is_named(preset, section, change, parts):
    wrong = preset.model_copy(update={section: getattr(preset, section).model_copy(update=change)})
    with pytest.raises(UserError) as caught:
        check(study(tide={}), wrong, ROOT)
    assert [part for part in parts if part not in str(caught.value)] == []


def test_a_section_that_dvc_would_miss_is_named(tmp_path, preset):
    shutil.copytree(ROOT / "presets", tmp_path / "presets")
    path = tmp_path / "presets/smoke.yaml"
    path.write_text(path.read_text().replace("evaluate:\n  limit: 20\n  heldout_tokens: 16384\n", ""))
    shorter = load_preset("smoke", tmp_path)
    with pytest.raises(UserError, match="missing section 'evaluate'"):
        check(study(tide={}), shorter, tmp_path)


def test_jobs_have_cores_of_their_own_and_share_no_accelerator():
    values = {"lr": 0.1, "valid_every": 1, "valid_tokens": 1, "checkpoint_every": 1}
    assert default_jobs(TrainParams(**values, threads=1)) >= 1
    assert default_jobs(TrainParams(**values, threads=10_000)) == 1
    assert default_jobs(TrainParams(**values, accelerator="gpu")) == 1
