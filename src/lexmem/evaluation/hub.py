"""Items of tasks that no package carries (LAMBADA, WikiText, BLiMP): from a local copy, or else from the hub.

A local copy is a folder (``tasks.data_dir``) with

- for a task NAME: ``NAME.jsonl``, ``NAME_test.jsonl`` or ``NAME/test.jsonl``, one object a line with the columns of the
  hub's dataset (``lambada_openai``: ``text``; ``wikitext``: ``page``);
- for ``blimp``: a folder ``blimp`` with ``<paradigm>.jsonl``, or an archive ``blimp.tar`` of such a folder;

each plain or compressed (``.xz``, ``.gz``, ``.bz2``).
"""

import bz2
import gzip
import json
import logging
import lzma
import tarfile
from collections.abc import Iterator
from pathlib import Path

from lexmem.evaluation.catalogue import Builtin, Item
from lexmem.spec.errors import UserError

OPENERS = {"": open, ".xz": lzma.open, ".gz": gzip.open, ".bz2": bz2.open}


def copied_items(name: str, data_dir: Path) -> list[Item] | None:
    """Items of one task from a local copy; None if the folder has none.

    Raises:
        UserError: if the folder does not exist or a file is not JSON Lines.
    """
    for stem in (f"{name}.jsonl", f"{name}_test.jsonl", f"{name}/test.jsonl"):
        if (path := _existing(data_dir, stem)) is not None:
            with OPENERS[_compression(path)](path, "rb") as file:
                return _objects(file, path)
    return None


def copied_paradigms(data_dir: Path) -> dict[str, list[Item]] | None:
    """BLiMP's paradigms by name from a local copy; None if the folder has none.

    Raises:
        UserError: if the folder does not exist or a file is not JSON Lines.
    """
    if (archive := _existing(data_dir, "blimp.tar")) is not None:
        with tarfile.open(archive) as tar:
            members = [member for member in tar if member.isfile() and member.name.endswith(".jsonl")]
            return {Path(m.name).stem: _objects(tar.extractfile(m), archive / m.name) for m in members}
    found = {}
    for path in sorted((data_dir / "blimp").glob("*.jsonl*")):
        if path.suffix == ".jsonl" or path.suffix in OPENERS:
            with OPENERS[_compression(path)](path, "rb") as file:
                found[path.name.partition(".")[0]] = _objects(file, path)
    return found or None


def hub_items(name: str, task: Builtin) -> list[Item]:
    """Rows of the task's split on the Hugging Face hub.

    Raises:
        UserError: if it cannot be had, with what to do.
    """
    from datasets import disable_progress_bars, load_dataset

    disable_progress_bars()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # it would print a line a retry
    path, subset = task.hub
    try:
        return list(load_dataset(path, subset, split=task.split))
    except Exception as error:  # of requests, the hub's client and datasets alike
        raise UserError(
            f"task {name!r}: {path} cannot be had from the hub ({type(error).__name__}); connect to it, "
            "put a copy into tasks.data_dir, or take the task out of tasks.names"
        ) from None


def _existing(data_dir: Path, stem: str) -> Path | None:
    if not data_dir.is_dir():
        raise UserError(f"tasks.data_dir = '{data_dir}': no such folder")
    paths = (data_dir / f"{stem}{suffix}" for suffix in OPENERS)
    return next((path for path in paths if path.is_file()), None)


def _compression(path: Path) -> str:
    return path.suffix if path.suffix in OPENERS else ""


def _objects(lines: Iterator[bytes], path: Path) -> list[Item]:
    try:
        return [json.loads(line) for line in lines if line.strip()]
    except (json.JSONDecodeError, UnicodeDecodeError, OSError, EOFError, lzma.LZMAError) as error:
        raise UserError(f"{path}: not JSON Lines: {error}") from None
