"""Progress of a training where there is no terminal."""

from typing import Any

import lightning as L

from lexmem.training.history import History, final_values
from lexmem.training.module import Pretraining


class PlainProgress(L.Callback):
    """A line at every validation, for logs."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._seen = 0

    def on_train_batch_end(self, trainer: L.Trainer, module: Pretraining, *_: Any) -> None:
        history = next(callback for callback in trainer.callbacks if isinstance(callback, History))
        if len(history.rows) == self._seen or not trainer.is_global_zero:
            return
        self._seen = len(history.rows)
        last, rate = final_values(history.rows), history.speeds[-1]["value"]
        left = (module.steps - trainer.global_step) * history.seconds / trainer.global_step
        print(
            f"{self._title}: step {trainer.global_step}/{module.steps}, train {last['train_loss']:.4f}, "
            f"valid {last['valid_loss']:.4f} nats, {rate:,.0f} tokens/s, {left:,.0f} s left",
            flush=True,
        )
