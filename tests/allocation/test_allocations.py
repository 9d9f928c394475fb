"""Rows a token: sums, bounds, ties and fills, at every edge of the budget."""

import numpy as np
import pytest

from lexmem.allocation import METHODS, Allocations
from lexmem.allocation.lzw import parse
from lexmem.spec.errors import UserError


def random_case(seed: int) -> tuple[Allocations, int]:
    """Allocations of a small random stream, and a cap."""
    rng = np.random.default_rng(seed)
    vocab = int(rng.integers(2, 40))
    ids = (rng.zipf(1.2, int(rng.integers(0, 400))) - 1) % vocab
    codewords = parse(ids, vocab, vocab - 1, ("fixed", "faithful")[seed % 2], 10**6)
    return Allocations(codewords.sorted_last(), np.bincount(ids, minlength=vocab)), int(rng.integers(1, 20))


def dumb_walk(allocations: Allocations, budget: int, cap: int) -> list[int]:
    """Algorithm 1 after the sort, then rounds by count."""
    rows = [1] * allocations.vocab_size
    by_count = sorted(range(allocations.vocab_size), key=lambda token: -allocations.counts[token])
    for token in [*allocations.last.tolist(), *by_count * cap]:
        if sum(rows) == budget:
            break
        if rows[token] < cap:
            rows[token] += 1
    return rows


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", range(40))
def test_rows_sum_to_the_budget_within_bounds(method, seed):
    allocations, cap = random_case(seed)
    v = allocations.vocab_size
    budgets = {
        v,
        v + 1,
        v * cap,
        max(v * cap - 1, v),
        *np.random.default_rng(seed).integers(v, v * cap + 1, 6).tolist(),
    }
    for budget in sorted(b for b in budgets if b <= v * cap):
        rows = allocations.rows(method, budget, cap)
        assert rows.shape == (v,) and rows.dtype == np.int64
        assert rows.sum() == budget and rows.min() >= 1 and rows.max() <= cap


@pytest.mark.parametrize("seed", range(40))
def test_lzw_equals_the_dumb_walk(seed):
    allocations, cap = random_case(seed)
    v = allocations.vocab_size
    for budget in np.unique(np.linspace(v, v * cap, 9).astype(int)).tolist():
        assert allocations.rows("lzw", budget, cap).tolist() == dumb_walk(allocations, budget, cap)


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_of_the_vocabulary_is_all_ones(method):
    allocations, cap = random_case(3)
    assert (allocations.rows(method, allocations.vocab_size, cap) == 1).all()


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_that_cannot_be_met_names_the_numbers(method):
    allocations = Allocations(np.arange(10, dtype=np.int32), np.ones(10, np.int64))
    for budget in (9, 41):
        with pytest.raises(UserError, match=rf"budget of {budget} rows .* 10 tokens .* cap = 4 .* 10 to 40"):
            allocations.rows(method, budget, 4)


def test_an_unknown_method_names_the_nearest():
    with pytest.raises(UserError, match=r"'frequence'.*did you mean 'frequency'"):
        random_case(0)[0].rows("frequence", 40, 20)


def test_one_token_documents_give_ones_and_the_walk_then_rounds():
    ids = np.array([2, 4] * 100)
    codewords = parse(ids, 5, 4, "fixed", 100)
    allocations = Allocations(codewords.sorted_last(), np.bincount(ids, minlength=5))
    # Every single token is a codeword of count 0: one row each by id. Then rounds, most frequent first, ties by id.
    assert allocations.rows("lzw", 7, 9).tolist() == [2, 2, 1, 1, 1]
    assert allocations.rows("lzw", 10, 9).tolist() == [2, 2, 2, 2, 2]
    assert allocations.rows("lzw", 13, 9).tolist() == [3, 2, 3, 2, 3]
    assert allocations.rows("lzw", 45, 9).tolist() == [9, 9, 9, 9, 9]


def test_uniform_gives_the_remainder_to_the_most_frequent_then_to_the_smaller_id():
    allocations = Allocations(np.empty(0, np.int32), np.array([1, 5, 5, 0, 9]))
    assert allocations.rows("uniform", 12, 4).tolist() == [2, 3, 2, 2, 3]
    assert allocations.rows("uniform", 13, 4).tolist() == [2, 3, 3, 2, 3]


def test_frequency_is_proportional_by_largest_remainder():
    counts = np.array([60, 30, 10, 0])
    allocations = Allocations(np.empty(0, np.int32), counts)
    # 19 rows for the counted: quotas 11.4, 5.7, 1.9.
    assert allocations.rows("frequency", 20, 64).tolist() == [11, 6, 2, 1]
    # Capped at 8: 11 rows for two tokens in proportion 3 to 1.
    assert allocations.rows("frequency", 20, 8).tolist() == [8, 8, 3, 1]
    # All counted tokens at the cap: the rest in rounds.
    assert allocations.rows("frequency", 14, 4).tolist() == [4, 4, 4, 2]


@pytest.mark.parametrize("seed", range(20))
def test_frequency_never_gives_a_rarer_token_more(seed):
    allocations, cap = random_case(seed)
    v = allocations.vocab_size
    for budget in np.unique(np.linspace(v, v * cap, 9).astype(int)).tolist():
        rows = allocations.rows("frequency", budget, cap)
        assert (np.diff(rows[allocations.by_frequency]) <= 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_nothing_counted_is_no_crash(method):
    allocations = Allocations(np.arange(4, dtype=np.int32), np.zeros(4, np.int64))
    rows = allocations.rows(method, 10, 4)
    assert rows.sum() == 10
    assert allocations.expected_rows(rows) == 2.5


def test_expected_rows_weigh_by_frequency():
    allocations = Allocations(np.empty(0, np.int32), np.array([3, 1, 0]))
    assert allocations.expected_rows(np.array([8, 4, 100])) == 7.0


def test_the_file_comes_back_and_is_the_same_twice(tmp_path):
    allocations, cap = random_case(5)
    allocations.save(tmp_path / "codewords.npz")
    allocations.save(tmp_path / "again" / "codewords.npz")
    assert (tmp_path / "codewords.npz").read_bytes() == (tmp_path / "again" / "codewords.npz").read_bytes()
    for path in (tmp_path, tmp_path / "codewords.npz"):
        loaded = Allocations.load(path)
        budget = loaded.vocab_size * cap // 2 + loaded.vocab_size // 2
        assert np.array_equal(loaded.rows("lzw", budget, cap), allocations.rows("lzw", budget, cap))
    with np.load(tmp_path / "codewords.npz") as arrays:
        assert arrays["vocab_size"] == allocations.vocab_size
        assert arrays["last"].dtype == np.int32 and arrays["counts"].dtype == np.int64


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"codewords\.npz: no such file; run the allocate stage"):
        Allocations.load(tmp_path)
