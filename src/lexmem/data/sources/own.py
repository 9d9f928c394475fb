"""A user's own text: ``files:<glob>`` and ``hub:<dataset>``.

Text is taken as it is, byte for byte: no normalisation of line ends, marks or accents.
"""

import glob
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lexmem.data.sources.source import Source
from lexmem.spec.errors import UserError, nearest

_UNSTATED = "not stated"


def open_files(pattern: str) -> Source:
    """A user's ``.txt`` (a document each), ``.jsonl`` and ``.parquet`` files (a document a row, column ``text``).

    ``pattern`` is a glob relative to the project's root, ``**`` for any folders; files are read in order of names.
    """
    spec = f"files:{pattern}"
    paths = [path for path in map(Path, sorted(glob.glob(pattern, recursive=True))) if path.is_file()]
    if not paths:
        raise UserError(f"source {spec!r}: no file matches {pattern!r} (seen from {Path.cwd()})")
    for path in paths:
        if path.suffix not in _READERS:
            raise UserError(f"source {spec!r}: {path}: cannot read {path.suffix!r}; {nearest(path.suffix, _READERS)}")

    def read() -> Iterator[str]:
        for path in paths:
            yield from _READERS[path.suffix](path)

    return Source(spec, "files", pattern, "", _UNSTATED, "", streamed=True, read=read)


def open_hub(address: str) -> Source:
    """A data set of the hub, or a local folder of one, streamed: ``<dataset>[:config][:split]``, split ``train``."""
    spec = f"hub:{address}"
    name, config, split = [*address.split(":", 2), "", ""][:3]
    split = split or "train"

    def read() -> Iterator[str]:
        from datasets import load_dataset  # takes seconds: only where it is used

        try:
            rows = load_dataset(name, config or None, split=split, streaming=True)
            for row in rows:
                yield _text_of(row, f"source {spec!r}")
        except (OSError, ValueError) as error:  # unknown name, configuration or split; no network
            reason = " ".join(str(error).split())
            raise UserError(f"source {spec!r}: cannot be read ({reason}); check its name and the network") from None

    return Source(spec, "hub", name, f"{config or 'default'}/{split}", _UNSTATED, "", streamed=True, read=read)


def _text_of(row: dict[str, Any], where: str) -> str:
    if not isinstance(row, dict) or not isinstance(row.get("text"), str):
        found = ", ".join(map(str, row)) if isinstance(row, dict) else type(row).__name__
        raise UserError(f"{where}: expected text in column 'text'; found: {found}")
    return row["text"]


def _read_txt(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            yield file.read()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 at byte {error.start}; convert it first") from None


def _read_jsonl(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise UserError(f"{path}:{number}: not JSON: {error}") from None
                yield _text_of(row, f"{path}:{number}")


def _read_parquet(path: Path) -> Iterator[str]:
    from pyarrow import ArrowInvalid, parquet  # takes a second: only where it is used

    try:
        file = parquet.ParquetFile(path)
    except ArrowInvalid as error:
        raise UserError(f"{path}: not Parquet: {error}") from None
    columns = file.schema_arrow.names
    if "text" not in columns:
        raise UserError(f"{path}: no column 'text'; found: {', '.join(columns)}")
    for batch in file.iter_batches(batch_size=1024, columns=["text"]):
        for row in batch.to_pylist():
            yield _text_of(row, str(path))


_READERS: dict[str, Callable[[Path], Iterator[str]]] = {
    ".txt": _read_txt,
    ".jsonl": _read_jsonl,
    ".parquet": _read_parquet,
}
