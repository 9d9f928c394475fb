"""How fast models train, beside one another: whole optimizer steps, with the tables' share of the optimizer apart."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import torch
from torch import Tensor
from torch.optim import AdamW

from lexmem.model.decoder import Decoder
from lexmem.model.loss import linear_cross_entropy
from lexmem.model.module import named_specs
from lexmem.spec.params import TrainParams
from lexmem.training.optim import parameter_groups


class Trainee:
    """A model in training, whose tables have an optimizer of their own so that it can be timed."""

    def __init__(self, model: Decoder, train: TrainParams) -> None:
        self._model, self._train = model.train(), train
        self._device = model.embedding.weight.device
        tables = {id(parameter) for _, parameter, spec in named_specs(model) if spec.group == "table"}
        groups = parameter_groups(model, train)
        of_tables = [group for group in groups if id(group["params"][0]) in tables]
        others = [group for group in groups if id(group["params"][0]) not in tables]
        self._others = AdamW(others, lr=train.lr, betas=train.betas, fused=True)
        self._tables = AdamW(of_tables, lr=train.lr, betas=train.betas, fused=True) if of_tables else None

    def step(self, batch: Tensor) -> tuple[float, float]:
        """Train on ids ``(B, T + 1)``; returns the seconds of it all, and those of the tables' update."""
        batch = batch.to(self._device)
        started = self._now()
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._train.precision == "bf16-mixed"):
            hidden, aux = self._model.hidden(batch[:, :-1])
            loss, _ = linear_cross_entropy(
                hidden.flatten(0, 1), self._model.head_weight, batch[:, 1:].flatten(), self._train.z_loss
            )
            loss = sum(aux.losses.values(), start=loss)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._train.grad_clip)
        self._others.step()
        table_seconds = 0.0
        if self._tables:
            tables_started = self._now()
            self._tables.step()
            table_seconds = self._now() - tables_started
        self._model.zero_grad(set_to_none=True)
        return self._now() - started, table_seconds

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return perf_counter()


def training_rows(
    models: Mapping[str, Decoder],
    baseline: str,
    train: TrainParams,
    batches: Sequence[Tensor],
    advance: Callable[[float], None],
) -> list[dict[str, Any]]:
    """Train every model a step on each of ``batches`` ``(B, T + 1)``, in turns; the first batch is a warm-up.

    Returns:
        A row a model and repeat; ``relative_to_baseline`` is the speed over the baseline's in the same repeat (``None``
        if the baseline is not among the models).
    """
    trainees = {name: Trainee(model, train) for name, model in models.items()}
    names, rows = list(trainees), []
    for number, batch in enumerate(batches):
        times = {name: trainees[name].step(batch) for name in names}
        names = [*names[1:], names[0]]
        if number:
            rows += [_row(name, number - 1, batch[:, 1:].numel(), times, baseline) for name in models]
        advance(len(models))
    return rows


def _row(
    name: str, repeat: int, tokens: int, times: Mapping[str, tuple[float, float]], baseline: str
) -> dict[str, Any]:
    seconds, table_seconds = times[name]
    return {
        "variant": name,
        "repeat": repeat,
        "tokens_per_second": tokens / seconds,
        "relative_to_baseline": times[baseline][0] / seconds if baseline in times else None,
        "table_update_ms": 1e3 * table_seconds,
    }


def relative_speeds(rows: Sequence[Mapping[str, Any]], baseline: str) -> dict[str, float]:
    """Median tokens per second of each model over the baseline's median; empty without a baseline."""
    speeds: dict[str, list[float]] = {}
    for row in rows:
        speeds.setdefault(row["variant"], []).append(row["tokens_per_second"])
    middle = {name: statistics.median(values) for name, values in speeds.items()}
    return {name: value / middle[baseline] for name, value in middle.items()} if baseline in middle else {}
