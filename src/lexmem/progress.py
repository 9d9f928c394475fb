"""Progress of long work: a bar with rate and time left on a terminal, a few plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

PLAIN_SECONDS = 20.0  # between plain lines


@contextmanager
def metered(label: str, total: float | None, unit: str) -> Iterator[Callable[[float], None]]:
    """Yield ``advance(amount)``; amounts and ``total`` (None where it is not known) are in ``unit``, such as "MB"."""
    console = Console(stderr=True)
    columns = [TextColumn(f"{label:<18}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn()]
    columns += [TimeRemainingColumn()] if total else []
    started = shown = time.monotonic()
    done = 0.0

    def state(now: float) -> str:
        amount = f"{_number(done)}/{_number(total)}" if total else _number(done)
        return f"{amount} {unit}, {_number(done / max(now - started, 1e-6))} {unit}/s"

    def say(now: float) -> None:
        left = f", {(total - done) * (now - started) / done:.0f} s left" if total and 0 < done < 0.999 * total else ""
        print(f"{label:<18} {state(now)}{left}", file=sys.stderr, flush=True)

    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(label, total=total, state="")

        def advance(amount: float) -> None:
            nonlocal done, shown
            done += amount
            now = time.monotonic()
            bar.update(task, completed=done, state=state(now))
            if not console.is_terminal and now - shown >= PLAIN_SECONDS:
                shown = now
                say(now)

        yield advance
    say(time.monotonic())


def tracked(label: str, texts: Iterable[str], total: int | None = None) -> Iterator[str]:
    """Yield ``texts`` while showing how many there were; ``total`` adds the time left."""
    with metered(label, total, "documents") as advance:
        for text in texts:
            yield text
            advance(1)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.2f}"
