"""Solve every run's knobs so that what its config matches is equal: training FLOPs, total parameters, table bytes."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from pydantic import ValidationError

from lexmem.allocation import Allocations
from lexmem.model.build import build_decoder
from lexmem.model.cost import Cost, CostContext
from lexmem.model.module import model_cost
from lexmem.planning.sources import variant_sources
from lexmem.spec.code import code_hash
from lexmem.spec.errors import UserError, nearest
from lexmem.spec.files import sha256_json
from lexmem.spec.params import ModelParams, Preset, StudyParams
from lexmem.spec.registry import resolve
from lexmem.spec.variant import InstallContext, VariantConfig

TOLERANCE = 0.005
COARSE = 0.1  # of what is matched beside FLOPs, as one expert more or less is a large step
LARGEST_KNOB = 1 << 22
SOLVE_ROUNDS = 8
MULTIPLES = (16, 8, 4, 2)  # widths that matrix products like

QUANTITIES: dict[str, Callable[[Cost], float]] = {
    "flops": lambda cost: cost.flops_forward,
    "total": lambda cost: cost.total,
    "table_bytes": lambda cost: cost.table_bytes,
}


@dataclass(frozen=True)
class Solved:
    """A run whose knobs are set: everything that its training depends on but the data and the optimizer."""

    label: str
    type: str
    config: VariantConfig
    model: ModelParams
    cost: Cost

    def turned(self, knob: str, value: int, cost_of: Callable[[ModelParams, VariantConfig], Cost]) -> "Solved":
        """The same run with one knob set: a field of the base model or of the config.

        Raises:
            ValidationError: if the config does not allow the value.
        """
        model, config = self.model, self.config
        if knob in ModelParams.model_fields:
            model = model.model_copy(update={knob: value})
        else:
            config = type(config).model_validate(config.model_dump() | {knob: value})
        return Solved(self.label, self.type, config, model, cost_of(model, config))


class Planner:
    """Solves the runs of a study, each after those that it matches."""

    def __init__(self, study: StudyParams, preset: Preset, allocations: Allocations) -> None:
        self._study, self._preset = study, preset
        self._context = InstallContext(allocations, preset.allocate)
        self._cost_context = CostContext(preset.budget.seq_len)
        self._solved: dict[str, Solved] = {}
        self._open: list[str] = []

    def solve(self, label: str) -> Solved:
        """The run ``label`` with its knobs set.

        Raises:
            UserError: if the run does not exist, matches in a circle, cannot match, or is off by over 0.5 % FLOPs.
        """
        if label not in self._solved:
            if label in self._open:
                raise UserError(
                    f"params.yaml: configs: {' -> '.join([*self._open, label])} match each other in a circle"
                )
            self._open.append(label)
            self._solved[label] = self._match(self._start(label))
            self._open.pop()
        return self._solved[label]

    def _start(self, label: str) -> Solved:
        configs = self._study.configs
        if label not in configs:
            asks = self._open[-2:][0]
            raise UserError(f"params.yaml: configs.{asks}.match: no run {label!r}; {nearest(label, configs)}")
        kind, config = resolve(label, configs[label])
        return Solved(label, kind, config, self._preset.model, self._cost(self._preset.model, config))

    def _cost(self, model: ModelParams, config: VariantConfig) -> Cost:
        with torch.device("meta"):
            decoder = build_decoder(model, self._preset.tokenizer.vocab_size, config, self._context)
        return model_cost(decoder, self._cost_context)

    def _match(self, run: Solved) -> Solved:
        matches = {quantity: of for quantity, of in run.config.match.items() if of != run.label}
        targets = {quantity: QUANTITIES[quantity](self.solve(of).cost) for quantity, of in matches.items()}
        for _ in range(SOLVE_ROUNDS):
            before = (run.model, run.config)
            for quantity, target in targets.items():
                run = self._turn(run, quantity, target)
            if (run.model, run.config) == before:
                break
        for quantity, target in targets.items():
            off, allowed = QUANTITIES[quantity](run.cost) / target - 1, TOLERANCE if quantity == "flops" else COARSE
            if abs(off) > allowed:
                raise UserError(
                    f"params.yaml: configs.{run.label}.match: {quantity} is {off:+.2%} off {matches[quantity]}'s, over "
                    f"{allowed:.1%}: {run.config.knobs[quantity]} cannot make them equal at this size"
                )
        return run

    def _turn(self, run: Solved, quantity: str, target: float) -> Solved:
        where, knob = f"params.yaml: configs.{run.label}.match", run.config.knobs.get(quantity)
        if knob is None:
            raise UserError(f"{where}: {quantity!r} has no knob in {run.type}; {nearest(quantity, run.config.knobs)}")
        if not target:
            raise UserError(f"{where}: {run.config.match[quantity]} has no {quantity} to equal")
        measure = QUANTITIES[quantity]

        def at(value: int) -> Solved | None:
            try:
                return run.turned(knob, value, self._cost)
            except ValidationError:
                return None  # below what the config allows

        def short(value: int) -> bool:
            solved = at(value)
            return solved is None or measure(solved.cost) < target

        low, high = 0, 1
        while short(high):
            low, high = high, 2 * high
            if high > LARGEST_KNOB:
                raise UserError(f"{where}: no {knob} up to {LARGEST_KNOB} gives {quantity} = {target:g}")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if short(middle) else (low, middle)
        found = [solved for value in (low, high) if value and (solved := at(value))]
        best = min(found, key=lambda solved: abs(measure(solved.cost) - target))
        if knob not in ModelParams.model_fields:
            return best
        for multiple in MULTIPLES:
            snapped = at(max(multiple, round(getattr(best.model, knob) / multiple) * multiple))
            if snapped and abs(measure(snapped.cost) / target - 1) <= TOLERANCE / 2:
                return snapped
        return best


def entry(solved: Solved, preset: Preset) -> dict[str, Any]:
    """The ledger entry of a run, on which alone its training depends; ``hash`` covers all of it."""
    cost = solved.cost
    values = {
        "variant": solved.label,
        "type": solved.type,
        "title": solved.config.title if solved.label == solved.type else solved.label,
        "config": solved.config.model_dump(mode="json"),
        "model": solved.model.model_dump(mode="json"),
        "vocab_size": preset.tokenizer.vocab_size,
        "allocate": preset.allocate.model_dump(mode="json"),
        "budget": preset.budget.model_dump(mode="json") | {"steps": preset.budget.steps},
        "cost": asdict(cost)
        | {"flops_training": cost.flops_training, "total": cost.total, "table_bytes": cost.table_bytes},
        "code": code_hash(variant_sources(solved.type)),
    }
    return values | {"hash": sha256_json(values)}


def make_plan(study: StudyParams, preset: Preset, allocations: Allocations) -> list[dict[str, Any]]:
    """Ledger entries of all active runs, in the study's order."""
    planner = Planner(study, preset, allocations)
    return [entry(planner.solve(label), preset) for label in study.variants]
