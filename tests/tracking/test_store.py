"""The MLflow leaf: one run a training, whatever order the processes come in, and never a failure of anything else."""

import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from lexmem.tracking.store import Tracker, child, clean, training

THREE_AT_ONCE = """
import sys, mlflow
from lexmem.tracking import training
print("ready", flush=True)
sys.stdin.read()
with training("tiny", "dense", int(sys.argv[1]), "abc") as run:
    run.rows([{"step": 1, "metric": "train_loss", "value": 2.5, "tokens": 64, "flops": 1e6}])
"""


@pytest.fixture
def root(tmp_path, mlflow_database):
    shutil.copy(mlflow_database, tmp_path / "mlflow.db")
    return tmp_path


def ask(root: Path, action):
    return Tracker(root).attempt(action)


def runs(root: Path, preset: str = "tiny"):
    def search(client):
        experiment = client.get_experiment_by_name(preset)
        return client.search_runs([experiment.experiment_id])

    return ask(root, search)


def test_three_processes_on_a_fresh_directory(tmp_path):
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", THREE_AT_ONCE, str(seed)],
            cwd=tmp_path,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(3)
    ]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * 3
    for process in processes:
        process.stdin.close()
        process.stdin = None
    errors = [process.communicate()[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert errors == ["", "", ""]
    found = {run.info.run_name: run for run in runs(tmp_path)}
    assert sorted(found) == ["dense-0", "dense-1", "dense-2", "study"]
    parent = found.pop("study").info.run_id
    assert {run.data.tags["mlflow.parentRunId"] for run in found.values()} == {parent}
    assert {run.data.metrics["train_loss"] for run in found.values()} == {2.5}
    assert {run.data.metrics["tokens"] for run in found.values()} == {64.0}


def test_a_run_is_found_by_its_tags(root):
    first = child("tiny", "tide", 0, "abc", root)
    first.params({"config": {"banks": 8}})
    child("tiny", "tide", 0, "abc", root).summary({"heldout": {"loss": 3.0}, "note": "words"})
    child("tiny", "tide", 0, "def", root).summary({"heldout": {"loss": 4.0}})
    child("tiny", "tide", 1, "abc", root)
    children = [run for run in runs(root) if run.info.run_name != "study"]
    assert len(children) == 3
    (run,) = [run for run in children if run.data.params]
    assert run.data.params == {"config.banks": "8"}
    assert run.data.metrics == {"heldout/loss": 3.0}


def test_other_parameters_start_a_run_afresh(root):
    run = child("tiny", "tide", 0, "abc", root)
    run.params({"lr": 0.1})
    run.rows([{"step": 1, "metric": "train_loss", "value": 2.5}])
    again = child("tiny", "tide", 0, "abc", root)
    again.params({"lr": 0.2})
    again.summary({"final": 1.0})
    (left,) = [run for run in runs(root) if run.info.run_name != "study"]
    assert left.data.params == {"lr": "0.2"}
    assert left.data.metrics == {"final": 1.0}


def test_rows_logged_again_add_nothing_and_infinities_are_left_out(root):
    rows = [{"step": step, "metric": "train_loss", "value": 5.0 - step, "tokens": step * 64} for step in range(5)]
    rows.append({"step": 5, "metric": "train_loss", "value": float("inf"), "tokens": 320})
    for _ in range(2):
        run = child("tiny", "dense", 0, "abc", root)
        run.rows(rows)
        run.summary({"valid_loss": float("nan"), "seconds": "12.5"})
    (found,) = [run for run in runs(root) if run.info.run_name != "study"]
    assert found.data.metrics == {"train_loss": 1.0, "tokens": 320.0, "seconds": 12.5}
    history = ask(root, lambda client: client.get_metric_history(found.info.run_id, "train_loss"))
    assert sorted((point.step, point.value) for point in history) == [(s, 5.0 - s) for s in range(5)]


@pytest.mark.parametrize(
    ("raised", "status", "note"),
    [
        (None, "FINISHED", "finished"),
        (ValueError("bad"), "FAILED", "ValueError: bad"),
        (KeyboardInterrupt(), "KILLED", "interrupted"),
    ],
)
def test_how_a_training_ended(root, raised, status, note):
    expected = pytest.raises(type(raised)) if raised is not None else nullcontext()
    with expected, training("tiny", "dense", 0, "abc", root):
        (run,) = [run for run in runs(root) if run.info.run_name != "study"]
        assert run.info.status == "RUNNING"
        if raised is not None:
            raise raised
    (run,) = [run for run in runs(root) if run.info.run_name != "study"]
    assert (run.info.status, run.data.tags["status"]) == (status, note)


def test_divergence_is_a_failure(root):
    with training("tiny", "dense", 0, "abc", root) as run:
        run.fail("loss is not finite at step 12")
    (found,) = [run for run in runs(root) if run.info.run_name != "study"]
    assert (found.info.status, found.data.tags["status"]) == ("FAILED", "loss is not finite at step 12")


def test_a_broken_database_is_one_warning(tmp_path, capsys):
    (tmp_path / "mlflow.db").write_bytes(b"this is no database" * 1000)
    with training("tiny", "dense", 0, "abc", tmp_path) as run:
        run.params({"lr": 0.1})
        run.rows([{"step": 1, "metric": "train_loss", "value": 2.5}])
        run.summary({"valid_loss": 2.0})
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("warning: MLflow:")
    assert "replay" in lines[0]


def test_names_that_mlflow_refuses_are_cleaned():
    assert clean("aux/null weight (layer=1)") == "aux/null weight _layer_1_"
