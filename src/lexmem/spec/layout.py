"""Where every file of a study is: the one home of paths, relative to the project's root."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """Paths of one preset."""

    preset: str
    root: Path = Path()

    @property
    def data(self) -> Path:
        return self.root / "data" / self.preset

    @property
    def corpus(self) -> Path:
        """``{train,valid,test}.jsonl`` and ``manifest.json``."""
        return self.data / "corpus"

    @property
    def tokens(self) -> Path:
        """``tokenizer.json``, ``meta.json`` and a memory-mapped file a split."""
        return self.data / "tokens"

    @property
    def allocation(self) -> Path:
        """``codewords.npz``: what every allocation of rows is computed from."""
        return self.data / "allocation"

    @property
    def tasks(self) -> Path:
        """Evaluation items, one JSON Lines file a task and split."""
        return self.data / "tasks"

    def plan(self, variant: str) -> Path:
        """The ledger entry on which alone a variant's training depends."""
        return self.root / "runs" / self.preset / "plan" / f"{variant}.json"

    def run(self, variant: str, seed: int) -> Path:
        """A trained model, self-contained: weights, plan, tokenizer, allocation."""
        return self.root / "runs" / self.preset / f"{variant}-{seed}"

    @property
    def scratch(self) -> Path:
        """Checkpoints of unfinished trainings; never a declared output."""
        return self.root / ".scratch" / self.preset

    @property
    def results(self) -> Path:
        return self.root / "results" / self.preset

    def metrics(self, stage: str) -> Path:
        """A stage's metrics: ``<name>.json`` summaries and ``<name>.csv`` tidy frames."""
        return self.results / "metrics" / stage

    @property
    def tables(self) -> Path:
        return self.results / "tables"

    @property
    def figures(self) -> Path:
        return self.results / "figures"
