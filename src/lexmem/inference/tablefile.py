"""Rows of tables in a safetensors file: checked when it is opened, read by row, past the page cache if asked to."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lexmem.spec.errors import UserError

PAGE = 4096
CHUNK = 1 << 22  # bytes hashed at a time
MAX_HEADER = 1 << 24  # a longer one is damage
DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "F64": torch.float64}


class TableReadError(UserError):
    """Rows could not be read; what was being decoded is void."""


@dataclass(frozen=True)
class Region:
    """Where the rows of one table are in a file."""

    name: str
    start: int
    rows: int
    width: int
    dtype: torch.dtype

    @property
    def row_bytes(self) -> int:
        return self.width * self.dtype.itemsize

    @property
    def end(self) -> int:
        return self.start + self.rows * self.row_bytes


def write_tables(path: Path, tables: Mapping[str, Tensor]) -> None:
    """Write ``(rows, width)`` tensors with the SHA-256 of each in the file's metadata, down to the disk.

    Raises:
        UserError: if the file cannot be written.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tables.items()}
    digests = {}
    for name, tensor in tensors.items():
        digest = _digest(*tensor.shape, tensor.dtype)
        digest.update(_bytes(tensor))
        digests[name] = digest.hexdigest()
    try:
        save_file(tensors, path, metadata=digests)
        with path.open("rb") as file:  # pages that are not yet on disk could not be dropped
            os.fsync(file.fileno())
    except (OSError, SafetensorError) as error:
        raise UserError(f"{path}: cannot write tables: {error}") from None


class TableFile:
    """An open file of tables. Rows are read with ``preadv`` at their offsets, one call a run of neighbours.

    Args:
        path: a file of :func:`write_tables`.
        cold: drop every page that was read from the page cache again, so that each read meets the disk.

    Raises:
        UserError: if the file is missing, truncated or damaged; the line names it and the table.
    """

    def __init__(self, path: Path, cold: bool) -> None:
        self.path, self._cold = path, cold
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise UserError(f"{path}: cannot open tables: {error.strerror}") from None
        try:
            self.regions = self._check()
        except BaseException:
            self.close()
            raise
        os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_RANDOM)  # neighbours of a row are not wanted
        if cold:
            os.posix_fadvise(self._fd, 0, 0, os.POSIX_FADV_DONTNEED)

    def read(self, region: Region, rows_n: np.ndarray, out: Tensor) -> None:
        """Read rows ``(n,)`` into ``out`` ``(n, width)``, a contiguous CPU tensor.

        Raises:
            IndexError: if a row is outside the table.
            TableReadError: if the file cannot be read or ends early.
        """
        if not len(rows_n):
            return
        if rows_n.min() < 0 or rows_n.max() >= region.rows:
            raise IndexError(f"table {region.name}: rows {rows_n.min()} to {rows_n.max()} of {region.rows}")
        view, size = _bytes(out), region.row_bytes
        breaks = (np.flatnonzero(np.diff(rows_n) != 1) + 1).tolist()
        runs = [
            (region.start + int(rows_n[first]) * size, view[first * size : last * size])
            for first, last in zip([0, *breaks], [*breaks, len(rows_n)], strict=True)
        ]
        with self._failing_as(region):
            for offset, part in runs[1:]:  # under way while the first is waited for: the disk reads several at once
                os.posix_fadvise(self._fd, offset, len(part), os.POSIX_FADV_WILLNEED)
            for offset, part in runs:
                self._fill(part, offset)
            if self._cold:
                for offset, part in runs:
                    start = offset // PAGE * PAGE  # only whole pages are dropped
                    length = -(-(offset + len(part) - start) // PAGE) * PAGE
                    os.posix_fadvise(self._fd, start, length, os.POSIX_FADV_DONTNEED)

    def read_all(self, region: Region) -> Tensor:
        """The whole table ``(rows, width)``."""
        out = torch.empty(region.rows, region.width, dtype=region.dtype)
        with self._failing_as(region):
            self._fill(_bytes(out), region.start)
        return out

    def close(self) -> None:
        """Close the file; later reads fail."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1  # the number may soon be another file's

    def _fill(self, view: memoryview, offset: int) -> None:
        done = 0
        while done < len(view):
            count = os.preadv(self._fd, [view[done:]], offset + done)
            if count == 0:
                raise OSError(f"the file ends at byte {offset + done}")
            done += count

    @contextmanager
    def _failing_as(self, region: Region) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise TableReadError(f"{self.path}: table {region.name}: {error.strerror or error}") from error

    def _check(self) -> dict[str, Region]:
        size = os.fstat(self._fd).st_size
        length = int.from_bytes(os.pread(self._fd, 8, 0), "little")
        if size < 8 or not 2 <= length <= MAX_HEADER:
            raise UserError(f"{self.path}: not a file of tables, or its start is damaged")
        try:
            header = json.loads(os.pread(self._fd, length, 8))
            digests = header.pop("__metadata__")
            regions = {name: _region(name, entry, 8 + length) for name, entry in header.items()}
            expected = {name: digests[name] for name in regions}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise UserError(f"{self.path}: its header is damaged; write the tables again") from None
        end = max((region.end for region in regions.values()), default=8 + length)
        if size < end:
            raise UserError(f"{self.path}: truncated: {size} of {end} bytes are there; write the tables again")
        for region in regions.values():
            digest = _digest(region.rows, region.width, region.dtype)
            with self._failing_as(region):
                for chunk in self._chunks(region):
                    digest.update(chunk)
            if digest.hexdigest() != expected[region.name]:
                raise UserError(f"{self.path}: table {region.name} is damaged: its checksum differs")
        return regions

    def _chunks(self, region: Region) -> Iterator[memoryview]:
        buffer = memoryview(bytearray(CHUNK))
        for start in range(region.start, region.end, CHUNK):
            part = buffer[: min(CHUNK, region.end - start)]
            self._fill(part, start)
            yield part


def _region(name: str, entry: Mapping, data: int) -> Region:
    rows, width = entry["shape"]
    region = Region(name, data + entry["data_offsets"][0], rows, width, DTYPES[entry["dtype"]])
    if region.end != data + entry["data_offsets"][1]:
        raise ValueError(f"{name}: shape and offsets differ")
    return region


def _digest(rows: int, width: int, dtype: torch.dtype) -> "hashlib._Hash":
    """A SHA-256 that has begun with what the bytes mean."""
    return hashlib.sha256(f"{rows} {width} {dtype}".encode())


def _bytes(tensor: Tensor) -> memoryview:
    return memoryview(tensor.view(torch.uint8).numpy()).cast("B")
