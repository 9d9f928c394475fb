"""Layers of the base decoder: linear, norm, rotary position, attention, SwiGLU.

Shapes: B batch, T sequence, D model width, H heads, G key-value heads, C head width, F FFN width.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lexmem.model.aux import NOTHING, Aux
from lexmem.model.cost import CostContext
from lexmem.model.module import ONES, Group, Init, Module
from lexmem.model.tokens import Site
from lexmem.spec.params import ModelParams


class Linear(Module):
    """``y = W x`` without bias: every dense matrix product goes through this."""

    def __init__(self, d_in: int, d_out: int, init: Init, group: Group = "matrix") -> None:
        super().__init__()
        self.declare("weight", d_out, d_in, init=init, group=group)

    def flops(self, context: CostContext) -> float:
        return 2.0 * self.weight.numel()

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight)


class RMSNorm(Module):
    """Root-mean-square norm with a learned gain."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.declare("weight", width, init=ONES, group="norm")

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight, self.eps)


class Embedding(Module):
    """Token embedding; a row costs no FLOPs."""

    def __init__(self, vocab_size: int, width: int, init: Init) -> None:
        super().__init__()
        self.declare("weight", vocab_size, width, init=init, group="embedding")

    def forward(self, ids: Tensor) -> Tensor:
        return F.embedding(ids, self.weight)


def rotary_angles(positions_T: Tensor, head_width: int, theta: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Cosine and sine ``(T, C)`` of rotary position embedding (RoFormer, eq. 34), halves layout."""
    exponent = torch.arange(0, head_width, 2, device=positions_T.device, dtype=torch.float32) / head_width
    angles = positions_T.float()[:, None] / theta ** exponent[None]
    angles = torch.cat([angles, angles], dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


def rotate(x_BHTC: Tensor, angles: tuple[Tensor, Tensor]) -> Tensor:
    """Apply rotary angles to queries or keys."""
    cos, sin = angles
    first, second = x_BHTC.chunk(2, dim=-1)
    return x_BHTC * cos + torch.cat([-second, first], dim=-1) * sin


class LayerCache:
    """Keys and values ``(B, G, max_len, C)`` of one layer, filled from the front."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys, self.values = keys, values

    def append(self, start: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Write at ``start`` and return everything up to the new end.

        Raises:
            ValueError: if the cache is too short; a single token beyond its end would be dropped in silence.
        """
        end = start + keys.shape[2]
        if end > self.keys.shape[2]:
            raise ValueError(f"{end} tokens do not fit into a cache of {self.keys.shape[2]}")
        self.keys[:, :, start:end] = keys
        self.values[:, :, start:end] = values
        return self.keys[:, :, :end], self.values[:, :, :end]


class Attention(Module):
    """Causal (grouped-query) attention with rotary positions; ``value_sites`` may change the values."""

    def __init__(self, model: ModelParams) -> None:
        super().__init__()
        width, heads = model.width, model.heads
        self.heads, self.kv_heads = heads, model.kv_heads or heads
        self.head_width = width // heads
        kv_width = self.kv_heads * self.head_width
        init = Init(std=model.init_std)
        self.query = Linear(width, width, init)
        self.key = Linear(width, kv_width, init)
        self.value = Linear(width, kv_width, init)
        self.output = Linear(width, width, residual_init(model))
        self.value_sites = nn.ModuleList()

    def flops(self, context: CostContext) -> float:
        # Scores and their mix over the full square: 2 products of 2 T D each.
        return 4.0 * context.seq_len * self.heads * self.head_width

    def forward(
        self, n_BTD: Tensor, site: Site, angles: tuple[Tensor, Tensor], cache: LayerCache | None, start: int
    ) -> tuple[Tensor, Aux]:
        batch, length, _ = n_BTD.shape
        aux = NOTHING
        value_BTK = self.value(n_BTD)
        for module in self.value_sites:
            value_BTK, added = module(value_BTK, site)
            aux += added
        query = rotate(self._split(self.query(n_BTD), self.heads), angles)
        key = rotate(self._split(self.key(n_BTD), self.kv_heads), angles)
        value = self._split(value_BTK, self.kv_heads)
        mask = None
        if cache is not None:
            key, value = cache.append(start, key, value)
            if start and length > 1:
                mask = torch.ones(length, start + length, dtype=torch.bool, device=key.device).tril(start)
        mixed = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=start == 0, enable_gqa=self.kv_heads != self.heads
        )
        return self.output(mixed.transpose(1, 2).reshape(batch, length, -1)), aux

    def _split(self, x_BTK: Tensor, heads: int) -> Tensor:
        batch, length, _ = x_BTK.shape
        return x_BTK.view(batch, length, heads, self.head_width).transpose(1, 2)  # (B, heads, T, C)


class SwiGLU(Module):
    """``W_down (silu(W_gate n) * W_up n)``."""

    def __init__(self, model: ModelParams) -> None:
        super().__init__()
        init = Init(std=model.init_std)
        self.gate = Linear(model.width, model.ffn_width, init)
        self.up = Linear(model.width, model.ffn_width, init)
        self.down = Linear(model.ffn_width, model.width, residual_init(model))

    def forward(self, n: Tensor, site: Site) -> tuple[Tensor, Aux]:
        return self.down(F.silu(self.gate(n)) * self.up(n)), NOTHING


def residual_init(model: ModelParams) -> Init:
    """Start of matrices that write into the residual stream: scaled by ``1 / sqrt(2 L)`` as in GPT-2."""
    return Init(std=model.init_std / math.sqrt(2 * model.layers))
