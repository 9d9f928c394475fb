"""What DVC knows of a study: its stages, what each needs, and which are out of date."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stage:
    """One stage of the pipeline.

    Attributes:
        name: as DVC prints it, ``pretrain@pocket-dense-0``.
        needs: names of the stages whose outputs it reads.
    """

    name: str
    needs: frozenset[str]

    @property
    def kind(self) -> str:
        """The name in ``dvc.yaml``: ``pretrain``."""
        return self.name.split("@")[0]


@dataclass(frozen=True)
class Pipeline:
    """The active stages in the order of ``dvc.yaml``, and the names of those that DVC would run again."""

    stages: list[Stage]
    outdated: frozenset[str]

    @property
    def remaining(self) -> list[Stage]:
        """The outdated stages and all that build on them, in order."""
        names = set(self.outdated)
        grown = True
        while grown:
            more = {stage.name for stage in self.stages if stage.needs & names} - names
            names |= more
            grown = bool(more)
        return [stage for stage in self.stages if stage.name in names]


def read_pipeline() -> Pipeline:
    """Ask DVC, in this process, about the project in the working directory."""
    from dvc.repo import Repo

    with Repo() as repo:
        index = repo.index
        stages = [
            Stage(stage.addressing, frozenset(need.addressing for need in index.graph.successors(stage)))
            for stage in index.stages
        ]
        return Pipeline(stages, frozenset(repo.status()))
