"""Means, intervals and paired differences over seeds.

Seeds pair variants: under one seed all shared parameters start equal and the data order is the same, so a variant is
compared with another through the differences at each seed both have.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy import stats

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over ``n`` observations with the half width of its interval (None for ``n`` = 1: nothing to judge by)."""

    mean: float
    half_width: float | None
    n: int

    @property
    def interval(self) -> tuple[float, float] | None:
        """Lower and upper end, or None without an interval."""
        if self.half_width is None:
            return None
        return self.mean - self.half_width, self.mean + self.half_width

    @property
    def excludes_zero(self) -> bool:
        """Whether an interval exists and lies on one side of 0."""
        return self.half_width is not None and abs(self.mean) > self.half_width

    def scaled(self, factor: float) -> "Estimate":
        """The estimate in another unit."""
        half_width = None if self.half_width is None else abs(factor) * self.half_width
        return Estimate(factor * self.mean, half_width, self.n)


def estimate(values: pd.Series) -> Estimate | None:
    """Mean and 95 % Student t interval (n - 1 degrees of freedom) of the finite ``values``; None if there are none."""
    finite = values[np.isfinite(values.astype(float))].astype(float)
    n = len(finite)
    if n == 0:
        return None
    if n == 1:
        return Estimate(float(finite.iloc[0]), None, 1)
    quantile = stats.t.ppf(0.5 + CONFIDENCE / 2, n - 1)
    return Estimate(float(finite.mean()), float(quantile * finite.std(ddof=1) / math.sqrt(n)), n)


def paired_difference(values: pd.Series, reference: pd.Series) -> Estimate | None:
    """Estimate of ``values - reference`` over the index entries (seeds) that both have; None if they share none."""
    shared = values.index.intersection(reference.index)
    return estimate(values[shared].astype(float) - reference[shared].astype(float))


def clear_winner(values: Mapping[str, pd.Series], lower_is_better: bool) -> str | None:
    """The best by mean, if the paired interval of its difference to the runner-up excludes 0; else None.

    Args:
        values: per variant, observations indexed by seed.
    """
    means = {name: found.mean for name, series in values.items() if (found := estimate(series)) is not None}
    if len(means) < 2:
        return None
    best, second = sorted(means, key=means.__getitem__, reverse=not lower_is_better)[:2]
    difference = paired_difference(values[best], values[second])
    return best if difference is not None and difference.excludes_zero else None


def estimates_frame(frame: pd.DataFrame, by: list[str], value: str) -> pd.DataFrame:
    """One row a group of ``by``: its mean, low and high (equal to the mean for one observation) and n."""
    rows = []
    for keys, group in frame.groupby(by, sort=False):
        rows.append({**dict(zip(by, keys, strict=True)), **_ends(estimate(group[value]))})
    return pd.DataFrame(rows, columns=[*by, "mean", "low", "high", "n"]).dropna(subset=["mean"])


def differences_frame(frame: pd.DataFrame, over: str, value: str, baseline: str) -> pd.DataFrame:
    """Paired differences of every other variant to ``baseline`` at each value of ``over``.

    Args:
        frame: columns variant, seed, ``over``, ``value``; one row for each triple.

    Returns:
        Columns variant, ``over``, mean, low, high, n; pairs without a shared seed are left out.
    """
    rows = []
    for place, group in frame.dropna(subset=[value]).groupby(over):
        series = {name: found.set_index("seed")[value] for name, found in group.groupby("variant", sort=False)}
        for name in series:
            if name != baseline and baseline in series:
                found = paired_difference(series[name], series[baseline])
                rows.append({"variant": name, over: place, **_ends(found)})
    return pd.DataFrame(rows, columns=["variant", over, "mean", "low", "high", "n"]).dropna(subset=["mean"])


def _ends(found: Estimate | None) -> dict[str, float]:
    if found is None:
        return {}
    low, high = found.interval or (found.mean, found.mean)
    return {"mean": found.mean, "low": low, "high": high, "n": found.n}
