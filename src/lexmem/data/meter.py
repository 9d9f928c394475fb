"""Progress of a pass of known size: a bar with rate and time left on a terminal, a few plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

PLAIN_SECONDS = 20.0  # between plain lines


@contextmanager
def metered(label: str, total: float, unit: str) -> Iterator[Callable[[float], None]]:
    """Yield ``advance(amount)``; amounts and ``total`` are in ``unit`` (``"MB"``)."""
    show = _bar if sys.stderr.isatty() else _lines
    with show(label, total, unit) as advance:
        yield advance


@contextmanager
def _bar(label: str, total: float, unit: str) -> Iterator[Callable[[float], None]]:
    amount = TextColumn("{task.completed:.1f}/{task.total:.1f} " + unit)
    rate = TextColumn("{task.fields[rate]:.2f} " + unit + "/s")
    columns = (TextColumn(f"{label:<18}"), BarColumn(), amount, rate, TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(label, total=total, rate=0.0)
        start = time.perf_counter()
        done = 0.0

        def advance(amount: float) -> None:
            nonlocal done
            done += amount
            bar.update(task, completed=done, rate=done / (time.perf_counter() - start))

        yield advance


@contextmanager
def _lines(label: str, total: float, unit: str) -> Iterator[Callable[[float], None]]:
    start = shown = time.perf_counter()
    done = 0.0

    def say(now: float) -> None:
        rate = done / max(now - start, 1e-9)
        left = f", {(total - done) / rate:.0f} s left" if rate and total - done > 1e-6 * total else ""
        print(f"{label:<18} {done:.1f}/{total:.1f} {unit}, {rate:.2f} {unit}/s{left}", file=sys.stderr, flush=True)

    def advance(amount: float) -> None:
        nonlocal done, shown
        done += amount
        now = time.perf_counter()
        if now - shown >= PLAIN_SECONDS:
            shown = now
            say(now)

    yield advance
    say(time.perf_counter())
