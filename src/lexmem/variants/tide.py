"""TIDE: token-identity memory beside every FFN (Jaiswal et al. 2026, arXiv:2605.06216).

    M_k(v) = RMSNorm(E_k[v])                      K tables of |V| rows, gathered once a forward pass
    alpha  = softmax(W_r n) in R^{K+1}            one router a layer; the last weight is the null bank's
    h'     = h + FFN(n) + sum_{k<=K} alpha_k M_k(v)

Shapes: N positions, U distinct ids, K banks, D model width.
"""

from functools import cached_property
from typing import ClassVar

import torch
import torch.nn.functional as F
from pydantic import NonNegativeFloat, NonNegativeInt
from torch import Tensor

from lexmem.model.aux import Aux
from lexmem.model.cost import CostContext
from lexmem.model.decoder import Decoder
from lexmem.model.grouped import Backend, Grouping, mix_rows
from lexmem.model.lookup import Fetch, LookupTable
from lexmem.model.module import ONES, ZEROS, Init, Module
from lexmem.model.tokens import Site, TokenIndex
from lexmem.spec.variant import InstallContext, VariantConfig

MEMORY = "tide"


class Config(VariantConfig):
    """Where the paper is silent: ``bank_gain``, ``router_std`` and ``null_bias`` are our defaults."""

    title: ClassVar[str] = "TIDE"
    degenerate: ClassVar[dict] = {"banks": 0}
    knobs: ClassVar[dict[str, str]] = {"flops": "ffn_width", "table_bytes": "banks", "total": "banks"}
    diagnostics: ClassVar[tuple[str, ...]] = ("null_weight", "bank_weights")

    banks: NonNegativeInt = 8
    bank_gain: bool = True
    router_std: NonNegativeFloat = 0.0
    null_bias: bool = False
    backend: Backend = "bucketed"

    def install(self, decoder: Decoder, context: InstallContext) -> None:
        if self.banks == 0:
            return
        params = decoder.params
        decoder.memories[MEMORY] = Banks(decoder.vocab_size, params.width, params.norm_eps, self)
        for block in decoder.blocks:
            block.beside.append(Router(params.width, self))


class Memory:
    """Rows of the batch's distinct ids, on their way, and which position meets which."""

    def __init__(self, fetch: Fetch, grouping: Grouping, banks: "Banks") -> None:
        self.grouping, self._fetch, self._banks = grouping, fetch, banks

    @cached_property
    def rows(self) -> Tensor:
        """``(U K, D)``: awaited and normalised when the first layer asks, then shared by all layers."""
        return self._banks.norm(self._fetch.get())


class Banks(Module):
    """K tables side by side: token v owns rows ``v K .. v K + K - 1``."""

    def __init__(self, vocab_size: int, width: int, eps: float, config: Config) -> None:
        super().__init__()
        self.banks, self.eps, self.backend = config.banks, eps, config.backend
        self.table = LookupTable(vocab_size * config.banks, width, rows_per_token=config.banks)
        if config.bank_gain:
            self.declare("gain", self.banks, width, init=ONES, group="norm")
        else:
            self.gain = None

    def prepare(self, tokens: TokenIndex) -> Memory:
        bank_K = torch.arange(self.banks, device=tokens.flat_N.device)
        rows_UK = tokens.unique_U[:, None] * self.banks + bank_K
        grouping = Grouping(tokens, torch.full_like(tokens.unique_U, self.banks), self.backend)
        return Memory(self.table.fetch(rows_UK.reshape(-1)), grouping, self)

    def norm(self, rows: Tensor) -> Tensor:
        """RMSNorm of each row, with its bank's gain: ``(U K, D)``."""
        width = rows.shape[-1]
        normed = F.rms_norm(rows, (width,), eps=self.eps)
        if self.gain is None:
            return normed
        return (normed.view(-1, self.banks, width) * self.gain).view(-1, width)


class Router(Module):
    """One layer's softmax over the banks and the null bank (the last logit)."""

    def __init__(self, width: int, config: Config) -> None:
        super().__init__()
        self.banks = config.banks
        self.declare("weight", config.banks + 1, width, init=Init(std=config.router_std), group="router")
        if config.null_bias:
            self.declare("null_bias", 1, init=ZEROS, group="router")
        else:
            self.null_bias = None

    def flops(self, context: CostContext) -> float:
        width = self.weight.shape[1]
        return 2.0 * width * (self.banks + 1) + 2.0 * width * self.banks  # router; mix

    def forward(self, n_BTD: Tensor, site: Site) -> tuple[Tensor, Aux]:
        memory: Memory = site.memory[MEMORY]
        n_ND = n_BTD.reshape(-1, n_BTD.shape[-1])
        logits = n_ND @ self.weight.T
        if self.null_bias is not None:
            logits = torch.cat([logits[:, :-1], logits[:, -1:] + self.null_bias], dim=1)
        alpha = logits.softmax(dim=-1)  # (N, K + 1)
        y_ND = mix_rows(alpha[:, :-1], memory.rows, memory.grouping)
        found = {"null_weight": alpha[:, -1], "bank_weights": alpha[:, :-1]}
        diagnostics = {name: {site.layer: found[name].detach()} for name in site.want & found.keys()}
        return y_ND.view_as(n_BTD), Aux(diagnostics=diagnostics)
