"""Child processes in sessions of their own, so that stopping one stops everything it started."""

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

POLL_SECONDS = 0.1


class Child:
    """A running command whose output goes to ``log``."""

    def __init__(self, command: Sequence[str], log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        self.started = time.monotonic()
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def seconds(self) -> float:
        """Wall time since the start."""
        return time.monotonic() - self.started

    def poll(self) -> int | None:
        """The exit status, or None while it runs."""
        return self._process.poll()

    def signal_group(self, number: int) -> bool:
        """Send a signal to the child and all its descendants; False if none is left."""
        self._process.poll()
        try:
            os.killpg(self._process.pid, number)
        except ProcessLookupError:
            return False
        return True


def stop(children: Iterable[Child], grace_seconds: float) -> None:
    """End the children and their descendants: SIGTERM, and SIGKILL to what is left after the grace."""
    left = [child for child in children if child.signal_group(signal.SIGTERM)]
    left = _until_gone(left, grace_seconds)
    for child in left:
        child.signal_group(signal.SIGKILL)
    _until_gone(left, grace_seconds)


def _until_gone(children: list[Child], seconds: float) -> list[Child]:
    """Wait for process groups to be empty; returns those that are not after ``seconds``."""
    deadline = time.monotonic() + seconds
    while children and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
        children = [child for child in children if child.signal_group(0)]
    return children


def last_line(log: Path) -> str:
    """The newest line of a log that is not blank, or ""."""
    with log.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
        lines = file.read().decode(errors="replace").replace("\r", "\n").splitlines()
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
