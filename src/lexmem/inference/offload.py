"""Move every lookup table of a model to another tier of storage; the modules that read them do not know."""

import os
import tempfile
from pathlib import Path
from typing import Literal, get_args

import torch
from torch import nn

from lexmem.inference.tablefile import TableFile, write_tables
from lexmem.inference.tiers import DiskSource, Fetcher, HostSource, Meter, Remote, Resident, Source
from lexmem.model.lookup import LookupTable
from lexmem.spec.errors import UserError, nearest

Tier = Literal["resident", "host", "disk"]


def lookup_tables(model: nn.Module) -> dict[str, LookupTable]:
    """Every table of ``model`` by its name."""
    return {name: module for name, module in model.named_modules() if isinstance(module, LookupTable)}


def offload(model: nn.Module, tier: Tier, directory: Path, prefetch: bool, cold: bool = False) -> "Offload":
    """Move all tables of ``model`` to ``tier`` and free their parameters. For inference only.

    Rows arrive bit for bit as they were. ``host`` is pinned memory for a model on a GPU, and for one on the CPU the
    same as ``resident``. ``disk`` is a safetensors file in ``directory``, whose name is removed as soon as it is open:
    nothing is left behind, however the process ends.

    Args:
        model: on the device where it will run.
        tier: where the tables go.
        directory: a folder on the disk to read from; made if missing, used by ``disk`` alone.
        prefetch: read in a thread from the moment that a forward pass knows its ids; else where rows are used.
        cold: ``disk`` reads past the page cache.

    Returns:
        A handle to be closed, or used in a ``with`` block, after which the tables are parameters again.

    Raises:
        UserError: if the tables cannot be written, or are already moved.
    """
    if tier not in get_args(Tier):
        raise UserError(f"tier = {tier!r}: no such tier; {nearest(tier, get_args(Tier))}")
    tables = lookup_tables(model)
    if any(table.storage is not None for table in tables.values()):
        raise UserError("the tables of this model have been moved already; close that first")
    device = next(model.parameters()).device
    fetcher = Fetcher(device, prefetch)
    if tier == "disk" and tables:
        file = _write(tables, directory, cold)
        return Offload(tables, tier, fetcher, {name: DiskSource(file, file.regions[name]) for name in tables}, file)
    if tier == "host" and device.type == "cuda":
        sources = {name: HostSource(table.weight.detach().cpu().pin_memory()) for name, table in tables.items()}
        return Offload(tables, tier, fetcher, sources, None)
    return Offload(tables, tier, fetcher, {}, None)


class Offload:
    """Tables of a model in another tier.

    Attributes:
        tier: where they are.
        meter: time spent waiting for rows and bytes of rows read, since the last ``reset``.
        table_bytes: size of all tables.
    """

    def __init__(
        self,
        tables: dict[str, LookupTable],
        tier: Tier,
        fetcher: Fetcher,
        sources: dict[str, Source],
        file: TableFile | None,
    ) -> None:
        self.tier = tier
        self.table_bytes = sum(table.weight.nbytes for table in tables.values())
        self._tables, self._fetcher, self._sources, self._file = tables, fetcher, sources, file
        self._closed = False
        for name, table in tables.items():
            if name in sources:
                table.storage = Remote(sources[name], table.width, table.weight.dtype, fetcher)
                table.weight = nn.Parameter(torch.empty_like(table.weight, device="meta"), table.weight.requires_grad)
            else:
                table.storage = Resident(table.weight, fetcher.meter)

    @property
    def meter(self) -> Meter:
        return self._fetcher.meter

    @property
    def prefetch(self) -> bool:
        """Whether reading starts when the ids are known; may be changed between forward passes."""
        return self._fetcher.prefetch

    @prefetch.setter
    def prefetch(self, value: bool) -> None:
        self._fetcher.prefetch = value

    def restore(self) -> None:
        """Make the tables parameters again, and close."""
        for name, table in self._tables.items():
            if name in self._sources:
                rows = self._sources[name].read_all().to(self._fetcher.device)
                table.weight = nn.Parameter(rows, table.weight.requires_grad)
            table.storage = None
        self.close()

    def close(self) -> None:
        """End the reader and close the file. Tables that were not restored cannot be read any more."""
        if not self._closed:
            self._closed = True
            self._fetcher.close()
            if self._file is not None:
                self._file.close()

    def __enter__(self) -> "Offload":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an error the disk may be what failed: only clean up.
        try:
            if kind is None:
                self.restore()
        finally:
            self.close()


def _write(tables: dict[str, LookupTable], directory: Path, cold: bool) -> TableFile:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor, path = tempfile.mkstemp(dir=directory, prefix="tables-", suffix=".safetensors")
    except OSError as error:
        raise UserError(f"{directory}: cannot write tables there: {error.strerror}") from None
    os.close(descriptor)
    try:
        write_tables(Path(path), {name: table.weight for name, table in tables.items()})
        return TableFile(Path(path), cold)
    finally:
        os.unlink(path)  # what is open stays readable
