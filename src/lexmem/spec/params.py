"""``params.yaml`` (the study) and ``presets/<name>.yaml`` (what depends on the machine's size)."""

import math
import re
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, field_validator, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from lexmem.spec.errors import UserError, nearest
from lexmem.spec.section import Section

LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
Fraction = Annotated[float, Field(ge=0.0, lt=1.0)]


class CorpusParams(Section):
    """Where text comes from and how it is split."""

    sources: list[str] = Field(min_length=1)
    valid_fraction: Fraction = 0.015
    test_fraction: Fraction = 0.015
    max_documents: PositiveInt | None = None
    seed: int = 0

    @model_validator(mode="after")
    def _leaves_training(self) -> Self:
        if self.valid_fraction + self.test_fraction >= 1:
            raise ValueError(
                f"valid_fraction = {self.valid_fraction} and test_fraction = {self.test_fraction} "
                "leave no training text"
            )
        return self


class TokenizerParams(Section):
    """Byte-level BPE; trained on the first ``sample_mb`` megabytes of the training split."""

    vocab_size: Annotated[int, Field(ge=257, le=2**31 - 1)]
    sample_mb: PositiveFloat = 20.0


class AllocateParams(Section):
    """The default budget of lookup rows: ``rows_per_token`` x vocabulary, at most ``cap`` a token."""

    rows_per_token: Annotated[float, Field(ge=1.0)] = 4.0
    cap: PositiveInt = 64
    listing: Literal["fixed", "faithful"] = "fixed"
    max_codewords: PositiveInt = 4_000_000

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.rows_per_token > self.cap:
            raise ValueError(f"rows_per_token = {self.rows_per_token} exceeds cap = {self.cap} rows a token")
        return self


class TasksParams(Section):
    """Evaluation items: which tasks, how many made from held-out text, and an optional local copy."""

    names: list[str]
    cloze_items: PositiveInt = 600
    homophone_items: PositiveInt = 1000
    data_dir: str | None = None


class ModelParams(Section):
    """The dense base model: a Llama-style decoder."""

    width: PositiveInt
    layers: PositiveInt
    heads: PositiveInt
    kv_heads: PositiveInt | None = None
    ffn_width: PositiveInt
    tied: bool = True
    rope_theta: PositiveFloat = 10_000.0
    norm_eps: PositiveFloat = 1e-5
    init_std: PositiveFloat = 0.02

    @model_validator(mode="after")
    def _divisible(self) -> Self:
        if self.width % self.heads:
            raise ValueError(f"width = {self.width} is not divisible by heads = {self.heads}")
        if self.width // self.heads % 2:
            raise ValueError(f"width / heads = {self.width // self.heads} must be even for rotary embedding")
        if self.heads % (self.kv_heads or self.heads):
            raise ValueError(f"heads = {self.heads} is not divisible by kv_heads = {self.kv_heads}")
        return self


class BudgetParams(Section):
    """The data every variant sees: the first ``tokens`` training tokens, once, in windows of ``seq_len``."""

    tokens: PositiveInt
    seq_len: PositiveInt
    batch_size: PositiveInt

    @property
    def steps(self) -> int:
        """Optimizer steps of the whole budget."""
        return self.tokens // (self.seq_len * self.batch_size)

    @model_validator(mode="after")
    def _one_step(self) -> Self:
        if self.steps < 1:
            raise ValueError(
                f"tokens = {self.tokens} is under one step of batch_size x seq_len = {self.batch_size * self.seq_len}"
            )
        return self


class TrainParams(Section):
    """Optimisation and hardware; the learning rate warms up linearly and decays as a cosine."""

    lr: PositiveFloat
    min_lr_ratio: Fraction = 0.1
    warmup_fraction: Fraction = 0.05
    betas: tuple[Fraction, Fraction] = (0.9, 0.95)
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.1
    embedding_decay: bool = True
    table_decay: bool = True
    table_lr_multiplier: PositiveFloat = 1.0
    grad_clip: PositiveFloat = 1.0
    z_loss: Annotated[float, Field(ge=0.0)] = 0.0
    valid_every: PositiveInt
    valid_tokens: PositiveInt
    checkpoint_every: PositiveInt
    threads: PositiveInt = 1
    accelerator: Literal["cpu", "gpu", "auto"] = "cpu"
    devices: PositiveInt = 1
    nodes: PositiveInt = 1
    strategy: str = "auto"
    precision: Literal["32-true", "bf16-mixed", "bf16-true"] = "32-true"

    @field_validator("betas", mode="before")
    @classmethod
    def _pair(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value


class EvaluateParams(Section):
    """How much is scored; ``limit`` is items per task (null: all)."""

    limit: PositiveInt | None = 200
    heldout_tokens: PositiveInt = 200_000
    batch_tokens: PositiveInt = 8_192


class BenchParams(Section):
    """Timing protocol of decode and training speed."""

    batch_sizes: list[PositiveInt] = Field(default=[1], min_length=1)
    prompt_tokens: PositiveInt = 32
    new_tokens: PositiveInt = 64
    repeats: PositiveInt = 5
    train_steps: PositiveInt = 5


class StudyParams(Section):
    """Which runs a study has: ``variants`` names entries of ``configs``; each entry's ``variant`` (default: its
    name) says which file of ``lexmem/variants`` it configures."""

    variants: list[str] = Field(min_length=1)
    seeds: list[NonNegativeInt] = Field(min_length=1)
    configs: dict[str, dict[str, Any]]

    @model_validator(mode="after")
    def _configured(self) -> Self:
        for name in self.configs:
            if not LABEL.fullmatch(name):
                raise ValueError(f"configs: {name!r} names files and stages; allowed: letters, digits, - and _")
        for name in self.variants:
            if name not in self.configs:
                raise ValueError(f"variants: {name!r} has no block in configs; {nearest(name, self.configs)}")
        for field in ("variants", "seeds"):
            values = getattr(self, field)
            if len(set(values)) < len(values):
                raise ValueError(f"{field} = {values!r} names one twice")
        return self


class Study(StudyParams):
    """``params.yaml``: the active preset and its runs."""

    preset: str


class Preset(Section):
    """One file of ``presets/``."""

    corpus: CorpusParams
    tokenizer: TokenizerParams
    allocate: AllocateParams = AllocateParams()
    tasks: TasksParams
    model: ModelParams
    budget: BudgetParams
    train: TrainParams
    evaluate: EvaluateParams = EvaluateParams()
    bench: BenchParams = BenchParams()
    study: StudyParams


def read_yaml(path: Path) -> Any:
    """Read YAML 1.2 as DVC does (``1e-3`` is a number).

    Raises:
        UserError: if the file is missing or is not YAML.
    """
    try:
        return YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text: {error}") from None
    except YAMLError as error:
        raise UserError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from None


def preset_names(root: Path = Path()) -> list[str]:
    """Names of the files in ``presets/``."""
    return sorted(path.stem for path in (root / "presets").glob("*.yaml"))


def load_preset(name: str, root: Path = Path()) -> Preset:
    """Read and validate ``presets/<name>.yaml``."""
    if name not in preset_names(root):
        raise UserError(f"preset = {name!r}: no such preset; {nearest(name, preset_names(root))}")
    path = root / "presets" / f"{name}.yaml"
    return Preset.read(read_yaml(path), f"presets/{name}.yaml")


def load_study(root: Path = Path()) -> Study:
    """Read and validate ``params.yaml``."""
    return Study.read(read_yaml(root / "params.yaml"), "params.yaml")


def rows_budget(params: AllocateParams, vocab_size: int) -> int:
    """Total rows of an allocation: ``floor(rows_per_token x |V|)``."""
    return math.floor(params.rows_per_token * vocab_size)
