"""What several folders share: a tiny decoder with any variant on it, and a tiny project ready to train."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any, get_args

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest

from lexmem.spec.params import AllocateParams, ModelParams
from lexmem.spec.registry import load_variant
from lexmem.spec.section import Section


@pytest.fixture(autouse=True)
def _seeded() -> None:
    """Every test draws the same random numbers, alone or among others; what does not use torch does not load it."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


class Toy:
    """Builds decoders that are small enough to compare with loops; ``vocab`` ids, of which low ones are frequent."""

    vocab = 60
    base = ModelParams(width=16, layers=2, heads=4, kv_heads=2, ffn_width=24, tied=False)
    allocate = AllocateParams(rows_per_token=2.0, cap=9)

    def __init__(self) -> None:
        from lexmem.allocation import Allocations

        rng = np.random.default_rng(0)
        counts = 1000 // np.arange(1, self.vocab + 1)
        last = rng.choice(self.vocab, size=400, p=counts / counts.sum()).astype(np.int32)
        self.allocations = Allocations(last, counts)

    @property
    def context(self):
        from lexmem.spec.variant import InstallContext

        return InstallContext(self.allocations, self.allocate)

    def build(self, kind: str, base: ModelParams | None = None, seed: int = 0, **config: Any):
        """A decoder with the variant ``kind`` installed, initialised by ``seed``, in evaluation mode."""
        from lexmem.model.build import build_decoder
        from lexmem.model.module import initialise

        decoder = build_decoder(base or self.base, self.vocab, load_variant(kind)(**config), self.context)
        initialise(decoder, seed)
        return decoder.eval()

    def shaken(self, kind: str, base: ModelParams | None = None, seed: int = 0, **config: Any):
        """As :meth:`build`, but no parameter is where a zero or a tiny start would hide what depends on it."""
        import torch

        decoder = self.build(kind, base, seed, **config)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in decoder.parameters():
                parameter += 0.3 * torch.randn(parameter.shape, generator=generator)
        return decoder

    def ids(self, batch: int, length: int, low: int = 0, high: int | None = None, seed: int = 0):
        """Ids ``(batch, length)`` from ``[low, high)``."""
        import torch

        generator = torch.Generator().manual_seed(seed)
        return torch.randint(low, high or self.vocab, (batch, length), generator=generator)

    @staticmethod
    def plain(kind: str) -> dict[str, Any]:
        """Config values that choose the variant's plain backend, which every ``backend`` field lists first."""
        field = load_variant(kind).model_fields.get("backend")
        return {"backend": get_args(field.annotation)[0]} if field else {}


@pytest.fixture(scope="session")
def toy() -> Toy:
    return Toy()


class Project:
    """A project folder with everything that pretraining reads: tokens, allocation and a plan entry a run."""

    vocab, eot, steps = 1000, 999, 12
    budget = {"tokens": 12 * 32, "seq_len": 8, "batch_size": 4}  # noqa: RUF012

    def __init__(self, root: Path, configs: dict[str, dict[str, Any]]) -> None:
        from lexmem.allocation import Allocations
        from lexmem.planning.plan import make_plan
        from lexmem.spec.files import write_json
        from lexmem.spec.layout import Layout
        from lexmem.spec.params import Preset, StudyParams

        self.root, self.layout = root, Layout("toy", root)
        self._write_tokens()
        tokens = np.fromfile(self.layout.tokens / "train.bin", "<u2")[: self.budget["tokens"]]
        counts = np.bincount(tokens, minlength=self.vocab)
        allocations = Allocations(tokens.astype(np.int32), counts)
        allocations.save(self.layout.allocation / "codewords.npz")
        study = StudyParams(variants=list(configs), seeds=[0], configs={"dense": {}} | configs)
        preset = Preset.read(
            {
                "corpus": {"sources": ["none"]},
                "tokenizer": {"vocab_size": self.vocab},
                "allocate": {"rows_per_token": 2.0, "cap": 9},
                "tasks": {"names": []},
                "model": {"width": 32, "layers": 2, "heads": 4, "kv_heads": 2, "ffn_width": 96},
                "budget": self.budget,
                "train": self.train().model_dump(mode="json"),
                "study": study.model_dump(mode="json"),
            },
            "toy",
        )
        for entry in make_plan(study, preset, allocations):
            write_json(self.layout.plan(entry["variant"]), entry)

    def _write_tokens(self) -> None:
        from tokenizers import Tokenizer
        from tokenizers.models import WordLevel

        from lexmem.spec.files import write_json

        folder = self.layout.tokens
        folder.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(0)
        weights = 1 / np.arange(1, self.eot + 1)
        splits = {}
        for name, size in (("train", 420), ("valid", 120), ("test", 120)):
            ids = rng.choice(self.eot, size, p=weights / weights.sum()).astype("<u2")
            ids[19::20] = self.eot
            ids.tofile(folder / f"{name}.bin")
            np.save(folder / f"{name}.offsets.npy", np.arange(0, size + 1, 20))
            splits[name] = {"tokens": size, "documents": size // 20}
        token_bytes = np.full(self.vocab, 3, np.int32)
        token_bytes[self.eot] = 0
        np.save(folder / "token_bytes.npy", token_bytes)
        meta = {"vocab_size": self.vocab, "eot_id": self.eot, "dtype": "<u2", "splits": splits, "sha256": "toy"}
        write_json(folder / "meta.json", meta)
        Tokenizer(WordLevel({f"w{i}": i for i in range(self.vocab)}, unk_token="w0")).save(
            str(folder / "tokenizer.json")
        )

    @staticmethod
    def train(**values: Any) -> Section:
        """Training parameters of 12 steps: validated every 5 and at the end, saved every 4."""
        from lexmem.spec.params import TrainParams

        return TrainParams(**{"lr": 0.01, "valid_every": 5, "valid_tokens": 64, "checkpoint_every": 4} | values)

    def files(self, variant: str, seed: int = 0) -> dict[str, bytes]:
        """Everything a training writes, but for its timings."""
        metrics = self.layout.metrics("pretrain").glob(f"{variant}-{seed}.*")
        run = self.layout.run(variant, seed).glob("*")
        return {path.name: path.read_bytes() for path in [*metrics, *run] if ".timing" not in path.name}


@pytest.fixture
def project(tmp_path):
    """Makes a :class:`Project` with these runs in a folder of its own."""

    def make(name: str = "project", **configs: dict[str, Any]) -> Project:
        return Project(tmp_path / name, configs or {"dense": {}})

    return make


@pytest.fixture(scope="session")
def mlflow_database(tmp_path_factory) -> Path:
    """An empty MLflow database, made once: its migrations take seconds."""
    from lexmem.tracking import create_database

    root = tmp_path_factory.mktemp("mlflow")
    create_database(root)
    return root / "mlflow.db"


@pytest.fixture
def tracked(project, mlflow_database):
    """As ``project``, with an MLflow database in the folder: ready to train."""

    def make(name: str = "project", **configs: dict[str, Any]) -> Project:
        made = project(name, **configs)
        shutil.copy(mlflow_database, made.root / "mlflow.db")
        return made

    return make
