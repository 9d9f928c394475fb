"""AdamW's parameter groups and the learning-rate schedule."""

import math

from torch import nn

from lexmem.model.module import named_specs
from lexmem.spec.params import TrainParams


def parameter_groups(model: nn.Module, train: TrainParams) -> list[dict]:
    """Groups for AdamW by what each parameter is; together they hold every parameter once.

    Norm gains never decay; embeddings and tables decay unless ``embedding_decay`` or ``table_decay`` is off; tables
    train at ``table_lr_multiplier`` times the rate.
    """
    decays = {"norm": False, "embedding": train.embedding_decay, "table": train.table_decay}
    members: dict[tuple[bool, bool], list[nn.Parameter]] = {}
    for _, parameter, spec in named_specs(model):
        key = (spec.group == "table", decays.get(spec.group, True))
        members.setdefault(key, []).append(parameter)
    return [
        {
            "params": parameters,
            "lr": train.lr * (train.table_lr_multiplier if table else 1.0),
            "weight_decay": train.weight_decay if decay else 0.0,
        }
        for (table, decay), parameters in sorted(members.items(), key=lambda item: item[0])
    ]


def lr_factor(step: int, steps: int, train: TrainParams) -> float:
    """Share of the base rate at a step (from 0): linear warm-up, then a cosine to ``min_lr_ratio``."""
    warmup = round(train.warmup_fraction * steps)
    if step < warmup:
        return (step + 1) / warmup
    progress = min(1.0, (step - warmup) / max(1, steps - warmup))
    return train.min_lr_ratio + (1 - train.min_lr_ratio) * 0.5 * (1 + math.cos(math.pi * progress))
