"""Runs the remaining stages of a study, JOBS at a time, each as a ``dvc repro`` of its own."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from lexmem.study.processes import POLL_SECONDS, Child, last_line, stop
from lexmem.study.schedule import Schedule
from lexmem.study.stages import Stage
from lexmem.study.view import LiveView, PlainView, Progress

ALONE = ("bench",)  # what measures time has the machine to itself
GRACE_SECONDS = 5.0
STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
QUIET = {
    "DVC_NO_ANALYTICS": "1",
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "GIT_PYTHON_REFRESH": "quiet",
}


class Stopped(Exception):
    """The study was told to stop, by the signal ``number``."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


def environment(threads: int) -> dict[str, str]:
    """The stages' environment: this Python first on the path, ``threads`` cores each, and nobody phones home."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return {**os.environ, **QUIET, "PATH": path, "OMP_NUM_THREADS": str(threads), "PYTHONUNBUFFERED": "1"}


def run_stages(stages: list[Stage], jobs: int, threads: int, logs: Path) -> Schedule:
    """Run ``stages``; a failing one does not stop those that do not need it.

    Raises:
        Stopped: after SIGINT, SIGTERM or SIGHUP, once all children and their descendants are gone.
    """
    schedule = Schedule(stages, jobs, ALONE)
    progress = Progress(schedule, jobs)
    console = Console()
    view = LiveView(progress, console) if console.is_terminal else PlainView(progress)
    names = {stage.name: stage for stage in stages}
    surroundings = environment(threads)
    with _stoppable(), view:
        try:
            while not schedule.over:
                for stage in schedule.startable():
                    schedule.start(stage)
                    command = [sys.executable, "-m", "dvc", "--wait-for-lock", "repro", "--single-item", stage.name]
                    progress.children[stage.name] = Child(command, logs / f"{stage.name}.log", surroundings)
                    view.started(stage)
                time.sleep(POLL_SECONDS)
                for name, child in list(progress.children.items()):
                    if (status := child.poll()) is not None:
                        del progress.children[name]
                        progress.seconds[names[name].kind].append(child.seconds)
                        schedule.finish(names[name], status == 0)
                        view.finished(names[name], child.seconds, status == 0)
                view.refresh()
        finally:
            for number in STOPPING:  # once stopping, nothing interrupts it
                signal.signal(number, signal.SIG_IGN)
            stop(progress.children.values(), GRACE_SECONDS)
    return schedule


def failures(schedule: Schedule, logs: Path) -> Iterator[str]:
    """One line a failed stage, with its reason if the log ends in one, and one for what was skipped."""
    for stage in schedule.failed:
        log = logs / f"{stage.name}.log"
        yield f"{stage.name} failed: {reason(log)} (log: {log})"
    if schedule.skipped:
        yield f"not run for that: {', '.join(stage.name for stage in schedule.skipped)}"


def reason(log: Path) -> str:
    """The stage's own error line, else the last line of its log."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    return next((line for line in reversed(lines) if line.startswith("error: ")), last_line(log))


@contextmanager
def _stoppable() -> Iterator[None]:
    """Turn signals into :class:`Stopped` inside the block, and leave the handlers as they were."""

    def raise_stopped(number: int, frame: object) -> None:
        raise Stopped(number)

    before = {number: signal.signal(number, raise_stopped) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
