"""The LightningModule: one loss for every variant."""

from typing import Any

import lightning as L
import torch
from torch import Tensor
from torch.optim import AdamW
from torch.optim.lr_scheduler import LambdaLR

from lexmem.model.decoder import Decoder
from lexmem.model.loss import linear_cross_entropy
from lexmem.spec.params import TrainParams
from lexmem.training.optim import lr_factor, parameter_groups


class DivergedError(Exception):
    """Loss, gradient or validation stopped being finite; the message says at which step."""


class Pretraining(L.LightningModule):
    """Next-token prediction: cross-entropy, z-loss and the auxiliary losses that the variant returns."""

    def __init__(self, model: Decoder, train: TrainParams, steps: int) -> None:
        super().__init__()
        self.model, self.train_params, self.steps = model, train, steps
        self.grad_norm = torch.tensor(0.0)

    def training_step(self, batch: Tensor, batch_index: int) -> dict[str, Tensor]:
        hidden, aux = self.model.hidden(batch[:, :-1])
        loss, cross_entropy = linear_cross_entropy(
            hidden.flatten(0, 1), self.model.head_weight, batch[:, 1:].flatten(), self.train_params.z_loss
        )
        loss = sum(aux.losses.values(), start=loss)
        names = ["loss", "train_loss", *(f"aux/{name}" for name in aux.losses)]
        values = torch.stack([value.detach().float() for value in (loss, cross_entropy, *aux.losses.values())])
        # Means over the processes of a distributed training, so that all record, and stop at, the same.
        means = dict(zip(names, self.trainer.strategy.reduce(values, reduce_op="mean"), strict=True))
        self._require_finite(means["loss"], "loss")
        self.log("loss", means["train_loss"], prog_bar=True, logger=False)
        return means | {"loss": loss}

    def configure_gradient_clipping(self, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        self.grad_norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.train_params.grad_clip)
        self._require_finite(self.grad_norm, "gradient")

    def _require_finite(self, value: Tensor, what: str) -> None:
        if not torch.isfinite(value):
            raise DivergedError(f"the {what} is not finite at step {self.global_step + 1}")

    def configure_optimizers(self) -> dict[str, Any]:
        train = self.train_params
        optimizer = AdamW(parameter_groups(self.model, train), lr=train.lr, betas=train.betas, fused=True)
        schedule = LambdaLR(optimizer, lambda step: lr_factor(step, self.steps, train))
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}
