import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch

from lexmem.inference.tablefile import TableFile, TableReadError, write_tables
from lexmem.spec.errors import UserError


@pytest.fixture
def tables():
    generator = torch.Generator().manual_seed(0)
    # Rows of 52 and of 4,096 bytes: neither starts on a page.
    return {"a.keys": torch.randn(300, 13, generator=generator), "b": torch.randn(40, 1024, generator=generator)}


@pytest.fixture
def path(tables, tmp_path) -> Path:
    write_tables(tmp_path / "tables.safetensors", tables)
    return tmp_path / "tables.safetensors"


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize(
    "rows", [[0], [299], [5, 6, 7], [7, 6, 5], [0, 1, 9, 9, 3, 4, 5, 299], list(range(300)), []], ids=str
)
def test_rows_come_as_they_were_written_in_any_order(path, tables, rows, cold):
    file = TableFile(path, cold)
    out = torch.empty(len(rows), 13)
    file.read(file.regions["a.keys"], np.array(rows, np.int64), out)
    assert torch.equal(out, tables["a.keys"][rows])
    assert torch.equal(file.read_all(file.regions["b"]), tables["b"])
    file.close()


def test_bfloat16_rows_keep_their_bits(tmp_path):
    table = torch.randn(9, 8).bfloat16()
    write_tables(tmp_path / "t", {"t": table})
    file = TableFile(tmp_path / "t", cold=False)
    out = torch.empty(2, 8, dtype=torch.bfloat16)
    file.read(file.regions["t"], np.array([3, 8]), out)
    assert torch.equal(out, table[[3, 8]])
    file.close()


@pytest.mark.parametrize("row", [-1, 300])
def test_a_row_outside_its_table_is_refused_and_not_read_from_the_next(path, row):
    file = TableFile(path, cold=False)
    with pytest.raises(IndexError, match=r"a\.keys"):
        file.read(file.regions["a.keys"], np.array([row]), torch.empty(1, 13))
    file.close()


@pytest.mark.parametrize("kept", [0, 4, 60, -1])
def test_a_truncated_file_is_refused_by_name(path, kept):
    os.truncate(path, kept if kept >= 0 else path.stat().st_size + kept)
    with pytest.raises(UserError, match=path.name):
        TableFile(path, cold=False)


def test_a_flipped_bit_is_found_with_its_table(path):
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(UserError, match=rf"{path.name}: table b is damaged"):
        TableFile(path, cold=False)


def test_a_header_that_says_something_else_is_found(path):
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    reshaped = header | {"a.keys": header["a.keys"] | {"shape": [13, 300]}}
    exchanged = header | {"a.keys": header["b"], "b": header["a.keys"]}
    for changed in (reshaped, exchanged):
        text = json.dumps(changed).encode()
        path.write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
        with pytest.raises(UserError, match=r"table a\.keys is damaged"):
            TableFile(path, cold=False)


def test_a_file_of_something_else_is_refused(tmp_path):
    (tmp_path / "notes").write_text("no tables " * 1000)
    with pytest.raises(UserError, match="notes"):
        TableFile(tmp_path / "notes", cold=False)
    with pytest.raises(UserError, match="missing"):
        TableFile(tmp_path / "missing", cold=False)


def test_reads_after_the_file_shrank_or_was_closed_fail(path):
    file = TableFile(path, cold=False)
    os.truncate(path, 200)
    with pytest.raises(TableReadError, match=r"table b: the file ends"):
        file.read(file.regions["b"], np.array([39]), torch.empty(1, 1024))
    file.close()
    with pytest.raises(TableReadError, match="table b"):
        file.read(file.regions["b"], np.array([0]), torch.empty(1, 1024))


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(UserError, match="absent"):
        write_tables(tmp_path / "absent" / "t", {"t": torch.zeros(2, 2)})
