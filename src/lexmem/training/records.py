"""The metric files of a training."""

from typing import Any

import pandas as pd

from lexmem.spec.files import replacing, write_json
from lexmem.spec.layout import Layout
from lexmem.spec.params import TrainParams
from lexmem.spec.timing import machine
from lexmem.training.history import History, final_values

COLUMNS = ["variant", "seed", "step", "tokens", "flops", "metric", "value"]


def write_metrics(
    layout: Layout, plan: dict[str, Any], train: TrainParams, seed: int, history: History, status: str
) -> None:
    """Write the curve, the summary and, apart, the timing of a training."""
    name, folder = f"{plan['variant']}-{seed}", layout.metrics("pretrain")
    frame = pd.DataFrame([{"variant": plan["variant"], "seed": seed} | row for row in history.rows], columns=COLUMNS)
    with replacing(folder / f"{name}.csv") as file:
        frame.to_csv(file, index=False)
    last = final_values(history.rows)
    steps = max((row["step"] for row in history.rows), default=0)
    summary = {
        "variant": plan["variant"],
        "seed": seed,
        "status": status,
        "plan_hash": plan["hash"],
        "steps": steps,
        "tokens": steps * plan["budget"]["seq_len"] * plan["budget"]["batch_size"],
        "flops": steps * plan["budget"]["seq_len"] * plan["budget"]["batch_size"] * plan["cost"]["flops_training"],
        "valid_loss": last.get("valid_loss"),
        "bits_per_byte": last.get("bits_per_byte"),
        "train": train.model_dump(mode="json"),
    }
    write_json(folder / f"{name}.json", summary)
    timing = {
        "seconds": history.seconds,
        "tokens_per_second": summary["tokens"] / history.seconds if history.seconds else None,
        "threads": train.threads,
        "machine": machine(),
        "curve": [[row["step"], row["value"]] for row in history.speeds],
    }
    write_json(folder / f"{name}.timing.json", timing)
