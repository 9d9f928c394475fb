import math

import pytest
import torch

from lexmem.inference.sampling import Sampling, choose
from lexmem.spec.errors import UserError

PROBS = torch.tensor([0.1, 0.4, 0.05, 0.3, 0.15])


def draws(sampling: Sampling, n: int = 20_000) -> torch.Tensor:
    """Share of each token in ``n`` draws from ``PROBS``."""
    chosen = choose(PROBS.log().expand(n, -1), sampling, torch.Generator().manual_seed(sampling.seed))
    return torch.bincount(chosen, minlength=5) / n


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(0.0, 0, 1.0, 0), [0, 1, 0, 0, 0]),
        (Sampling(1.0, 0, 1.0, 0), [0.1, 0.4, 0.05, 0.3, 0.15]),
        (Sampling(1.0, 2, 1.0, 0), [0, 4 / 7, 0, 3 / 7, 0]),
        (Sampling(1.0, 99, 1.0, 0), [0.1, 0.4, 0.05, 0.3, 0.15]),
        (Sampling(1.0, 0, 0.6, 0), [0, 4 / 7, 0, 3 / 7, 0]),  # 0.4 alone is under 0.6
        (Sampling(1.0, 0, 0.39, 0), [0, 1, 0, 0, 0]),
        (Sampling(0.5, 2, 1.0, 0), [0, 16 / 25, 0, 9 / 25, 0]),
    ],
)
def test_shares_of_draws(sampling, expected):
    torch.testing.assert_close(draws(sampling), torch.tensor(expected).float(), atol=0.012, rtol=0)


def test_extreme_logits_are_no_obstacle():
    logits = torch.tensor([[1e30, -1e30, -math.inf]])
    for temperature in (1e-30, 1.0, 1e30):
        assert choose(logits, Sampling(temperature, 0, 1.0, 0), torch.Generator()).item() in (0, 1)
    assert choose(logits, Sampling(1e-30, 0, 1.0, 0), torch.Generator()).item() == 0


@pytest.mark.parametrize(
    ("values", "name"),
    [((-1.0, 0, 1.0), "temperature"), ((math.nan, 0, 1.0), "temperature"), ((math.inf, 0, 1.0), "temperature"),
     ((1.0, -1, 1.0), "top_k"), ((1.0, 0, 0.0), "top_p"), ((1.0, 0, 1.5), "top_p")],
)  # fmt: skip
def test_values_out_of_range_are_named(values, name):
    with pytest.raises(UserError, match=f"^{name} = "):
        Sampling(*values, seed=0)
