"""Tables of what models learned: the main table, differences to the baseline, every task, loss by frequency."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas as pd

from lexmem.reporting.frames import FINISHED, Results
from lexmem.reporting.measures import (
    NATS,
    PERCENT,
    Measure,
    average,
    band_measures,
    bin_words,
    bits_per_byte,
    chance_of,
    task_measures,
    task_names,
    test_loss,
    validation_loss,
)
from lexmem.reporting.stats import Estimate, estimate
from lexmem.reporting.tables import MINUS, Cell, Column, Table

PANEL = 6  # columns of tasks that fit a page
SPREAD = "Mean ± 95 % interval over seeds (Student t)."
BOLD = "Bold: the best, where the paired interval of its difference to the runner-up excludes 0."


def main_table(results: Results) -> Table:
    """Size, compute, loss and every task of each variant, with the floors and a guess below."""
    base = results.title(results.baseline)
    losses = [validation_loss(results), test_loss(results), bits_per_byte(results)]
    tasks = task_measures(results)
    columns = [
        Column("name", "Model"),
        Column("seeds", "Seeds", group="Size and compute"),
        Column("active", "Active parameters (M)", 2, 1e-6, group="Size and compute"),
        Column("total", "Total parameters (M)", 2, 1e-6, group="Size and compute"),
        Column("flops_training", "Training MFLOPs a token", 2, 1e-6, group="Size and compute"),
        Column("flops_relative", f"FLOPs, relative to {base}", 4, group="Size and compute"),
    ]
    for loss in losses:
        columns += [_column(loss, "Loss"), _difference_column(results, loss, "Loss")]
    measures = list(losses)
    if tasks:
        measures += [*tasks, average(tasks)]
        columns += _task_columns(results, measures[len(losses) :])
    rows = [_model_row(results, name, measures) for name in results.models]
    rows.append({"name": "guess", **{measure.key: measure.chance for measure in measures}})
    note = f"{SPREAD} Δ: paired difference to {base} over shared seeds. Task accuracy in %, zero-shot. {BOLD}"
    return Table("main", "All models at equal training FLOPs", note, columns, rows, _bold(results, measures))


def summary_table(results: Results) -> Table:
    """The main table's essence in one panel: size, compute, loss and the tasks' average."""
    full = main_table(results)
    average_keys = ("average", "average_difference")
    wanted = ("name", "total", "flops_relative", "test_loss", "test_loss_difference", "bits_per_byte", *average_keys)
    headers = {"average": f"Task average ({PERCENT})"}
    columns = [
        replace(column, group="", header=headers.get(column.key, column.header))
        for column in full.columns
        if column.key in wanted
    ]
    bold = frozenset((row, key) for row, key in full.bold if key in wanted)
    title = "Loss and accuracy at equal training FLOPs"
    return Table("summary", title, full.note, columns, full.rows, bold)


def task_differences_table(results: Results) -> Table | None:
    """Each task's paired difference to the baseline: one row a task, one column a variant; None without tasks."""
    tasks = task_measures(results)
    if not tasks:
        return None
    others = results.others
    columns = [Column("measure", "Task")]
    columns += [Column(name, results.title(name), 1, 100.0, signed=True) for name in others]
    rows, bold = [], set()
    for number, measure in enumerate([*tasks, average(tasks)]):
        differences = {name: measure.difference(name, results.baseline) for name in others}
        rows.append({"measure": measure.title, **differences})
        bold |= {(number, name) for name, found in differences.items() if _clear(found)}
    base = results.title(results.baseline)
    note = f"Mean of (model {MINUS} {base}) over shared seeds ± 95 % interval, % points. Bold: the interval excludes 0."
    return Table("tasks_differences", f"Accuracy: paired difference to {base}", note, columns, rows, frozenset(bold))


def tasks_table(results: Results) -> Table:
    """Both accuracies of every task and band with the standard error over items."""
    columns = [Column("task", "Task"), Column("name", "Model"), Column("items", "Items")]
    for metric in ("acc", "acc_norm"):
        columns += [
            Column(metric, f"{metric} (%)", 1, 100.0),
            Column(f"{metric}_stderr", "s.e. over items", 1, 100.0),
        ]
    rows = []
    for task in _with_leaves(results):
        frame = results.tasks[results.tasks["task"] == task]
        for name in results.models:
            mine = frame[frame["variant"] == name]
            if len(mine):
                rows.append({"task": task, "name": results.title(name), **_both_metrics(mine, name in results.plan)})
        if (chance := chance_of(results, task)) is not None:
            rows.append({"task": task, "name": "guess", "acc": chance})
    note = f"{SPREAD} The standard error over items is lm-eval's, averaged over seeds."
    return Table("tasks_all", "Every task, both accuracies", note, columns, rows)


def bands_table(results: Results) -> Table | None:
    """Accuracy by band of word frequency, where tasks have bands."""
    bands = band_measures(results)
    if not bands:
        return None
    measures = [measure for group in bands.values() for measure in group]
    columns = [Column("name", "Model")]
    for task, group in bands.items():
        columns += [Column(m.key, m.title, m.digits, m.scale, group=task) for m in group]
    rows = [
        {"name": results.title(name), **{measure.key: _cell(results, measure, name) for measure in measures}}
        for name in results.models
    ]
    rows.append({"name": "guess", **{measure.key: measure.chance for measure in measures}})
    note = (
        "Accuracy in %; cloze by occurrences of its words in the training text, homophones by which of two words is "
        f"right. {SPREAD} {BOLD}"
    )
    title = "Tasks made from held-out text, by word frequency"
    return Table("tasks_by_frequency", title, note, columns, rows, _bold(results, measures))


def deciles_table(results: Results) -> Table:
    """Test loss by frequency of the target token in the training text, and its difference to the baseline."""
    frame = results.by_decile
    models = results.models
    others = results.others
    base = results.title(results.baseline)
    columns = [Column("bin", "Decile"), Column("types", "Tokens in the vocabulary"), Column("tokens", "Test tokens")]
    columns += [Column(name, results.title(name), 3, group="Loss (nats/token)") for name in models]
    columns += [
        Column(f"{name}_difference", results.title(name), 3, signed=True, group=f"Difference to {base} (nats/token)")
        for name in others
    ]
    rows, bold, words = [], set(), bin_words(frame["bin"].tolist())
    for number, (bin_number, group) in enumerate(frame.groupby("bin")):
        series = {str(name): g.set_index("seed")["loss"].dropna() for name, g in group.groupby("variant")}
        measure = Measure("loss", "Test loss", NATS, series, True, 3)
        row: dict[str, Cell] = {"bin": _bin_name(int(bin_number), words)}
        row |= {"types": int(group["types"].iloc[0]), "tokens": int(group["tokens"].iloc[0])}
        row |= {name: _cell(results, measure, name) for name in models}
        row |= {f"{name}_difference": measure.difference(name, results.baseline) for name in others}
        if (winner := measure.winner(results.variants)) is not None:
            bold.add((number, winner))
        bold |= {(number, f"{n}_difference") for n in others if _clear(row[f"{n}_difference"])}
        rows.append(row)
    note = (
        "Deciles of the vocabulary entries that training shows, by occurrences of the token to predict. "
        f"{SPREAD} Bold loss: clear of the runner-up; bold difference: its interval excludes 0."
    )
    return Table("deciles", "Test loss by token frequency", note, columns, rows, frozenset(bold))


def diverged_table(results: Results) -> Table | None:
    """Runs without a final model, or None if all ended well."""
    if results.diverged.empty:
        return None
    columns = [
        Column("run", "Model"),
        Column("seed", "Seed"),
        Column("status", "Status"),
        Column("steps", "Steps done"),
    ]
    rows = [
        {
            "run": results.title(run["variant"]),
            "seed": int(run["seed"]),
            "status": str(run["status"]),
            "steps": int(run["steps"]),
        }
        for _, run in results.diverged.iterrows()
    ]
    note = "No number of these runs is in any mean of this report; the seeds column of the main table counts the rest."
    return Table("diverged", "Runs that did not finish", note, columns, rows)


def _with_leaves(results: Results) -> list[str]:
    """Tasks that have an accuracy in the order of the manifest, each followed by its leaves."""
    ordered = [name for task, info in results.task_info.items() for name in (task, *info["leaves"])]
    names = task_names(results)
    return [name for name in dict.fromkeys(ordered) if name in names]


def _model_row(results: Results, name: str, measures: Sequence[Measure]) -> dict[str, Cell]:
    row: dict[str, Cell] = {"name": results.title(name)}
    if name in results.plan:
        cost = results.plan[name]["cost"]
        baseline_flops = results.plan[results.baseline]["cost"]["flops_training"]
        runs = results.runs[(results.runs["variant"] == name) & (results.runs["status"] == FINISHED)]
        row |= {"seeds": len(runs), "active": cost["active"], "total": cost["total"]}
        row |= {"flops_training": cost["flops_training"], "flops_relative": cost["flops_training"] / baseline_flops}
    for measure in measures:
        row[measure.key] = _cell(results, measure, name)
        if name in results.plan:
            row[f"{measure.key}_difference"] = measure.difference(name, results.baseline)
    return row


def _cell(results: Results, measure: Measure, name: str) -> Cell:
    # A floor has no seeds, so no interval to miss.
    return measure.estimate(name) if name in results.plan else measure.value(name)


def _task_columns(results: Results, measures: Sequence[Measure]) -> list[Column]:
    columns = []
    panels = -(-len(measures) // PANEL)
    for number, measure in enumerate(measures):
        part = f" ({number // PANEL + 1} of {panels})" if panels > 1 else ""
        columns.append(_column(measure, f"Tasks{part}, accuracy in %"))
    return [*columns, _difference_column(results, measures[-1], columns[-1].group)]


def _column(measure: Measure, group: str) -> Column:
    header = measure.title if measure.unit == PERCENT else f"{measure.title} ({measure.unit})"
    return Column(measure.key, header, measure.digits, measure.scale, group=group)


def _difference_column(results: Results, measure: Measure, group: str) -> Column:
    return Column(f"{measure.key}_difference", "Δ", measure.digits, measure.scale, True, group)


def _bold(results: Results, measures: Sequence[Measure]) -> frozenset[tuple[int, str]]:
    winners = [(measure.winner(results.variants), measure.key) for measure in measures]
    return frozenset((results.variants.index(name), key) for name, key in winners if name is not None)


def _both_metrics(frame: pd.DataFrame, seeded: bool) -> dict[str, Cell]:
    row: dict[str, Cell] = {"items": int(frame["n"].iloc[0])}
    for metric in ("acc", "acc_norm"):
        found = frame[frame["metric"] == metric]
        if len(found):
            row[metric] = estimate(found["value"]) if seeded else float(found["value"].iloc[0])
            stderr = found["stderr"].dropna().mean()
            row[f"{metric}_stderr"] = None if pd.isna(stderr) else float(stderr)
    return row


def _bin_name(number: int, words: Mapping[int, str]) -> str:
    return f"{number} ({words[number]})" if number in words else str(number)


def _clear(cell: Cell) -> bool:
    return isinstance(cell, Estimate) and cell.excludes_zero
