import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lexmem.reporting.stats import clear_winner, differences_frame, estimate, estimates_frame, paired_difference


def seeds(values: list[float], first: int = 0) -> pd.Series:
    return pd.Series(values, index=range(first, first + len(values)))


@pytest.mark.parametrize("n", [2, 3, 5, 20])
@pytest.mark.parametrize("trial", range(5))
def test_interval_is_scipys_t_interval(n: int, trial: int) -> None:
    values = np.random.default_rng([n, trial]).normal(3.0, 0.2, n)
    found = estimate(seeds(list(values)))
    expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high), rel=1e-12)
    assert found.mean == pytest.approx(values.mean(), rel=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 20])
@pytest.mark.parametrize("trial", range(5))
def test_paired_difference_is_scipys_paired_test(n: int, trial: int) -> None:
    rng = np.random.default_rng([n, trial, 1])
    shared = rng.normal(0, 1, n)
    first, second = shared + rng.normal(0.1, 0.1, n), shared + rng.normal(0, 0.1, n)
    found = paired_difference(seeds(list(first)), seeds(list(second)))
    test = stats.ttest_rel(first, second)
    expected = test.confidence_interval(0.95)
    assert found.interval == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert found.excludes_zero == (test.pvalue < 0.05)


def test_only_shared_seeds_are_paired() -> None:
    found = paired_difference(seeds([1.0, 2.0, 3.0]), seeds([2.0, 2.0, 100.0], first=1))
    assert (found.mean, found.n) == (pytest.approx(0.5), 2)
    assert paired_difference(seeds([1.0]), seeds([1.0], first=7)) is None


def test_one_observation_has_no_interval_and_decides_nothing() -> None:
    found = estimate(seeds([2.0]))
    assert (found.mean, found.half_width, found.interval, found.n) == (2.0, None, None, 1)
    assert not found.excludes_zero
    assert clear_winner({"a": seeds([1.0]), "b": seeds([9.0])}, lower_is_better=True) is None


def test_non_finite_observations_are_left_out() -> None:
    assert estimate(seeds([1.0, math.nan, 3.0, math.inf])).n == 2
    assert estimate(seeds([math.nan])) is None
    assert estimate(pd.Series(dtype=float)) is None


def test_winner_needs_a_paired_interval_clear_of_the_runner_up() -> None:
    base = seeds([4.0, 4.5, 5.0])  # seeds differ far more than models do: only pairing sees the difference
    clear = {"a": base, "b": base - seeds([0.10, 0.11, 0.12]), "c": base + 1}
    assert clear_winner(clear, lower_is_better=True) == "b"
    assert clear_winner(clear, lower_is_better=False) == "c"
    unclear = {"a": base, "b": base - seeds([0.30, -0.10, 0.12])}
    assert clear_winner(unclear, lower_is_better=True) is None


def test_winner_is_judged_against_the_runner_up_not_the_last() -> None:
    base = seeds([4.0, 4.5, 5.0])
    close = {"far": base + 1, "best": base - seeds([0.3, -0.1, 0.12]), "second": base}
    assert clear_winner(close, lower_is_better=True) is None


def test_an_estimate_in_another_unit_keeps_its_n() -> None:
    found = estimate(seeds([0.1, 0.2, 0.3])).scaled(-100)
    assert found.mean == pytest.approx(-20)
    assert found.half_width == pytest.approx(100 * estimate(seeds([0.1, 0.2, 0.3])).half_width)
    assert found.n == 3


def test_frames_of_estimates_and_differences() -> None:
    rows = [
        {"variant": name, "seed": seed, "step": step, "value": step + 10 * seed + offset + 0.01 * seed * bool(offset)}
        for name, offset in (("base", 0.0), ("other", -1.0))
        for seed in range(3)
        for step in (1, 2)
    ]
    frame = pd.DataFrame(rows)
    means = estimates_frame(frame, ["variant", "step"], "value")
    assert list(means["mean"]) == pytest.approx([11, 12, 10.01, 11.01])
    differences = differences_frame(frame, "step", "value", "base")
    assert set(differences["variant"]) == {"other"}
    assert list(differences["mean"]) == pytest.approx([-0.99, -0.99])
    assert (differences["low"] < differences["mean"]).all() and (differences["high"] < -0.9).all()
