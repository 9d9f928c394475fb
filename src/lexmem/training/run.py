"""One pretraining from plan to finished model, resuming where a killed one stopped."""

import logging
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import lightning as L
import torch
from lightning.pytorch.callbacks import TQDMProgressBar
from lightning.pytorch.utilities import rank_zero_only
from lightning.pytorch.utilities.exceptions import MisconfigurationException

import lexmem
from lexmem import tracking
from lexmem.allocation import Allocations
from lexmem.data.tokens import TokenFiles, TrainingWindows, heldout_windows
from lexmem.model.build import decoder_of_plan
from lexmem.model.module import initialise
from lexmem.model.save import save_run
from lexmem.spec.code import code_hash
from lexmem.spec.errors import UserError
from lexmem.spec.files import read_json, replacing, sha256_file, sha256_json, write_json
from lexmem.spec.layout import Layout
from lexmem.spec.params import TrainParams
from lexmem.training.checkpoints import Fingerprint, checkpoint_callback, newest_checkpoint
from lexmem.training.data import ResumableBatches
from lexmem.training.history import History, OnRows, Validation
from lexmem.training.module import DivergedError, Pretraining
from lexmem.training.progress import PlainProgress
from lexmem.training.records import write_metrics

FINISHED = "finished"
CODE = ("model", "training", "data/tokens.py", "spec/params.py")


def fingerprint_of(layout: Layout, plan: dict[str, Any], train: TrainParams, tokens: TokenFiles, seed: int) -> str:
    """Hash of all that shapes a training: plan, optimizer and protocol, data, allocation, code, seed."""
    code = code_hash(Path(lexmem.__file__).parent / part for part in CODE)
    data = [tokens.meta["sha256"], sha256_file(layout.allocation / "codewords.npz")]
    return sha256_json([plan["hash"], train.model_dump(mode="json"), data, code, seed])


def pretrain(layout: Layout, train: TrainParams, variant: str, seed: int) -> str:
    """Train, write the finished model and its metrics, and return the status: "finished" or why it stopped.

    A training whose loss is not finite writes its curve and plan, but no weights.
    """
    plan, tokens = read_json(layout.plan(variant)), TokenFiles.open(layout.tokens)
    fingerprint = fingerprint_of(layout, plan, train, tokens, seed)
    checkpoints = layout.scratch / f"{variant}-{seed}-{fingerprint[:16]}"
    _require_equal_shares(plan["budget"]["batch_size"], train)

    def fit(on_rows: OnRows) -> tuple[Pretraining, History, str]:
        module, history = _prepare(layout, plan, train, tokens, seed, on_rows)
        batches = ResumableBatches(TrainingWindows(tokens, *_shape(plan["budget"]), seed))
        return module, history, _fit(module, history, batches, plan["title"], train, checkpoints, fingerprint)

    if rank_zero_only.rank:  # one more process of a distributed training: the first one logs and writes
        return fit(lambda rows: None)[-1]
    with tracking.training(layout.preset, variant, seed, plan["hash"], layout.root) as live:
        live.params({**plan, "seed": seed, "train": train.model_dump(mode="json")})
        module, history, status = fit(live.rows)
        if status != FINISHED:
            live.fail(status)
    write_metrics(layout, plan, train, seed, history, status)
    if status == FINISHED:
        save_run(layout.run(variant, seed), module.model, plan, layout.tokens, layout.allocation)
    else:
        with replacing(layout.run(variant, seed)) as out:
            write_json(out / "plan.json", plan)
    tracking.record_pretrain(layout.preset, variant, seed, layout.root)
    shutil.rmtree(checkpoints, ignore_errors=True)
    return status


def _require_equal_shares(batch_size: int, train: TrainParams) -> None:
    processes = train.devices * train.nodes
    if batch_size % processes:
        raise UserError(
            f"budget.batch_size = {batch_size} is not divisible by train.devices x train.nodes = {processes} processes"
        )


def _shape(budget: dict[str, Any]) -> tuple[int, int, int]:
    return budget["tokens"], budget["seq_len"], budget["batch_size"]


def _prepare(
    layout: Layout, plan: dict[str, Any], train: TrainParams, tokens: TokenFiles, seed: int, on_rows: OnRows
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
    batches: ResumableBatches,
    title: str,
    train: TrainParams,
    checkpoints: Path,
    fingerprint: str,
) -> str:
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    warnings.filterwarnings("ignore", module="lightning")
    torch.set_num_threads(train.threads)
    interactive = sys.stderr.isatty()
    callbacks = [history, Fingerprint(fingerprint), checkpoint_callback(checkpoints, train.checkpoint_every)]
    try:
        trainer = L.Trainer(
            max_steps=module.steps,
            accelerator=train.accelerator,
            devices=train.devices,
            num_nodes=train.nodes,
            strategy=train.strategy,
            precision=train.precision,
            logger=False,
            callbacks=callbacks + ([TQDMProgressBar()] if interactive else [PlainProgress(title)]),
            enable_progress_bar=interactive,
            enable_model_summary=False,
            use_distributed_sampler=False,
        )
    except (MisconfigurationException, ValueError) as error:  # a device or strategy that this machine lacks
        raise UserError(f"train: {' '.join(str(error).split())}") from None
    try:
        trainer.fit(module, batches, ckpt_path=newest_checkpoint(checkpoints, fingerprint), weights_only=False)
    except DivergedError as error:
        return str(error)
    return FINISHED
