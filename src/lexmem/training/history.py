"""The callback that records a training's curve, validates, and survives resumption."""

import math
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import lightning as L
import numpy as np
import torch
from torch import Tensor

from lexmem.model.decoder import Decoder
from lexmem.model.loss import token_losses
from lexmem.training.module import DivergedError, Pretraining
from lexmem.training.optim import lr_factor

OnRows = Callable[[list[dict[str, Any]]], None]


class Validation:
    """Held-out windows and how many bytes of text they predict."""

    def __init__(self, windows: Sequence[np.ndarray], token_bytes: np.ndarray, eot_id: int) -> None:
        self._batches = [torch.from_numpy(batch) for batch in windows]
        targets = np.concatenate([batch[:, 1:].ravel() for batch in windows])
        self._eot_id, self._tokens = eot_id, len(targets)
        self._bytes = max(1, int(token_bytes[targets].sum()))

    @torch.no_grad()
    def __call__(self, model: Decoder) -> dict[str, float]:
        """Mean loss (nats a token) and bits per byte; end-of-text targets count in the first alone."""
        device = model.head_weight.device
        total, text = 0.0, 0.0
        for batch in self._batches:
            batch = batch.to(device)
            hidden, _ = model.hidden(batch[:, :-1])
            targets = batch[:, 1:].flatten()
            losses = token_losses(hidden.flatten(0, 1), model.head_weight, targets).double()
            total += losses.sum().item()
            text += losses[targets != self._eot_id].sum().item()
        return {"valid_loss": total / self._tokens, "bits_per_byte": text / math.log(2) / self._bytes}


class History(L.Callback):
    """Rows ``step, tokens, flops, metric, value`` of a training, kept in its checkpoints.

    ``on_rows`` is called with new rows at every validation, to show them live.
    """

    def __init__(
        self,
        validation: Validation,
        every: int,
        tokens_per_step: int,
        flops_per_token: float,
        on_rows: OnRows,
    ) -> None:
        self._validation, self._every, self._on_rows = validation, every, on_rows
        self._tokens_per_step, self._flops_per_token = tokens_per_step, flops_per_token
        self.rows: list[dict[str, Any]] = []
        self.speeds: list[dict[str, Any]] = []
        self.seconds = 0.0
        self._started = 0.0
        self._sums: dict[str, float] = {}
        self._count = 0

    def state_dict(self) -> dict[str, Any]:
        return {"rows": self.rows, "speeds": self.speeds, "seconds": self.seconds, "sums": self._sums,
                "count": self._count}  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.rows, self.speeds, self.seconds = state["rows"], state["speeds"], state["seconds"]
        self._sums, self._count = state["sums"], state["count"]

    def on_train_batch_start(self, trainer: L.Trainer, *_: Any) -> None:
        self._started = time.perf_counter()

    def on_train_batch_end(
        self, trainer: L.Trainer, module: Pretraining, outputs: dict[str, Tensor], batch: Tensor, batch_idx: int
    ) -> None:
        self.seconds += time.perf_counter() - self._started
        for name, value in (outputs | {"grad_norm": module.grad_norm}).items():
            if name != "loss":
                self._sums[name] = self._sums.get(name, 0.0) + float(value)
        self._count += 1
        step = trainer.global_step
        if step % self._every and step != module.steps:
            return
        means = {name: value / self._count for name, value in self._sums.items()}
        # The rate of the step just done: the optimizer already holds the next one's.
        lr = module.train_params.lr * lr_factor(step - 1, module.steps, module.train_params)
        module.model.eval()
        values = means | {"lr": lr} | self._validation(module.model)
        module.model.train()
        self._sums, self._count = {}, 0
        if not all(map(math.isfinite, values.values())):
            raise DivergedError(f"the validation loss is not finite at step {step}")
        self._record(step, values)

    def _record(self, step: int, values: dict[str, float]) -> None:
        tokens = step * self._tokens_per_step
        place = {"step": step, "tokens": tokens, "flops": tokens * self._flops_per_token}
        new = [place | {"metric": name, "value": value} for name, value in values.items()]
        speed = place | {"metric": "tokens_per_second", "value": tokens / self.seconds}
        self.rows += new
        self.speeds.append(speed)
        self._on_rows([*new, speed])


def final_values(rows: Iterable[dict[str, Any]]) -> dict[str, float]:
    """The last value of every metric."""
    return {row["metric"]: row["value"] for row in rows}
