"""One ``dvc repro`` of a tiny study from text to report, and what must not run again after it."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import chdir
from pathlib import Path

import pytest
from tiny_study import command, environment, make

from lexmem.spec.activate import activate
from lexmem.spec.files import sha256_file
from lexmem.study.stages import read_pipeline
from lexmem.tracking.store import Tracker

pytestmark = pytest.mark.xdist_group("tiny study")
WEIGHTS = "runs/tiny/tide-0/model.safetensors"
CURVE = "results/tiny/metrics/pretrain/tide-0.csv"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The study, run once."""
    root = tmp_path_factory.mktemp("study")
    make(root)
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    activate("tiny", root)
    command(root, "dvc", "repro", "--quiet")
    return root


@pytest.fixture
def project(finished, tmp_path):
    """A copy of the finished study to change."""
    return Path(shutil.copytree(finished, tmp_path / "study", symlinks=True))


def outdated(root: Path) -> set[str]:
    with chdir(root):
        return set(read_pipeline().outdated)


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))


def test_it_ends_in_a_report_and_a_second_call_runs_nothing(finished):
    assert (finished / "results/tiny/REPORT.md").stat().st_size > 0
    assert outdated(finished) == set()
    assert "up to date" in command(finished, "dvc", "repro")
    assert "all 12 stages are up to date" in command(finished, "pipelines.study")


def test_run_again_from_nothing_it_gives_the_same_tables_but_for_timings(project):
    tables = project / "results/tiny/tables"
    first = {path.name: path.read_bytes() for path in tables.iterdir() if not path.name.startswith("timing_")}
    for made in ("data", "runs", "results", "dvc.lock", ".dvc/cache"):
        path = project / made
        path.unlink() if path.is_file() else shutil.rmtree(path)
    command(project, "dvc", "repro", "--quiet")
    again = {path.name: path.read_bytes() for path in tables.iterdir() if not path.name.startswith("timing_")}
    assert again == first and "main.csv" in first


def test_a_changed_evaluation_limit_retrains_nothing(project):
    edit(project / "presets/tiny.yaml", "limit: 4", "limit: 5")
    assert outdated(project) == {"floor@tiny", "evaluate@tiny-dense-0", "evaluate@tiny-tide-0"}


def test_a_changed_training_parameter_leaves_data_and_plan(project):
    edit(project / "presets/tiny.yaml", "lr: 3.0e-3", "lr: 2.0e-3")
    kinds = {name.split("@")[0] for name in outdated(project)}
    assert kinds == {"pretrain", "bench"}


def test_a_comment_in_a_variant_changes_no_training(project):
    with (project / "src/lexmem/variants/tide.py").open("a") as file:
        file.write("# A remark.\n")
    assert outdated(project) == {"plan@tiny"}
    command(project, "dvc", "repro", "--quiet", "--single-item", "plan")
    assert outdated(project) == set()


def test_a_changed_variant_retrains_that_variant_alone(project):
    with (project / "src/lexmem/variants/tide.py").open("a") as file:
        file.write("EXTRA = 1\n")
    command(project, "dvc", "repro", "--quiet", "--single-item", "plan")
    assert {name for name in outdated(project) if name.startswith(("pretrain", "evaluate"))} == {"pretrain@tiny-tide-0"}


def test_a_new_variant_leaves_the_trainings_of_the_others(project):
    variants = project / "src/lexmem/variants"
    shutil.copy(variants / "dense.py", variants / "plain.py")
    edit(project / "params.yaml", "variants: [dense, tide]", "variants: [dense, tide, plain]")
    edit(project / "params.yaml", "  dense: {}\n", "  dense: {}\n  plain: {}\n")
    command(project, "dvc", "repro", "--quiet", "--single-item", "plan")
    assert outdated(project) == {"pretrain@tiny-plain-0", "evaluate@tiny-plain-0", "bench@tiny", "report@tiny"}


def test_another_preset_and_back_runs_nothing(project):
    before = (project / "params.yaml").read_text()
    assert activate("smoke", project)
    assert all("@smoke" in name for name in outdated(project))
    assert activate("tiny", project)
    assert (project / "params.yaml").read_text() == before
    assert outdated(project) == set()


def test_mlflow_is_the_same_when_rebuilt_from_files(project):
    logged = tracked(project)
    assert set(logged) == {"study", "dense-0", "tide-0"}
    assert all(run["status"] == "FINISHED" for run in logged.values())
    assert {"train_loss", "heldout/loss", "final/valid_loss"} <= {name for name, *_ in logged["tide-0"]["points"]}
    (project / "mlflow.db").unlink()
    shutil.rmtree(project / "mlartifacts")
    for _ in range(2):  # the second time adds nothing
        command(project, "lexmem.tracking", "replay", "--preset", "tiny")
        assert tracked(project) == logged


def tracked(root: Path) -> dict[str, dict]:
    """All that MLflow holds of the study but times and identifiers."""

    def read(client) -> dict[str, dict]:
        experiment = client.get_experiment_by_name("tiny")
        return {
            run.info.run_name: {
                "status": run.info.status,
                "params": run.data.params,
                "tags": {name: value for name, value in run.data.tags.items() if not name.startswith("mlflow.")},
                "points": {
                    (point.key, point.step, point.value)
                    for name in run.data.metrics
                    for point in client.get_metric_history(run.info.run_id, name)
                },
                "artifacts": {item.path for item in client.list_artifacts(run.info.run_id)},
            }
            for run in client.search_runs([experiment.experiment_id])
        }

    return Tracker(root).attempt(read)


def test_a_killed_training_ends_in_the_same_weights(project):
    weights, curve = sha256_file(project / WEIGHTS), (project / CURVE).read_bytes()
    training = subprocess.Popen(
        [sys.executable, "-m", "dvc", "repro", "--force", "--single-item", "pretrain@tiny-tide-0"],
        cwd=project,
        env=environment(project) | {"PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    seen = next(line for line in training.stdout if "step 24/32" in line)
    os.killpg(training.pid, signal.SIGKILL)
    training.communicate()
    assert seen and not (project / WEIGHTS).exists()
    assert list((project / ".scratch/tiny").glob("tide-0-*/*")), "no checkpoint to go on from"
    resumed = command(project, "dvc", "repro", "--single-item", "pretrain@tiny-tide-0")
    assert "step 32/32" in resumed and "step 8/32" not in resumed
    assert sha256_file(project / WEIGHTS) == weights
    assert (project / CURVE).read_bytes() == curve
    timing = "pretrain@tiny-tide-0"  # its seconds differ, which only the report and what is timed read
    assert outdated(project) <= {timing, "report@tiny"}
