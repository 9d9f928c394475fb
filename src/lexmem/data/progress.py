"""Progress of long passes over text: a live line with rates on a terminal, one line a pass elsewhere."""

import sys
import time
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

_REFRESH_SECONDS = 0.2


def tracked(label: str, texts: Iterable[str], total: int | None = None) -> Iterator[str]:
    """Yield ``texts`` while showing documents, megabytes and rate; ``total`` (documents) adds the time left."""
    console = Console(stderr=True)
    columns = [SpinnerColumn(), TextColumn(f"{label:<18}"), TextColumn("{task.fields[state]}")]
    columns += [BarColumn(), TimeRemainingColumn()] if total else [TimeElapsedColumn()]
    started = shown = time.monotonic()
    documents = characters = 0
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(label, total=total, state="")
        for text in texts:
            yield text
            documents += 1
            characters += len(text)
            now = time.monotonic()
            if now - shown > _REFRESH_SECONDS:
                shown = now
                progress.update(task, completed=documents, state=_state(documents, characters, now - started))
    print(f"{label:<18} {_state(documents, characters, time.monotonic() - started)}", file=sys.stderr, flush=True)


def _state(documents: int, characters: int, seconds: float) -> str:
    megabytes = characters / 1e6
    return f"{documents:,} documents, {megabytes:.1f} MB in {seconds:.1f} s ({megabytes / max(seconds, 1e-3):.1f} MB/s)"
