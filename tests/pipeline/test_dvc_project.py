"""What DVC makes of the project's files: stages, graph, metrics, and that it keeps to itself."""

import shutil
from contextlib import chdir
from pathlib import Path

import pytest
from dvc.config import Config
from dvc.repo import Repo

from lexmem.spec.activate import activate
from lexmem.spec.params import load_preset, preset_names

ROOT = Path(__file__).parents[2]
SINGLE = {"corpus", "tokenize", "allocate", "tasks", "plan", "floor", "bench", "report"}


@pytest.fixture
def project(tmp_path):
    """Only what DVC reads, outside git."""
    for name in ("dvc.yaml", "params.yaml", ".dvcignore"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "presets", tmp_path / "presets")
    (tmp_path / ".dvc").mkdir()
    shutil.copy(ROOT / ".dvc/config", tmp_path / ".dvc")
    (tmp_path / ".dvc/config.local").write_text("[core]\n    no_scm = true\n")
    return tmp_path


@pytest.mark.parametrize("preset", preset_names())
def test_the_stages_of_every_preset(project, preset):
    activate(preset, project)
    study = load_preset(preset).study
    runs = {f"{preset}-{variant}-{seed}" for variant in study.variants for seed in study.seeds}
    with chdir(project), Repo() as repo:
        names = {stage.addressing for stage in repo.index.stages}
        assert names == {f"{stage}@{preset}" for stage in SINGLE} | {
            f"{stage}@{run}" for stage in ("pretrain", "evaluate") for run in runs
        }
        graph = repo.index.graph
        (report,) = [stage for stage in repo.index.stages if stage.addressing == f"report@{preset}"]
        assert not list(graph.predecessors(report))
        (plan,) = [stage for stage in repo.index.stages if stage.addressing == f"plan@{preset}"]
        trained = {stage.addressing for stage in graph.predecessors(plan) if stage.addressing.startswith("pretrain")}
        assert trained == {f"pretrain@{run}" for run in runs}
        assert all(stage.desc for stage in repo.index.stages)


def test_dvc_phones_nowhere():
    core = Config(dvc_dir=str(ROOT / ".dvc"), validate=True)["core"]
    assert core["analytics"] is False
    assert core["check_update"] is False
    assert "remote" not in core
