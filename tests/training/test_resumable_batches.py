"""Batches are a pure function of seed and step, also after a restart and also when processes share them."""

import itertools

import pytest
import torch
import torch.distributed as dist

from lexmem.data.tokens import TokenFiles, TrainingWindows
from lexmem.training.data import ResumableBatches


@pytest.fixture
def windows(project):
    made = project()
    tokens = TokenFiles.open(made.layout.tokens)
    return lambda seed: TrainingWindows(tokens, *made.budget.values(), seed)


def test_every_step_is_a_pure_function_of_the_seed(windows):
    one, two, other = (list(ResumableBatches(windows(seed))) for seed in (3, 3, 4))
    assert len(one) == len(ResumableBatches(windows(3))) == 12
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    # A seed permutes the windows of the training set and changes none of them.
    flat, other_flat = (sorted(map(tuple, torch.cat(batches).tolist())) for batches in (one, other))
    assert flat == other_flat


@pytest.mark.parametrize("taken", [0, 1, 7, 12])
def test_a_restart_goes_on_with_the_next_batch(windows, taken):
    whole, first = list(ResumableBatches(windows(0))), ResumableBatches(windows(0))
    list(itertools.islice(first, taken))
    second = ResumableBatches(windows(0))
    second.load_state_dict(first.state_dict())
    rest = list(second)
    assert len(rest) == 12 - taken
    assert all(torch.equal(a, b) for a, b in zip(rest, whole[taken:], strict=True))


def test_processes_share_every_batch(windows, monkeypatch):
    """Only rank and size are pretended here; two real processes train in test_processes.py."""
    whole, shares = next(iter(ResumableBatches(windows(0)))), []
    monkeypatch.setattr(dist, "is_initialized", lambda: True)
    monkeypatch.setattr(dist, "get_world_size", lambda: 2)
    for rank in (0, 1):
        monkeypatch.setattr(dist, "get_rank", lambda rank=rank: rank)
        shares.append(next(iter(ResumableBatches(windows(0)))))
    assert [len(share) for share in shares] == [2, 2]
    assert sorted(torch.cat(shares).tolist()) == sorted(whole.tolist())
