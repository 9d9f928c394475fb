"""Tables of what models cost and what they were made of: ledger, allocation, timings, text and items."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from lexmem.reporting.frames import Results
from lexmem.reporting.stats import estimate
from lexmem.reporting.tables import Cell, Column, Table

STAGES = ("corpus", "tokenize", "allocate", "tasks", "plan", "pretrain", "floor", "evaluate", "probe", "bench")


def ledger_table(results: Results) -> Table:
    """What every variant spends: compute, shape, budget, parameters by group."""
    groups = list(dict.fromkeys(group for entry in results.plan.values() for group in entry["cost"]["params"]))
    base = results.title(results.baseline)
    columns = [
        Column("name", "Model"),
        Column("ffn_width", "FFN width", group="Compute and budget"),
        Column("flops_training", "Training MFLOPs a token", 3, 1e-6, group="Compute and budget"),
        Column("flops_relative", f"Relative to {base}", 4, group="Compute and budget"),
        Column("steps", "Steps", group="Compute and budget"),
        Column("tokens", "Tokens", group="Compute and budget"),
        Column("total", "Total (M)", 3, 1e-6, group="Memory"),
        Column("active", "Active (M)", 3, 1e-6, group="Memory"),
        Column("table_bytes", "Tables (MB)", 2, 1e-6, group="Memory"),
        Column("bytes_gathered", "Gathered a token (kB)", 2, 1e-3, group="Memory"),
        *[Column(f"params_{group}", group, 3, 1e-6, group="Parameters by group (M)") for group in groups],
    ]
    baseline_flops = results.plan[results.baseline]["cost"]["flops_training"]
    rows = []
    for name, entry in results.plan.items():
        cost, budget = entry["cost"], entry["budget"]
        row: dict[str, Cell] = {"name": results.title(name)}
        row |= {"ffn_width": entry["model"]["ffn_width"], "steps": budget["steps"], "tokens": budget["tokens"]}
        row |= {key: cost[key] for key in ("flops_training", "total", "active", "table_bytes", "bytes_gathered")}
        row["flops_relative"] = cost["flops_training"] / baseline_flops
        row |= {f"params_{group}": cost["params"].get(group, 0) for group in groups}
        rows.append(row)
    note = (
        "FLOPs of forward and backward pass, attention over the full square; embedding rows cost 0, the output head "
        "always counts. Active: parameters one token uses. Gathered: bytes read from lookup tables for one token."
    )
    return Table("ledger", "The iso-FLOP ledger", note, columns, rows)


def settings_table(results: Results) -> Table:
    """Each variant's own parameters."""
    columns = [Column("name", "Model"), Column("type", "Type"), Column("settings", "Settings")]
    rows = [
        {"name": results.title(name), "type": entry["type"], "settings": _settings(entry["config"])}
        for name, entry in results.plan.items()
    ]
    note = "As planned, the planner's own choices included; what is not named here is the same for all."
    return Table("settings", "Settings of the variants", note, columns, rows)


def allocation_table(results: Results) -> Table:
    """Rows of lookup tables by allocation method, at one budget and cap."""
    summary = results.allocation_summary
    columns = [
        Column("method", "Method"),
        Column("expected_rows", "Rows looked up a training token", 2),
        Column("sum", "Rows in all"),
        Column("max", "Most a token"),
        Column("tokens_at_one", "Tokens with one row"),
        Column("tokens_at_cap", "Tokens at the cap"),
    ]
    rows = [{"method": method, **values} for method, values in summary["methods"].items()]
    note = (
        f"{summary['budget']:,} rows for {summary['vocab_size']:,} tokens, at most {summary['cap']} each; "
        f"{summary['codewords']:,} codewords ({summary['listing']} listing) of {summary['tokens']:,} training tokens."
    )
    return Table("allocation", "Allocation of lookup rows", note, columns, rows)


def decode_table(results: Results) -> Table:
    """Decoding speed by where the tables are, with and without prefetch."""
    columns = [
        Column("name", "Model"),
        Column("tier", "Tables in"),
        Column("prefetch", "Prefetch"),
        Column("batch_size", "Batch"),
        Column("tokens_per_second", "Tokens/s", 1),
        Column("ms_per_token_p50", "ms a step, p50", 2),
        Column("p10", "p10", 2),
        Column("p90", "p90", 2),
        Column("stall_ms_per_token", "Stall (ms a step)", 3),
        Column("bytes_per_token", "Fetched a token (kB)", 2, 1e-3),
    ]
    keys = ["variant", "tier", "prefetch", "batch_size"]
    rows = []
    for (variant, tier, prefetch, batch), frame in _in_order(results, results.decode).groupby(keys, sort=False):
        row: dict[str, Cell] = {"name": results.title(variant), "tier": str(tier)}
        row |= {"prefetch": _prefetch(tier, prefetch), "batch_size": int(batch)}
        row["tokens_per_second"] = estimate(frame["tokens_per_second"])
        medians = ("ms_per_token_p50", "p10", "p90", "stall_ms_per_token", "bytes_per_token")
        rows.append(row | {key: _median(frame[key]) for key in medians})
    note = (
        "A step gives every sequence of the batch one token. Tokens/s: mean ± 95 % interval over repeats; the other "
        "columns are medians over repeats."
    )
    return Table("timing_decode", "Decoding with a KV cache", note, columns, rows)


def training_speed_table(results: Results) -> Table:
    """Training speed, all variants interleaved in one process."""
    base = results.title(results.baseline)
    columns = [
        Column("name", "Model"),
        Column("tokens_per_second", "Tokens/s", 0),
        Column("relative", f"Speed, relative to {base}", 3),
        Column("update", "of a step: update of tables (ms)", 2),
    ]
    rows = []
    for variant, frame in _in_order(results, results.training_speed).groupby("variant", sort=False):
        row: dict[str, Cell] = {"name": results.title(str(variant))}
        row["tokens_per_second"] = estimate(frame["tokens_per_second"])
        row |= {"relative": estimate(frame["relative_to_baseline"]), "update": _median(frame["table_update_ms"])}
        rows.append(row)
    note = "Whole optimizer steps, variants in turns: mean ± 95 % interval over repeats; the tables' update: median."
    return Table("timing_training", "Training speed", note, columns, rows)


def stages_table(results: Results) -> Table:
    """Wall time of stages, a row a stage and variant."""
    columns = [
        Column("stage", "Stage"),
        Column("name", "Model"),
        Column("runs", "Runs"),
        Column("seconds", "Seconds, in all", 1),
    ]
    rows = []
    for (stage, variant), frame in _by_stage(results).groupby(["stage", "variant"], sort=False, dropna=False):
        name = None if pd.isna(variant) else results.title(variant)
        rows.append({"stage": stage, "name": name, "runs": len(frame), "seconds": float(frame["seconds"].sum())})
    note = "Wall time as the stages measured it themselves; matrix stages may have run side by side."
    return Table("timing_stages", "Wall time by stage", note, columns, rows)


def corpus_table(results: Results) -> Table:
    """Sources of the text with their licences."""
    columns = [
        Column("name", "Source"),
        Column("package", "Package"),
        Column("version", "Version"),
        Column("licence", "Licence"),
        Column("documents", "Documents"),
        Column("bytes", "MB", 2, 1e-6),
        Column("dropped_duplicates", "Duplicates dropped"),
        Column("dropped_empty", "Empty dropped"),
        Column("sha256", "SHA-256 of the text, first 12"),
    ]
    rows = [_row({**source, "sha256": source["sha256"][:12]}, columns) for source in results.corpus["sources"]]
    splits = results.corpus["splits"].items()
    sizes = ", ".join(
        f"{name} {split['documents']:,} documents, {split['bytes'] / 1e6:.2f} MB" for name, split in splits
    )
    note = f"After splitting by document: {sizes}."
    return Table("corpus", "Text and its licences", note, columns, rows)


def items_table(results: Results) -> Table:
    """Where evaluation items come from, and how many of them stand in the training text."""
    columns = [
        Column("task", "Task"),
        Column("items", "Items"),
        Column("licence", "Licence"),
        Column("source", "Source"),
        Column("prefix", "In the training tokens"),
        Column("corpus", "In the whole training text"),
        Column("unjudged", "Too short to tell"),
        Column("notes", "Left out"),
    ]
    rows: list[dict[str, Cell]] = []
    for task, info in results.task_info.items():
        row: dict[str, Cell] = {"task": task, "items": info["items"], "licence": info["licence"]}
        row |= {"source": _source(info["source"]), **info["contaminated"]}
        row["notes"] = "; ".join(f"{name}: {note}" for name, note in info["notes"].items()) or None
        rows.append(row)
    note = (
        "In the training text: items most of whose 13-grams occur there. Items are those there are; a limit of the "
        "preset may score fewer."
    )
    return Table("tasks_items", "Evaluation items", note, columns, rows)


def _row(values: Mapping[str, Any], columns: list[Column]) -> dict[str, Cell]:
    cells = {column.key: values.get(column.key) for column in columns}
    return {
        key: None if cell is None else cell if isinstance(cell, int | float) else str(cell)
        for key, cell in cells.items()
    }


def _source(source: Mapping[str, str]) -> str:
    parts = [source.get("text"), " ".join(filter(None, (source.get("package"), source.get("version"))))]
    known = ", ".join(filter(None, parts))
    return known or ", ".join(str(value) for value in source.values())


def _prefetch(tier: str, prefetch: bool) -> str | None:
    if tier == "resident":
        return None
    return "yes" if prefetch else "no"


def _settings(config: Mapping[str, Any]) -> str | None:
    return ", ".join(f"{key} {value}" for key, value in config.items() if not isinstance(value, dict)) or None


def _in_order(results: Results, frame: pd.DataFrame) -> pd.DataFrame:
    rank = {name: number for number, name in enumerate(results.variants)}
    return frame.sort_values("variant", key=lambda column: column.map(rank), kind="stable")


def _by_stage(results: Results) -> pd.DataFrame:
    """Timings in the order of stages, then of variants."""
    ranks = {name: number for number, name in enumerate((*STAGES, *results.variants))}
    timings = results.timings.assign(stage_rank=results.timings["stage"].map(ranks))
    timings["variant_rank"] = timings["variant"].map(ranks)
    return timings.sort_values(["stage_rank", "variant_rank"], na_position="first", kind="stable")


def _median(values: pd.Series) -> float | None:
    median = values.median()
    return None if pd.isna(median) else float(median)
