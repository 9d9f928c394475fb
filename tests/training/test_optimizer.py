"""Parameter groups by what a parameter is, and the learning rate of every step."""

import itertools

import pytest

from lexmem.model.module import named_specs
from lexmem.spec.params import TrainParams
from lexmem.spec.registry import variant_types
from lexmem.training.optim import lr_factor, parameter_groups


def params(**values):
    return TrainParams(**{"lr": 0.01, "valid_every": 1, "valid_tokens": 64, "checkpoint_every": 1} | values)


@pytest.mark.parametrize("kind", variant_types())
@pytest.mark.parametrize("tied", [False, True])
def test_groups_hold_every_parameter_once_at_its_rate_and_decay(toy, kind, tied):
    decoder = toy.build(kind, toy.base.model_copy(update={"tied": tied}))
    for embedding_decay in (False, True):
        for table_decay in (False, True):
            train = params(
                weight_decay=0.2,
                embedding_decay=embedding_decay,
                table_decay=table_decay,
                table_lr_multiplier=5.0,
            )
            groups = parameter_groups(decoder, train)
            members = [id(parameter) for group in groups for parameter in group["params"]]
            assert sorted(members) == sorted(id(parameter) for parameter in decoder.parameters())
            found = {id(p): (group["lr"], group["weight_decay"]) for group in groups for p in group["params"]}
            for name, parameter, spec in named_specs(decoder):
                decays = {"norm": False, "embedding": embedding_decay, "table": table_decay}.get(spec.group, True)
                rate = 0.05 if spec.group == "table" else 0.01
                assert found[id(parameter)] == (pytest.approx(rate), 0.2 if decays else 0.0), name


def test_rate_warms_up_linearly_and_falls_as_a_cosine():
    train = params(warmup_fraction=0.1, min_lr_ratio=0.2)
    factors = [lr_factor(step, 100, train) for step in range(101)]
    assert factors[:10] == pytest.approx([(step + 1) / 10 for step in range(10)])
    assert factors[10] == 1.0 and max(factors) == 1.0
    assert factors[55] == pytest.approx(0.6)  # half of the way
    assert factors[100] == pytest.approx(0.2)
    assert all(later < earlier for earlier, later in itertools.pairwise(factors[10:]))


@pytest.mark.parametrize(("steps", "warmup"), [(1, 0.0), (1, 0.9), (2, 0.05), (12, 0.05), (3, 0.99)])
def test_rate_of_a_short_training_is_positive_and_at_most_the_base(steps, warmup):
    train = params(warmup_fraction=warmup)
    assert all(0 < lr_factor(step, steps, train) <= 1 for step in range(steps + 1))
    if round(warmup * steps) == 0:
        assert lr_factor(0, steps, train) == 1.0
    assert lr_factor(10 * steps, steps, train) == pytest.approx(0.1)
