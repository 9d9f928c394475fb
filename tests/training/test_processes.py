"""Trainings in processes of their own: killed for real, and two that share a batch."""

import csv
import json
import os
import signal
import subprocess
import sys

import pytest
from safetensors.torch import load_file

from lexmem.training.run import FINISHED, pretrain

SCRIPT = """
import json, os, signal, sys
from pathlib import Path

from lexmem.spec.layout import Layout
from lexmem.spec.params import TrainParams
from lexmem.training import run
from lexmem.training.history import History

root, variant, train, kill = json.loads(sys.argv[1])
done = History.on_train_batch_end

def on_train_batch_end(history, trainer, *rest):
    done(history, trainer, *rest)
    if trainer.global_step == kill:
        os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    History.on_train_batch_end = on_train_batch_end
    print(run.pretrain(Layout("toy", Path(root)), TrainParams(**train), variant, 0))
"""


def train_apart(made, variant, kill=None, **values):
    """Run the script on a project."""
    script = made.root / "train.py"
    script.write_text(SCRIPT)
    arguments = json.dumps([str(made.root), variant, made.train(**values).model_dump(mode="json"), kill])
    return subprocess.run(
        [sys.executable, str(script), arguments],
        cwd=made.root,
        env=os.environ | {"GLOO_SOCKET_IFNAME": "lo"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_killed_by_the_system_and_started_again_it_ends_in_the_same_files(tracked):
    whole, made = tracked("whole", tide={}), tracked("killed", tide={})
    assert pretrain(whole.layout, whole.train(), "tide", 0) == FINISHED
    assert train_apart(made, "tide", kill=10).returncode == -signal.SIGKILL
    assert len(list(made.layout.scratch.rglob("*.ckpt"))) == 2 and made.files("tide") == {}
    assert pretrain(made.layout, made.train(), "tide", 0) == FINISHED
    assert made.files("tide") == whole.files("tide")


def test_two_processes_give_the_loss_of_one(tracked):
    one, two = tracked("one", l3={}), tracked("two", l3={})
    assert pretrain(one.layout, one.train(), "l3", 0) == FINISHED
    found = train_apart(two, "l3", devices=2, strategy="ddp")
    assert found.returncode == 0, found.stderr
    assert found.stdout.count(FINISHED) == 2, "both processes came to the end"
    rows = []
    for made in (one, two):
        with (made.layout.metrics("pretrain") / "l3-0.csv").open() as file:
            rows.append(list(csv.DictReader(file)))
    assert [(row["metric"], row["step"]) for row in rows[0]] == [(row["metric"], row["step"]) for row in rows[1]]
    for single, double in zip(*rows, strict=True):
        assert float(double["value"]) == pytest.approx(float(single["value"]), rel=1e-5), single["metric"]
    weights = [load_file(made.layout.run("l3", 0) / "model.safetensors") for made in (one, two)]
    assert weights[0].keys() == weights[1].keys()
