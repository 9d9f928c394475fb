"""L3: a large lookup layer between decoder blocks (Tseng & De Sa 2026, arXiv:2601.21461).

    L3(x, t) = x + W_mix [ RMSNorm( W_up ( V_t^T softmax(K_t q) ) ) ; x ],   q = RMSNorm(x)

Token t owns ``d_t`` rows of the key and the value table, given by an allocation. Shapes: N positions, R rows of the
batch's distinct ids, D model width, E width of a value row.
"""

from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt, model_validator
from torch import Tensor

from lexmem.model.aux import Aux
from lexmem.model.cost import CostContext
from lexmem.model.decoder import Decoder
from lexmem.model.grouped import Backend, Grouping, attend_rows
from lexmem.model.layers import Linear, RMSNorm
from lexmem.model.lookup import Fetch, LookupTable
from lexmem.model.module import IDENTITY, Init, Module
from lexmem.model.tokens import Site, TokenIndex
from lexmem.spec.errors import UserError
from lexmem.spec.params import ModelParams
from lexmem.spec.variant import InstallContext, VariantConfig


class Config(VariantConfig):
    """Where the paper's readers disagree our defaults are: residual add, normed query, raw x in the concatenation,
    zero-initialised ``W_mix``, no scale on the logits, ``d_emb = D / 2`` (D if tied), ``d_up = 2 D``. What W_up makes
    of fresh tables has a mean square near 1e-7, so ``up_norm_eps`` is far below the base model's.

    ``layers`` are blocks (from 0) after which the layer stands; none given: once, in the middle. ``rows_per_token``
    and ``cap`` default to the preset's ``allocate`` section.
    """

    title: ClassVar[str] = "L3"
    degenerate: ClassVar[dict] = {"layers": []}
    diagnostics: ClassVar[tuple[str, ...]] = ("row_attention",)

    layers: list[NonNegativeInt] | Literal["middle"] = "middle"
    allocation: Literal["lzw", "uniform", "frequency"] = "lzw"
    rows_per_token: PositiveFloat | Literal["preset"] = "preset"
    cap: PositiveInt | Literal["preset"] = "preset"
    tied: bool = False
    value_ratio: PositiveFloat = 0.5
    up_ratio: PositiveFloat = 2.0
    residual: Literal["add", "replace"] = "add"
    query_norm: bool = True
    concat_norm: bool = False
    scale: bool = False
    up_norm_eps: PositiveFloat = 1e-8
    mix_std: NonNegativeFloat = 0.0
    backend: Backend = "bucketed"

    @model_validator(mode="after")
    def _once(self) -> Self:
        if len(set(self.layers)) < len(self.layers) and self.layers != "middle":
            raise ValueError(f"layers = {self.layers} names one twice")
        return self

    def install(self, decoder: Decoder, context: InstallContext) -> None:
        depth = decoder.params.layers
        layers = [max(0, depth // 2 - 1)] if self.layers == "middle" else self.layers
        if not layers:
            return
        rows_V = self._rows(decoder.vocab_size, context)
        mean_rows = context.allocations.expected_rows(rows_V)
        for layer in layers:
            if layer >= depth:
                raise UserError(f"l3: layers = {layers}: the model has blocks 0 to {depth - 1}")
            tables = Tables(rows_V, mean_rows, decoder.params.width, self)
            decoder.memories[memory_name(layer)] = tables
            decoder.blocks[layer].between.append(LookupLayer(decoder.params, mean_rows, self))

    def value_width(self, width: int) -> int:
        """``d_emb``: tied tables need the key's width."""
        return width if self.tied else int(self.value_ratio * width)

    def _rows(self, vocab_size: int, context: InstallContext) -> np.ndarray:
        preset = context.allocate
        per_token = preset.rows_per_token if self.rows_per_token == "preset" else self.rows_per_token
        cap = preset.cap if self.cap == "preset" else self.cap
        return context.allocations.rows(self.allocation, int(per_token * vocab_size), cap)


def memory_name(layer: int) -> str:
    """Name of a layer's tables among the decoder's memories."""
    return f"l3_{layer}"


class Memory:
    """Rows of the batch's distinct ids, on their way, and which position meets which."""

    def __init__(self, keys: Fetch, values: Fetch, grouping: Grouping) -> None:
        self.grouping, self._keys, self._values = grouping, keys, values

    @cached_property
    def keys(self) -> Tensor:
        """``(R, D)``."""
        return self._keys.get()

    @cached_property
    def values(self) -> Tensor:
        """``(R, E)``."""
        return self._values.get()


class Tables(Module):
    """Key and value rows; token t owns rows ``first[t] .. first[t] + count[t] - 1``."""

    def __init__(self, rows_V: np.ndarray, mean_rows: float, width: int, config: Config) -> None:
        super().__init__()
        self.backend = config.backend
        self.keys = LookupTable(int(rows_V.sum()), width, mean_rows)
        self.values = None if config.tied else LookupTable(int(rows_V.sum()), config.value_width(width), mean_rows)
        self.register_buffer("count_V", torch.from_numpy(rows_V.astype(np.int64)))
        self.register_buffer("first_V", torch.from_numpy((rows_V.cumsum() - rows_V).astype(np.int64)))

    def prepare(self, tokens: TokenIndex) -> Memory:
        count_U, first_U = self.count_V[tokens.unique_U], self.first_V[tokens.unique_U]
        start_U = count_U.cumsum(0) - count_U
        within_R = torch.arange(int(count_U.sum()), device=count_U.device)
        rows_R = within_R + torch.repeat_interleave(first_U - start_U, count_U)
        keys = self.keys.fetch(rows_R)
        values = keys if self.values is None else self.values.fetch(rows_R)
        return Memory(keys, values, Grouping(tokens, count_U, self.backend))


class LookupLayer(Module):
    """Attention over the token's own rows, mixed back into the stream."""

    def __init__(self, params: ModelParams, mean_rows: float, config: Config) -> None:
        super().__init__()
        width, up_width = params.width, int(config.up_ratio * params.width)
        self.mean_rows, self.value_width = mean_rows, config.value_width(width)
        self.scale = width**-0.5 if config.scale else 1.0
        self.replaces = config.residual == "replace"
        self.query_norm = RMSNorm(width, params.norm_eps) if config.query_norm else None
        self.concat_norm = RMSNorm(width, params.norm_eps) if config.concat_norm else None
        self.up = Linear(self.value_width, up_width, Init(std=params.init_std))
        self.up_norm = RMSNorm(up_width, config.up_norm_eps)
        # W_mix = [W_lookup ; W_stream], held apart because "replace" starts the second at the identity.
        mix = Init(std=config.mix_std)
        self.mix_lookup = Linear(up_width, width, mix)
        self.mix_stream = Linear(width, width, IDENTITY if self.replaces else mix)

    def flops(self, context: CostContext) -> float:
        width = self.mix_stream.weight.shape[0]
        return 2.0 * self.mean_rows * (width + self.value_width)

    def forward(self, x_BTD: Tensor, site: Site) -> tuple[Tensor, Aux]:
        memory: Memory = site.memory[memory_name(site.layer)]
        query = self.query_norm(x_BTD) if self.query_norm else x_BTD
        query_ND = self.scale * query.reshape(-1, query.shape[-1])
        want = "row_attention" in site.want
        found_NE, entropy_N = attend_rows(query_ND, memory.keys, memory.values, memory.grouping, want)
        lookup = self.up_norm(self.up(found_NE)).view(*x_BTD.shape[:2], -1)
        stream = self.concat_norm(x_BTD) if self.concat_norm else x_BTD
        y = self.mix_lookup(lookup) + self.mix_stream(stream)
        diagnostics = {"row_attention": {site.layer: entropy_N}} if want else {}
        return y if self.replaces else x_BTD + y, Aux(diagnostics=diagnostics)
