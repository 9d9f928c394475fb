import copy
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from tiny_runs import EOT, VOCAB, make_decoder

from lexmem.inference.decode import decode
from lexmem.inference.offload import lookup_tables, offload
from lexmem.inference.sampling import GREEDY
from lexmem.inference.tablefile import TableReadError
from lexmem.spec.errors import UserError
from lexmem.spec.registry import variant_types

WITH_TABLES = [name for name in variant_types() if lookup_tables(make_decoder(name))]
IDS = torch.randint(VOCAB, (3, 24), generator=torch.Generator().manual_seed(0))
TIERS = [("resident", False), ("host", False), ("host", True), ("disk", False), ("disk", True)]


def readers() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("table-reader")]


def open_tables() -> list[Path]:
    """Files of tables that this process holds open; they have no name any more."""
    links = [Path("/proc/self/fd") / number for number in os.listdir("/proc/self/fd")]
    return [link for link in links if link.is_symlink() and "tables-" in os.readlink(link)]


@torch.no_grad()
def logits_of(model, ids=IDS):
    """A full pass, and the same ids through a cache in pieces."""
    cache = model.new_cache(*ids.shape)
    pieces = [model(piece, cache)[0] for piece in (ids[:, :10], ids[:, 10:11], ids[:, 11:])]
    return torch.cat([model(ids)[0], *pieces], dim=1)


@pytest.mark.parametrize("cold", [False, True])
@pytest.mark.parametrize(("tier", "prefetch"), TIERS)
def test_logits_do_not_change_by_a_bit(decoder, tier, prefetch, cold, tmp_path):
    expected = logits_of(decoder)
    with offload(decoder, tier, tmp_path, prefetch, cold) as tables:
        assert torch.equal(logits_of(decoder), expected)
        tables.prefetch = not prefetch
        assert torch.equal(logits_of(decoder), expected)
    assert torch.equal(logits_of(decoder), expected)


def test_some_variant_has_tables():
    assert WITH_TABLES


@pytest.mark.parametrize("variant", WITH_TABLES)
def test_parameters_are_freed_and_come_back(variant, tmp_path):
    model = make_decoder(variant)
    before = copy.deepcopy(model.state_dict())
    with offload(model, "disk", tmp_path, prefetch=True) as tables:
        assert tables.table_bytes == sum(4 * table.rows * table.width for table in lookup_tables(model).values())
        assert all(table.weight.is_meta for table in lookup_tables(model).values())
    after = model.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("variant", WITH_TABLES)
@pytest.mark.parametrize(("tier", "prefetch"), TIERS)
def test_bytes_are_those_of_the_rows_of_distinct_ids(variant, tier, prefetch, tmp_path):
    model = make_decoder(variant)
    with torch.no_grad(), offload(model, tier, tmp_path, prefetch) as tables:
        cost = []
        for ids in ([[5]], [[9]], [[5, 9, 5, 9]]):
            tables.meter.reset()
            model(torch.tensor(ids))
            cost.append(tables.meter.bytes_read)
    assert cost[0] > 0
    assert cost[2] == cost[0] + cost[1]


@pytest.mark.parametrize("variant", WITH_TABLES)
@pytest.mark.parametrize("prefetch", [False, True])
def test_waiting_for_rows_is_measured(variant, prefetch, tmp_path):
    model = make_decoder(variant)
    with torch.no_grad(), offload(model, "disk", tmp_path, prefetch) as tables:
        model(IDS)
        assert tables.meter.stall_seconds > 0
    with torch.no_grad(), offload(model, "resident", tmp_path, prefetch) as tables:
        model(IDS)
        assert tables.meter.stall_seconds == 0


@pytest.mark.parametrize("variant", WITH_TABLES)
@pytest.mark.parametrize("prefetch", [False, True])
def test_a_reader_that_fails_ends_decoding(variant, prefetch, tmp_path):
    model = make_decoder(variant)
    with pytest.raises(TableReadError, match="table"), offload(model, "disk", tmp_path, prefetch) as tables:
        stream = decode(model, [[1, 2], [3, 4]], 8, EOT, GREEDY)
        next(stream)
        (file,) = open_tables()
        os.truncate(file, 0)
        next(stream)
    assert not readers()
    with pytest.raises(TableReadError), torch.no_grad():
        tables.prefetch = False
        model(IDS)


@pytest.mark.parametrize("variant", WITH_TABLES)
def test_nothing_is_left_behind(variant, tmp_path):
    model = make_decoder(variant)
    with pytest.raises(KeyboardInterrupt), offload(model, "disk", tmp_path, prefetch=True):
        logits_of(model)
        assert readers()
        assert open_tables()
        assert not list(tmp_path.iterdir())
        raise KeyboardInterrupt
    assert not readers()
    assert not open_tables()


@pytest.mark.parametrize("variant", WITH_TABLES[:1])
def test_an_interrupted_process_leaves_nothing_behind(variant, tmp_path):
    code = f"""
import torch
from pathlib import Path
from lexmem.inference.offload import offload
from tiny_runs import make_decoder

model = make_decoder({variant!r})
with torch.no_grad(), offload(model, "disk", Path({str(tmp_path)!r}), prefetch=True):
    print("decoding", flush=True)
    while True:
        model(torch.randint(288, (1, 4)))
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent,
    )
    assert process.stdout.readline() == "decoding\n"
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode != 0
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert not list(tmp_path.iterdir())


def test_mistakes_are_one_line(tmp_path):
    model = make_decoder(WITH_TABLES[0])
    with pytest.raises(UserError, match="did you mean 'disk'"):
        offload(model, "dick", tmp_path, prefetch=True)
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot write tables"):
        offload(model, "disk", tmp_path / "file", prefetch=True)
    with offload(model, "disk", tmp_path, prefetch=True), pytest.raises(UserError, match="already"):
        offload(model, "disk", tmp_path, prefetch=True)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize(("tier", "prefetch"), TIERS)
def test_logits_do_not_change_by_a_bit_on_a_gpu(decoder, tier, prefetch, tmp_path):
    decoder, ids = decoder.cuda(), IDS.cuda()
    expected = logits_of(decoder, ids)
    with offload(decoder, tier, tmp_path, prefetch):
        assert torch.equal(logits_of(decoder, ids), expected)
    assert torch.equal(logits_of(decoder, ids), expected)
