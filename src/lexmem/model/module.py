"""The base of every module here: it declares its parameters (initialisation, group) and answers for its cost."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from lexmem.model.cost import Cost, CostContext

Group = Literal["matrix", "embedding", "head", "norm", "router", "expert", "table"]


@dataclass(frozen=True)
class Init:
    """How a parameter starts: a constant ``mean`` where ``std`` is 0, else normal noise; or the identity matrix."""

    mean: float = 0.0
    std: float = 0.0
    identity: bool = False


ZEROS = Init()
ONES = Init(mean=1.0)
IDENTITY = Init(identity=True)


@dataclass(frozen=True)
class ParameterSpec:
    """What is declared of a parameter."""

    init: Init
    group: Group


class Module(nn.Module):
    """``nn.Module`` whose parameters are declared, so that initialisation, optimizer and ledger read one source."""

    def __init__(self) -> None:
        super().__init__()
        self.specs: dict[str, ParameterSpec] = {}

    def declare(self, name: str, *shape: int, init: Init, group: Group) -> None:
        """Register an uninitialised parameter ``name`` of ``shape``."""
        self.specs[name] = ParameterSpec(init, group)
        self.register_parameter(name, nn.Parameter(torch.empty(*shape)))

    def flops(self, context: CostContext) -> float:
        """Forward FLOPs a token of this module alone, without its children."""
        return 0.0

    def active(self, context: CostContext) -> float:
        """Own parameters that one token touches."""
        return float(sum(getattr(self, name).numel() for name in self.specs))

    def bytes_gathered(self, context: CostContext) -> float:
        """Bytes of table rows (float32) that one token reads."""
        return 0.0

    def own_cost(self, context: CostContext) -> Cost:
        """Cost of this module alone, without its children."""
        params: dict[str, int] = {}
        for name, spec in self.specs.items():
            params[spec.group] = params.get(spec.group, 0) + getattr(self, name).numel()
        return Cost(self.flops(context), params, self.active(context), self.bytes_gathered(context))


def named_specs(model: nn.Module) -> Iterator[tuple[str, nn.Parameter, ParameterSpec]]:
    """Every declared parameter of ``model`` with its full name."""
    for prefix, module in model.named_modules():
        if isinstance(module, Module):
            for name, spec in module.specs.items():
                yield f"{prefix}.{name}" if prefix else name, getattr(module, name), spec


def model_cost(model: nn.Module, context: CostContext) -> Cost:
    """Cost a token of a whole model; works on the meta device."""
    costs = (module.own_cost(context) for module in model.modules() if isinstance(module, Module))
    return sum(costs, start=Cost())


@torch.no_grad()
def initialise(model: nn.Module, seed: int) -> None:
    """Fill every parameter from its own generator, seeded by ``(seed, name)``.

    Parameters that two variants share by name and shape therefore start equal under one seed.

    ==========  ===========================================================
    group       start
    ==========  ===========================================================
    embedding   N(0, init_std^2)
    matrix      N(0, init_std^2); into the residual stream (attention and FFN
                output): N(0, init_std^2 / 2L) as in GPT-2
    expert      as the matrix it replaces
    norm        1
    router      N(0, init_std^2), TIDE's 0
    table       N(0, 0.02^2)
    head        N(0, init_std^2) where it is not tied to the embedding
    ==========  ===========================================================
    """
    for name, parameter, spec in named_specs(model):
        digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "little") >> 1)
        if spec.init.identity:
            start: Tensor = torch.eye(*parameter.shape)
        elif spec.init.std:
            start = torch.empty(parameter.shape).normal_(spec.init.mean, spec.init.std, generator=generator)
        else:
            start = torch.full(parameter.shape, spec.init.mean)
        parameter.copy_(start)
