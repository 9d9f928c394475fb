"""MoE: dropless token-choice experts in place of the FFN, in the manner of OLMoE (arXiv:2409.02060).

Softmax router in float32, top-k, SwiGLU experts; load-balance loss ``E sum_e f_e P_e`` (1 when balanced) and router
z-loss, both means over layers. With ``bias_rate`` > 0 selection uses sigmoid scores plus a bias that is nudged towards
balance (DeepSeek-V3, arXiv:2412.19437, section 2.1.2).

Shapes: N positions, E experts, A = N top_k assignments sorted by expert, D model width, F expert width.
"""

from typing import ClassVar, Self

import torch
from pydantic import NonNegativeFloat, PositiveInt, model_validator
from torch import Tensor

from lexmem.model.aux import Aux
from lexmem.model.cost import CostContext
from lexmem.model.decoder import Decoder
from lexmem.model.experts import BACKENDS, Backend
from lexmem.model.layers import residual_init
from lexmem.model.module import Init, Module
from lexmem.model.tokens import Site
from lexmem.spec.params import ModelParams
from lexmem.spec.variant import InstallContext, VariantConfig


class Config(VariantConfig):
    """``experts`` is the knob of ``match: {total: <run>}``. An expert's width is ``ffn_width // top_k``."""

    title: ClassVar[str] = "MoE"
    degenerate: ClassVar[dict] = {"experts": 1, "top_k": 1, "balance_loss": 0.0, "router_z_loss": 0.0}
    knobs: ClassVar[dict[str, str]] = {"flops": "ffn_width", "total": "experts"}
    diagnostics: ClassVar[tuple[str, ...]] = ("expert_choice", "router_probabilities")

    experts: PositiveInt = 8
    top_k: PositiveInt = 2
    balance_loss: NonNegativeFloat = 0.01
    router_z_loss: NonNegativeFloat = 0.001
    renormalise: bool = False
    bias_rate: NonNegativeFloat = 0.0
    backend: Backend = "loop"

    @model_validator(mode="after")
    def _routable(self) -> Self:
        if self.top_k > self.experts:
            raise ValueError(f"top_k = {self.top_k} exceeds experts = {self.experts}")
        if self.renormalise and self.top_k == 1:
            raise ValueError("renormalise with top_k = 1 gives the router no gradient; use one or the other")
        return self

    def install(self, decoder: Decoder, context: InstallContext) -> None:
        for block in decoder.blocks:
            block.ffn = Experts(decoder.params, self)


class Experts(Module):
    """Router and experts of one layer."""

    def __init__(self, params: ModelParams, config: Config) -> None:
        super().__init__()
        self.config, self.layers = config, params.layers
        width, expert_width = params.width, params.ffn_width // config.top_k
        init = Init(std=params.init_std)
        self.register_buffer("bias", torch.zeros(config.experts))
        self.declare("router", config.experts, width, init=init, group="router")
        self.declare("gate", config.experts, width, expert_width, init=init, group="expert")
        self.declare("up", config.experts, width, expert_width, init=init, group="expert")
        self.declare("down", config.experts, expert_width, width, init=residual_init(params), group="expert")

    def flops(self, context: CostContext) -> float:
        expert = 3 * self.gate[0].numel()
        return 2.0 * (self.router.numel() + self.config.top_k * expert)

    def active(self, context: CostContext) -> float:
        return self.flops(context) / 2

    def forward(self, n_BTD: Tensor, site: Site) -> tuple[Tensor, Aux]:
        n_ND = n_BTD.reshape(-1, n_BTD.shape[-1])
        # At least float32, whatever the precision of training: small differences of logits decide the routing.
        routed_ND = n_ND.to(torch.promote_types(n_ND.dtype, torch.float32))
        with torch.autocast(n_ND.device.type, enabled=False):
            logits_NE = routed_ND @ self.router.to(routed_ND.dtype).T
        probs_NE = logits_NE.softmax(dim=-1)
        weights_Nk, choice_Nk = self._route(logits_NE, probs_NE)
        y_ND = self._combine(n_ND, weights_Nk.to(n_ND.dtype), choice_Nk)
        counts_E = torch.bincount(choice_Nk.reshape(-1), minlength=self.config.experts)
        if self.training and self.config.bias_rate:
            self.bias += self.config.bias_rate * torch.sign(counts_E.float().mean() - counts_E)
        found = {"expert_choice": choice_Nk, "router_probabilities": probs_NE.detach()}
        diagnostics = {name: {site.layer: found[name]} for name in site.want & found.keys()}
        return y_ND.view_as(n_BTD), Aux(self._losses(logits_NE, probs_NE, counts_E), diagnostics)

    def _route(self, logits_NE: Tensor, probs_NE: Tensor) -> tuple[Tensor, Tensor]:
        """Weights and experts ``(N, top_k)`` of each position."""
        if self.config.bias_rate:
            scores_NE = logits_NE.sigmoid()
            choice_Nk = (scores_NE + self.bias).topk(self.config.top_k, dim=-1).indices
            weights_Nk = scores_NE.gather(1, choice_Nk)
            return weights_Nk / weights_Nk.sum(dim=-1, keepdim=True), choice_Nk
        weights_Nk, choice_Nk = probs_NE.topk(self.config.top_k, dim=-1)
        if self.config.renormalise:
            weights_Nk = weights_Nk / weights_Nk.sum(dim=-1, keepdim=True)
        return weights_Nk, choice_Nk

    def _combine(self, n_ND: Tensor, weights_Nk: Tensor, choice_Nk: Tensor) -> Tensor:
        top_k = self.config.top_k
        order_A = choice_Nk.reshape(-1).argsort(stable=True)
        sizes_E = torch.bincount(choice_Nk.reshape(-1), minlength=self.config.experts)
        token_A = order_A // top_k
        y_AD = BACKENDS[self.config.backend](n_ND[token_A], sizes_E, self.gate, self.up, self.down)
        y_AD = y_AD * weights_Nk.reshape(-1)[order_A, None]
        back_A = torch.empty_like(order_A)
        back_A[order_A] = torch.arange(len(order_A), device=order_A.device)
        # Unsort and add each token's top_k results in a fixed order, so that the sum is reproducible.
        return y_AD[back_A].view(-1, top_k, y_AD.shape[-1]).sum(dim=1)

    def _losses(self, logits_NE: Tensor, probs_NE: Tensor, counts_E: Tensor) -> dict[str, Tensor]:
        share_E = counts_E / counts_E.sum()
        balance = self.config.experts * (share_E * probs_NE.mean(dim=0)).sum()
        z = torch.logsumexp(logits_NE, dim=-1).square().mean()
        return {
            "balance": self.config.balance_loss / self.layers * balance,
            "router_z": self.config.router_z_loss / self.layers * z,
        }
