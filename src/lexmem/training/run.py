"""One pretraining from plan to finished model, resuming where a killed one stopped."""

import logging
import platform
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import lightning as L
import pandas as pd
import torch
from lightning.pytorch.callbacks import TQDMProgressBar

import lexmem
from lexmem import tracking
from lexmem.allocation import Allocations
from lexmem.data.tokens import TokenFiles, TrainingWindows, heldout_windows
from lexmem.model.module import initialise
from lexmem.model.run import decoder_of_plan, save_run
from lexmem.spec.code import code_hash
from lexmem.spec.files import read_json, replacing, sha256_json, write_json
from lexmem.spec.layout import Layout
from lexmem.spec.params import TrainParams
from lexmem.training.checkpoints import Fingerprint, checkpoint_callback, newest_checkpoint
from lexmem.training.data import ResumableBatches
from lexmem.training.history import History, Validation, final_values
from lexmem.training.module import DivergedError, Pretraining

FINISHED = "finished"
CODE = ("model", "training", "data/tokens.py", "spec/params.py")


def fingerprint_of(plan: dict[str, Any], train: TrainParams, tokens: TokenFiles, seed: int) -> str:
    """Hash of all that shapes a training's weights: plan, optimizer, data, code, seed.

    How often it is validated or saved shapes none.
    """
    settings = train.model_dump(mode="json", exclude={"valid_every", "valid_tokens", "checkpoint_every"})
    code = code_hash(Path(lexmem.__file__).parent / part for part in CODE)
    return sha256_json([plan["hash"], settings, tokens.meta["sha256"], code, seed])


def pretrain(layout: Layout, train: TrainParams, variant: str, seed: int) -> str:
    """Train, write the finished model and its metrics, and return the status: "finished" or why it stopped.

    A training whose loss is not finite writes its curve and plan, but no weights.
    """
    plan, tokens = read_json(layout.plan(variant)), TokenFiles.open(layout.tokens)
    folder = layout.scratch / f"{variant}-{seed}-{fingerprint_of(plan, train, tokens, seed)[:16]}"
    with tracking.training(layout.preset, variant, seed, plan["hash"], layout.root) as live:
        live.params({**plan, "seed": seed, "train": train.model_dump(mode="json")})
        module, history = _prepare(layout, plan, train, tokens, seed, live.rows)
        status = _fit(module, history, plan, train, TrainingWindows(
            tokens, plan["budget"]["tokens"], plan["budget"]["seq_len"], plan["budget"]["batch_size"], seed
        ), folder, fingerprint_of(plan, train, tokens, seed))  # fmt: skip
        if status != FINISHED:
            live.fail(status)
    _write_metrics(layout, plan, train, seed, history, status)
    if status == FINISHED:
        save_run(layout.run(variant, seed), module.model, plan, layout.tokens, layout.allocation)
    else:
        with replacing(layout.run(variant, seed)) as out:
            write_json(out / "plan.json", plan)
    tracking.record_pretrain(layout.preset, variant, seed, layout.root)
    shutil.rmtree(folder, ignore_errors=True)
    return status


def _prepare(
    layout: Layout, plan: dict[str, Any], train: TrainParams, tokens: TokenFiles, seed: int, on_rows: Any
) -> tuple[Pretraining, History]:
    budget = plan["budget"]
    model = decoder_of_plan(plan, Allocations.load(layout.allocation))
    initialise(model, seed)
    windows = heldout_windows(tokens, "valid", budget["seq_len"], train.valid_tokens, budget["batch_size"])
    validation = Validation(list(windows), tokens.token_bytes, tokens.eot_id)
    per_step = budget["seq_len"] * budget["batch_size"]
    history = History(validation, train.valid_every, per_step, plan["cost"]["flops_training"], on_rows)
    return Pretraining(model, train, budget["steps"]), history


def _fit(
    module: Pretraining,
    history: History,
    plan: dict[str, Any],
    train: TrainParams,
    windows: TrainingWindows,
    folder: Path,
    fingerprint: str,
) -> str:
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")
    torch.set_num_threads(train.threads)
    interactive = sys.stderr.isatty()
    callbacks = [history, Fingerprint(fingerprint), checkpoint_callback(folder, train.checkpoint_every)]
    trainer = L.Trainer(
        max_steps=plan["budget"]["steps"],
        accelerator=train.accelerator,
        devices=train.devices,
        num_nodes=train.nodes,
        strategy=train.strategy,
        precision=train.precision,
        logger=False,
        callbacks=callbacks + ([TQDMProgressBar()] if interactive else [PlainProgress(plan["title"])]),
        enable_progress_bar=interactive,
        enable_model_summary=False,
        use_distributed_sampler=False,
    )
    try:
        trainer.fit(
            module,
            ResumableBatches(windows),
            ckpt_path=newest_checkpoint(folder, fingerprint),
            weights_only=False,
        )
    except DivergedError as error:
        return str(error)
    return FINISHED


class PlainProgress(L.Callback):
    """A line at every validation, for logs."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._seen = 0

    def on_train_batch_end(self, trainer: L.Trainer, module: Pretraining, *_: Any) -> None:
        history = next(callback for callback in trainer.callbacks if isinstance(callback, History))
        if len(history.rows) == self._seen:
            return
        self._seen = len(history.rows)
        last, rate = final_values(history.rows), history.speeds[-1]["value"]
        left = (module.steps - trainer.global_step) * history.seconds / trainer.global_step
        print(
            f"{self._title}: step {trainer.global_step}/{module.steps}, train {last['train_loss']:.4f}, "
            f"valid {last['valid_loss']:.4f} nats, {rate:,.0f} tokens/s, {left:,.0f} s left",
            flush=True,
        )


def _write_metrics(
    layout: Layout, plan: dict[str, Any], train: TrainParams, seed: int, history: History, status: str
) -> None:
    name, folder = f"{plan['variant']}-{seed}", layout.metrics("pretrain")
    columns = ["variant", "seed", "step", "tokens", "flops", "metric", "value"]
    frame = pd.DataFrame([{"variant": plan["variant"], "seed": seed} | row for row in history.rows], columns=columns)
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
        "machine": platform.processor() or platform.machine(),
        "curve": [[row["step"], row["value"]] for row in history.speeds],
    }
    write_json(folder / f"{name}.timing.json", timing)
