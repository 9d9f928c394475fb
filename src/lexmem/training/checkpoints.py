"""Checkpoints of unfinished trainings: two at most, in a folder named by what shaped them."""

import warnings
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

from lexmem.spec.errors import UserError

KEY = "fingerprint"


class Fingerprint(L.Callback):
    """Writes into every checkpoint the hash of all that shaped it."""

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint

    def on_save_checkpoint(self, trainer: L.Trainer, module: L.LightningModule, checkpoint: dict[str, Any]) -> None:
        checkpoint[KEY] = self._fingerprint


def checkpoint_callback(folder: Path, every: int) -> ModelCheckpoint:
    """Keeps the two newest, so that one that was cut short leaves the one before it."""
    return ModelCheckpoint(
        folder,
        filename="{step:08d}",
        monitor="step",
        mode="max",
        save_top_k=2,
        every_n_train_steps=every,
        save_on_train_epoch_end=False,
        auto_insert_metric_name=False,
    )


def newest_checkpoint(folder: Path, fingerprint: str) -> Path | None:
    """The newest checkpoint that can be read, if any.

    Raises:
        UserError: if a checkpoint there was shaped by something else.
    """
    for path in sorted(folder.glob("*.ckpt"), reverse=True):
        try:
            checkpoint = torch.load(path, map_location="cpu", weights_only=False)
        except Exception as error:  # whatever pickle and zip raise on a file that was cut short
            warnings.warn(f"{path} cannot be read ({type(error).__name__}); trying the one before it", stacklevel=1)
            continue
        if checkpoint.get(KEY) != fingerprint:
            raise UserError(f"{path} is of other parameters, data or code ({KEY} differs); remove it to start afresh")
        return path
    return None
