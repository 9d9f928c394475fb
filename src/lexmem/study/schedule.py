"""Which stage may start when."""

from collections.abc import Collection, Sequence

from lexmem.study.stages import Stage


class Schedule:
    """Stages to run, each after those it needs; the rest of the pipeline counts as done.

    Args:
        stages: what is to be run, in order of preference.
        jobs: how many may run at once.
        alone: kinds that run with nothing beside them, because they measure time.
    """

    def __init__(self, stages: Sequence[Stage], jobs: int, alone: Collection[str]) -> None:
        self.waiting = {stage.name: stage for stage in stages}
        self.running: dict[str, Stage] = {}
        self.done: list[Stage] = []
        self.failed: list[Stage] = []
        self.skipped: list[Stage] = []
        self._jobs, self._alone = jobs, alone

    def startable(self) -> list[Stage]:
        """Stages to start now. One that runs alone waits until no other can start, and then keeps the rest waiting."""
        if any(stage.kind in self._alone for stage in self.running.values()):
            return []
        unfinished = self.waiting.keys() | self.running.keys()
        ready = [stage for stage in self.waiting.values() if not stage.needs & unfinished]
        beside = [stage for stage in ready if stage.kind not in self._alone]
        if beside or self.running:
            return beside[: self._jobs - len(self.running)]
        return ready[:1]

    def start(self, stage: Stage) -> None:
        self.running[stage.name] = self.waiting.pop(stage.name)

    def finish(self, stage: Stage, succeeded: bool) -> None:
        """Move a running stage to the done or the failed ones; what builds on a failed one is skipped."""
        del self.running[stage.name]
        if succeeded:
            self.done.append(stage)
            return
        self.failed.append(stage)
        lost = {stage.name}
        for other in list(self.waiting.values()):  # in the pipeline's order: needs come before what needs them
            if other.needs & lost:
                lost.add(other.name)
                self.skipped.append(self.waiting.pop(other.name))

    @property
    def over(self) -> bool:
        return not self.waiting and not self.running
