"""Batches for Lightning that resume where they stopped."""

from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from lexmem.data.tokens import TrainingWindows


class ResumableBatches:
    """Iterates the steps of a training; each process of a distributed training takes its share of every batch.

    Lightning saves and restores ``state_dict``; it needs ``__len__`` so as not to read one batch ahead.
    """

    def __init__(self, windows: TrainingWindows) -> None:
        self._windows = windows
        self._step = 0

    def __len__(self) -> int:
        return len(self._windows)

    def __iter__(self) -> Iterator[Tensor]:
        rank, world = (dist.get_rank(), dist.get_world_size()) if dist.is_initialized() else (0, 1)
        while self._step < len(self._windows):
            batch = self._windows.batch(self._step)
            self._step += 1
            yield torch.from_numpy(batch[rank::world])

    def state_dict(self) -> dict[str, Any]:
        return {"step": self._step}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._step = state["step"]
