"""Where rows come from when a table is not a parameter, and how they arrive."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from time import perf_counter
from typing import Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lexmem.inference.tablefile import Region, TableFile
from lexmem.model.lookup import Fetch

Arrival = tuple[Tensor, torch.cuda.Event | None]


@dataclass
class Meter:
    """What the fetches of a model cost so far: time that the caller waited for rows, and bytes of the rows."""

    stall_seconds: float = 0.0
    bytes_read: int = 0

    def reset(self) -> None:
        self.stall_seconds, self.bytes_read = 0.0, 0


class Source(Protocol):
    """Rows of one table, outside the device's memory."""

    def read(self, rows_n: np.ndarray, out: Tensor) -> None:
        """Copy rows ``(n,)`` into ``out`` ``(n, width)`` on the CPU."""
        ...

    def read_all(self) -> Tensor:
        """The whole table ``(rows, width)`` on the CPU."""
        ...


@dataclass(frozen=True)
class DiskSource:
    """Rows in a file."""

    file: TableFile
    region: Region

    def read(self, rows_n: np.ndarray, out: Tensor) -> None:
        self.file.read(self.region, rows_n, out)

    def read_all(self) -> Tensor:
        return self.file.read_all(self.region)


@dataclass(frozen=True)
class HostSource:
    """Rows in the host's memory, for a model on another device."""

    weight: Tensor

    def read(self, rows_n: np.ndarray, out: Tensor) -> None:
        torch.index_select(self.weight, 0, torch.from_numpy(rows_n), out=out)

    def read_all(self) -> Tensor:
        return self.weight


class Fetcher:
    """Brings rows to a device: in a reader thread as soon as they are known, or, without ``prefetch``, when used."""

    def __init__(self, device: torch.device, prefetch: bool) -> None:
        self.device, self.prefetch, self.meter = device, prefetch, Meter()
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="table-reader")
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def start(self, source: Source, rows_n: Tensor, width: int, dtype: torch.dtype) -> Fetch:
        """Rows ``(n,)`` of ``source`` on their way."""
        rows = rows_n.cpu().numpy()
        self.meter.bytes_read += len(rows) * width * dtype.itemsize

        def bring() -> Arrival:
            staging = torch.empty(len(rows), width, dtype=dtype, pin_memory=self._stream is not None)
            source.read(rows, staging)
            return self._ship(staging)

        return _Pending(self._pool.submit(bring) if self.prefetch else None, bring, self.meter)

    def close(self) -> None:
        """Drop what has not begun, and wait for the reader to end."""
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _ship(self, staging: Tensor) -> Arrival:
        if self._stream is None:
            return staging, None
        with torch.cuda.stream(self._stream):
            rows = staging.to(self.device, non_blocking=True)
            return rows, self._stream.record_event()


class _Pending:
    def __init__(self, future: Future[Arrival] | None, bring: Callable[[], Arrival], meter: Meter) -> None:
        self._future, self._bring, self._meter = future, bring, meter
        self._rows: Tensor | None = None

    def get(self) -> Tensor:
        if self._rows is None:
            started = perf_counter()
            rows, copied = self._future.result() if self._future else self._bring()
            if copied is not None:
                current = torch.cuda.current_stream(rows.device)
                current.wait_event(copied)
                rows.record_stream(current)
            self._meter.stall_seconds += perf_counter() - started
            self._rows = rows
        return self._rows


@dataclass(frozen=True)
class Remote:
    """Storage of a table whose rows a fetcher brings."""

    source: Source
    width: int
    dtype: torch.dtype
    fetcher: Fetcher

    def fetch(self, rows_n: Tensor) -> Fetch:
        return self.fetcher.start(self.source, rows_n, self.width, self.dtype)


@dataclass(frozen=True)
class _Here:
    rows: Tensor

    def get(self) -> Tensor:
        return self.rows


@dataclass(frozen=True)
class Resident:
    """Storage of a table in the device's own memory; it only counts what is read."""

    weight: Tensor
    meter: Meter

    def fetch(self, rows_n: Tensor) -> Fetch:
        self.meter.bytes_read += rows_n.numel() * self.weight.shape[1] * self.weight.itemsize
        return _Here(F.embedding(rows_n, self.weight))
