"""The decoder: embed -> blocks -> norm -> head, with five named sites where variants act.

===========  ==========================  ====================================
site         module's forward            acts
===========  ==========================  ====================================
embed        ``(x, site) -> (x, Aux)``   on the stream, after the embedding
attention    ``(v, site) -> (v, Aux)``   on the values (``value_sites``)
ffn          ``(n, site) -> (y, Aux)``   in place of SwiGLU
beside       ``(n, site) -> (y, Aux)``   added to the FFN's output
between      ``(x, site) -> (x, Aux)``   on the stream, after a block
===========  ==========================  ====================================

``memories`` holds modules with ``prepare(tokens)``, run once a forward pass before the first block; what they return
is handed to every site under the memory's name.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lexmem.model.aux import NOTHING, Aux
from lexmem.model.cost import CostContext
from lexmem.model.layers import Attention, Embedding, LayerCache, Linear, RMSNorm, SwiGLU, rotary_angles
from lexmem.model.module import Init, Module
from lexmem.model.tokens import Site, TokenIndex
from lexmem.spec.params import ModelParams


class Cache:
    """Keys and values of every layer for incremental decoding."""

    def __init__(self, layers: list[LayerCache]) -> None:
        self.layers = layers
        self.length = 0


class Block(Module):
    """Pre-norm transformer block with the sites ``ffn``, ``beside`` and ``between``."""

    def __init__(self, model: ModelParams) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(model.width, model.norm_eps)
        self.attention = Attention(model)
        self.ffn_norm = RMSNorm(model.width, model.norm_eps)
        self.ffn: nn.Module = SwiGLU(model)
        self.beside = nn.ModuleList()
        self.between = nn.ModuleList()

    def forward(
        self, x: Tensor, site: Site, angles: tuple[Tensor, Tensor], cache: LayerCache | None, start: int
    ) -> tuple[Tensor, Aux]:
        y, aux = self.attention(self.attention_norm(x), site, angles, cache, start)
        x = x + y
        n = self.ffn_norm(x)
        for module in (self.ffn, *self.beside):
            y, added = module(n, site)
            x, aux = x + y, aux + added
        for module in self.between:
            x, added = module(x, site)
            aux += added
        return x, aux


class Decoder(Module):
    """A Llama-style decoder-only language model."""

    def __init__(self, model: ModelParams, vocab_size: int) -> None:
        super().__init__()
        self.params, self.vocab_size = model, vocab_size
        self.embedding = Embedding(vocab_size, model.width, Init(std=model.init_std))
        self.embed = nn.ModuleList()
        self.memories = nn.ModuleDict()
        self.blocks = nn.ModuleList(Block(model) for _ in range(model.layers))
        self.norm = RMSNorm(model.width, model.norm_eps)
        self.head = None if model.tied else Linear(model.width, vocab_size, Init(std=model.init_std), "head")

    @property
    def head_weight(self) -> Tensor:
        """``(V, D)``: the embedding's where they are tied."""
        return self.embedding.weight if self.head is None else self.head.weight

    def flops(self, context: CostContext) -> float:
        # An untied head counts for itself as a Linear; the product is paid either way.
        return 2.0 * self.vocab_size * self.params.width if self.head is None else 0.0

    def hidden(
        self, ids_BT: Tensor, cache: Cache | None = None, want: frozenset[str] = frozenset()
    ) -> tuple[Tensor, Aux]:
        """Final normed states ``(B, T, D)``; ``want`` names the diagnostics to return.

        With a ``cache``, ``ids_BT`` continue the ``cache.length`` tokens that are already in it.
        """
        tokens = TokenIndex(ids_BT)
        memory = {name: module.prepare(tokens) for name, module in self.memories.items()}
        start = cache.length if cache else 0
        positions = torch.arange(start, start + ids_BT.shape[1], device=ids_BT.device)
        x, aux = self.embedding(ids_BT), NOTHING
        angles = rotary_angles(positions, self.params.width // self.params.heads, self.params.rope_theta, x.dtype)
        for module in self.embed:
            x, added = module(x, Site(tokens, memory, -1, want))
            aux += added
        for layer, block in enumerate(self.blocks):
            x, added = block(
                x, Site(tokens, memory, layer, want), angles, cache.layers[layer] if cache else None, start
            )
            aux += added
        if cache:
            cache.length += ids_BT.shape[1]
        return self.norm(x), aux

    def logits(self, hidden: Tensor) -> Tensor:
        """``(..., D) -> (..., V)``."""
        return F.linear(hidden, self.head_weight)

    def forward(
        self, ids_BT: Tensor, cache: Cache | None = None, want: frozenset[str] = frozenset()
    ) -> tuple[Tensor, Aux]:
        """Logits ``(B, T, V)`` and what the variants return beside them."""
        hidden, aux = self.hidden(ids_BT, cache, want)
        return self.logits(hidden), aux

    def new_cache(self, batch_size: int, max_len: int) -> Cache:
        """An empty cache for ``batch_size`` sequences of at most ``max_len`` tokens."""
        attention = self.blocks[0].attention
        shape = (batch_size, attention.kv_heads, max_len, attention.head_width)
        like = self.embedding.weight
        return Cache([LayerCache(like.new_zeros(shape), like.new_zeros(shape)) for _ in self.blocks])
