"""The allocation that looks at token counts alone."""

import numpy as np

from lexmem.allocation.walk import fill


def proportional(counts: np.ndarray, budget: int, cap: int) -> np.ndarray:
    """Rows in proportion to ``counts`` within [1, cap], rounded by largest remainder.

    The scale of the proportion is the one at which the clipped quotas sum to the budget. Equal remainders go to the
    more frequent token, then to the smaller id. If every counted token is at the cap, less than ``budget`` is given.

    Args:
        counts: occurrences a token, (V,).
        budget: total rows, in [V, V x cap].
        cap: most rows a token.

    Returns:
        int64 (V,), summing to ``budget`` or, as said, to less.
    """

    def quotas(scale: float) -> np.ndarray:
        return np.clip(counts * scale, 1, cap)

    counted = counts > 0
    if not counted.any():
        return np.ones(len(counts), np.int64)
    low, high = 0.0, cap / float(counts[counted].min())
    if quotas(high).sum() <= budget:
        return quotas(high).astype(np.int64)
    while (middle := (low + high) / 2) not in (low, high):
        if quotas(middle).sum() <= budget:
            low = middle
        else:
            high = middle
    quota = quotas(low)
    rows = quota.astype(np.int64)
    order = np.lexsort((-counts, -(quota - rows)))
    return fill(rows, order, budget, cap)
