"""How long a stage took and on what machine: always in files of their own, as equal runs differ in it."""

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lexmem.spec.files import write_json
from lexmem.spec.layout import Layout


def machine() -> str:
    """Processor and number of cores."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


@contextmanager
def timed(layout: Layout, stage: str) -> Iterator[None]:
    """Write the block's seconds to the stage's ``timing.json`` if it succeeds."""
    started = time.perf_counter()
    yield
    write_json(layout.metrics(stage) / "timing.json", {"seconds": time.perf_counter() - started, "machine": machine()})
