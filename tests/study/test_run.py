"""A small pipeline through DVC and the runner: order, failures, and stopping without orphans."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lexmem.study.processes import Child, last_line, stop
from lexmem.study.run import failures, run_stages
from lexmem.study.stages import read_pipeline
from lexmem.study.view import duration

STAGES = """
stages:
  head: {cmd: echo head > head, outs: [head]}
  good: {cmd: cp head good, deps: [head], outs: [good]}
  bad: {cmd: "echo 'error: bad luck' && exit 3", deps: [head], outs: [bad]}
  after: {cmd: cp bad after, deps: [bad], outs: [after]}
  bench: {cmd: cp good bench, deps: [good], outs: [bench]}
"""
# Tells its process group through a pipe, leaves a grandchild that ignores hang-ups and waits for ever.
STUBBORN = """
stages:
  wait: {cmd: "trap '' HUP; (trap '' TERM; echo $$ > started; exec tail -f /dev/null) & wait", outs: [never]}
"""
RUN = """
import sys
from pathlib import Path
from lexmem.study.run import Stopped, run_stages
from lexmem.study.stages import read_pipeline
try:
    run_stages(read_pipeline().remaining, 2, 1, Path("logs"))
except Stopped as stopped:
    sys.exit(128 + stopped.number)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / ".dvc").mkdir()
    (tmp_path / ".dvc/config").write_text("[core]\n    no_scm = true\n    analytics = false\n")
    (tmp_path / "dvc.yaml").write_text(STAGES)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_order_failures_and_a_second_call(project, capsys):
    logs = project / "logs"
    schedule = run_stages(read_pipeline().remaining, 2, 1, logs)
    assert {stage.name for stage in schedule.done} == {"head", "good", "bench"}
    assert [stage.name for stage in schedule.skipped] == ["after"]
    lines = list(failures(schedule, logs))
    assert lines == [f"bad failed: error: bad luck (log: {logs / 'bad.log'})", "not run for that: after"]
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "start  head"
    assert sum(line.startswith("done ") for line in shown) == 3
    assert sum(line.startswith("FAILED") for line in shown) == 1
    assert [stage.name for stage in read_pipeline().remaining] == ["bad", "after"]
    (project / "dvc.yaml").write_text(STAGES.replace("exit 3", "cp head bad"))
    assert not run_stages(read_pipeline().remaining, 2, 1, logs).failed
    assert read_pipeline().remaining == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_leaves_no_process(project, number):
    (project / "dvc.yaml").write_text(STUBBORN)
    os.mkfifo(project / "started")
    runner = subprocess.Popen([sys.executable, "-c", RUN], stdout=subprocess.DEVNULL)
    stubborn = int((project / "started").read_text())  # blocks until the stage runs
    group = os.getpgid(stubborn)
    assert group != os.getpgid(0)
    runner.send_signal(number)
    assert runner.wait(timeout=60) == 128 + number
    assert not alive(group)


def alive(group: int) -> bool:
    """Whether a process group has a member that is more than a zombie."""
    states = [Path(f"/proc/{pid}/stat") for pid in os.listdir("/proc") if pid.isdigit()]
    for path in states:
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            return True
    return False


def test_the_newest_line_of_a_log(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b"")
    assert last_line(log) == ""
    log.write_bytes("first\nstep 1\rstep 2 \u2713\r\n\n".encode())
    assert last_line(log) == "step 2 \u2713"


def test_stopping_what_has_ended_is_no_error(tmp_path):
    child = Child(["true"], tmp_path / "log", os.environ)
    os.waitid(os.P_PID, child._process.pid, os.WEXITED | os.WNOWAIT)
    stop([child], grace_seconds=5.0)
    assert child.poll() == 0


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0 s"), (89, "89 s"), (90, "2 min"), (5400, "1.5 h")])
def test_durations(seconds, text):
    assert duration(seconds) == text
