"""What is done, what runs and what remains: a live table on a terminal, a line an event elsewhere."""

from collections import defaultdict
from typing import Protocol

from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from lexmem.study.processes import Child, last_line
from lexmem.study.schedule import Schedule
from lexmem.study.stages import Stage


class Progress:
    """Counts and times of a study that runs."""

    def __init__(self, schedule: Schedule, jobs: int) -> None:
        self.schedule, self.jobs = schedule, jobs
        self.children: dict[str, Child] = {}
        self.seconds: dict[str, list[float]] = defaultdict(list)

    @property
    def total(self) -> int:
        s = self.schedule
        return len(s.waiting) + len(s.running) + len(s.done) + len(s.failed) + len(s.skipped)

    def left(self) -> str:
        """``about 12 min left, not counting bench, report``: kinds of which none has finished yet are unknown."""
        seconds, unknown = 0.0, {}
        for stage in [*self.schedule.running.values(), *self.schedule.waiting.values()]:
            if finished := self.seconds.get(stage.kind):
                spent = self.children[stage.name].seconds if stage.name in self.children else 0.0
                seconds += max(0.0, sum(finished) / len(finished) - spent)
            else:
                unknown[stage.kind] = None
        if not seconds:
            return ""
        beside = f", not counting {', '.join(unknown)}" if unknown else ""
        return f"about {duration(seconds / self.jobs)} left{beside}"


class View(Protocol):
    """Shows a study's progress inside a ``with`` block."""

    def __enter__(self) -> "View": ...
    def __exit__(self, *exception: object) -> None: ...
    def refresh(self) -> None: ...
    def started(self, stage: Stage) -> None: ...
    def finished(self, stage: Stage, seconds: float, succeeded: bool) -> None: ...


class LiveView:
    """A table that redraws itself: overall bar, a row a running stage with the newest line of its log."""

    def __init__(self, progress: Progress, console: Console) -> None:
        self._progress = progress
        self._live = Live(console=console, auto_refresh=False, transient=True)

    def __enter__(self) -> "LiveView":
        self._live.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._live.__exit__(None, None, None)

    def started(self, stage: Stage) -> None:
        self.refresh()

    def finished(self, stage: Stage, seconds: float, succeeded: bool) -> None:
        mark = "[green]done[/]" if succeeded else "[red]FAILED[/]"
        self._live.console.print(f"{mark} {stage.name} in {duration(seconds)}", highlight=False)

    def refresh(self) -> None:
        table = Table.grid(padding=(0, 2))
        ended, total = len(self._progress.schedule.done), self._progress.total
        table.add_row(f"{ended}/{total} stages", ProgressBar(total, ended, width=30), Text(self._progress.left()))
        for name, child in self._progress.children.items():
            line = Text(last_line(child.log), style="dim", overflow="ellipsis", no_wrap=True)
            table.add_row(Text(name, style="bold"), duration(child.seconds), line)
        self._live.update(table, refresh=True)


class PlainView:
    """A line when a stage starts or ends."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __enter__(self) -> "PlainView":
        return self

    def __exit__(self, *exception: object) -> None: ...

    def refresh(self) -> None: ...

    def started(self, stage: Stage) -> None:
        print(f"start  {stage.name}", flush=True)

    def finished(self, stage: Stage, seconds: float, succeeded: bool) -> None:
        schedule = self._progress.schedule
        count = f"{len(schedule.done)}/{self._progress.total} stages"
        note = "; ".join(filter(None, [count, self._progress.left()]))
        print(f"{'done' if succeeded else 'FAILED':<6} {stage.name} in {duration(seconds)} ({note})", flush=True)


def duration(seconds: float) -> str:
    """``45 s``, ``12 min``, ``3.5 h``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
