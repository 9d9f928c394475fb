"""REPORT.md with its tables and figures, and the results section of a README."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path

import jinja2
import pandas as pd
from matplotlib.figure import Figure

from lexmem.reporting import cost_figures, cost_tables, figures, findings, quality_tables
from lexmem.reporting.frames import Results
from lexmem.reporting.measures import average, band_measures, task_measures, test_loss
from lexmem.reporting.provenance import provenance
from lexmem.reporting.style import Looks, save_figure
from lexmem.reporting.tables import Table, markdown, write_table
from lexmem.spec.errors import UserError
from lexmem.spec.files import replacing
from lexmem.spec.layout import Layout

# Figures of differences, of which a study without the baseline or without another model has none.
COMPARISONS = ("main_comparison", "difference_curves", "deciles")
BEGIN, END = "<!-- results:begin -->", "<!-- results:end -->"


@dataclass(frozen=True)
class Picture:
    """A figure to draw, with its words for readers who see it and for those who do not."""

    name: str
    title: str
    caption: str
    draw: Callable[[], Figure]


def all_tables(results: Results) -> dict[str, Table]:
    """Every table the study has, by name."""
    made = [
        quality_tables.summary_table(results),
        quality_tables.main_table(results),
        quality_tables.task_differences_table(results),
        quality_tables.bands_table(results),
        quality_tables.tasks_table(results),
        quality_tables.deciles_table(results),
        quality_tables.diverged_table(results),
        cost_tables.ledger_table(results),
        cost_tables.settings_table(results),
        cost_tables.allocation_table(results),
        cost_tables.decode_table(results),
        cost_tables.training_speed_table(results),
        cost_tables.stages_table(results),
        cost_tables.corpus_table(results),
        cost_tables.items_table(results),
    ]
    return {table.name: table for table in made if table is not None}


def all_pictures(results: Results) -> dict[str, Picture]:
    """Every figure the study has, by name; captions end with what bars and bands mean."""
    looks = Looks.of(results)
    base = results.title(results.baseline)
    loss, tasks, bands = test_loss(results), task_measures(results), band_measures(results)
    several = len(results.seeds) > 1
    seeds = f"Means over {len(results.seeds)} seeds" if several else "One seed"
    interval = "95 % Student t intervals" if several else "no intervals"
    compared = [loss, average(tasks)] if tasks else [loss]
    made = [
        Picture(
            "main_comparison",
            "Differences at the end of training",
            f"Paired difference to {base} at the end of training. Small grey dots: seeds. {seeds}, {interval}.",
            partial(figures.main_comparison, compared, looks),
        ),
        Picture(
            "loss_curves",
            "Validation loss through training",
            f"Validation loss over training, and enlarged at its end. {seeds}; bands: {interval}, which hold the "
            "spread between seeds that paired differences cancel.",
            partial(figures.loss_curves, results.curves, looks),
        ),
        Picture(
            "difference_curves",
            "Differences through training",
            f"Validation loss minus that of {base} at the same seed and step. {seeds}; bands: {interval}.",
            partial(figures.difference_curves, results.curves, looks),
        ),
        Picture(
            "deciles",
            "Differences by token frequency",
            f"Where the differences are: test loss minus that of {base}, by how often the token to predict occurs in "
            f"the training text. Below: the deciles' share of the test tokens. {seeds}, {interval}.",
            partial(figures.decile_differences, results.deciles, looks),
        ),
        Picture(
            "loss_against_memory",
            "Loss against memory",
            "Test loss against all parameters and against bytes of lookup tables; training FLOPs are equal. "
            f"{seeds}, {interval} (not paired: they hold the spread between seeds).",
            partial(cost_figures.loss_against_memory, _memory(results), looks),
        ),
        Picture(
            "allocation",
            "Rows by token frequency",
            "Rows of the lookup tables by frequency rank of the token, for three allocations of one budget; means over "
            "neighbouring ranks.",
            partial(cost_figures.allocation, results.allocation),
        ),
        Picture(
            "timing_decode",
            "Decoding speed",
            "Decoding speed by where the lookup tables are. Means over repeats, 95 % Student t intervals.",
            partial(cost_figures.decoding, results.decode, looks),
        ),
    ]
    if tasks:
        caption = f"Accuracy on every task beside a guess and the n-gram floors (grey bars). {seeds}, {interval}."
        made.append(Picture("tasks", "Task accuracy", caption, partial(figures.tasks_overview, tasks, looks)))
    if bands:
        caption = f"Accuracy by band of word frequency. {seeds}, {interval}; grey lines: the n-gram floors."
        made.append(
            Picture(
                "tasks_by_frequency",
                "Task accuracy by word frequency",
                caption,
                partial(figures.tasks_by_frequency, bands, looks),
            )
        )
    if not looks.others or results.baseline not in loss.values:
        made = [picture for picture in made if picture.name not in COMPARISONS]
    return {picture.name: picture for picture in made}


def write_report(results: Results, layout: Layout) -> Path:
    """Write tables/, figures/ and REPORT.md under ``results/<preset>``; returns the report's path."""
    tables, pictures = all_tables(results), all_pictures(results)
    with replacing(layout.tables) as folder:
        folder.mkdir()
        for table in tables.values():
            write_table(table, folder)
    with replacing(layout.figures) as folder:
        folder.mkdir()
        for picture in pictures.values():
            save_figure(picture.name, picture.draw, folder)
    path = layout.results / "REPORT.md"
    with replacing(path) as temporary:
        temporary.write_text(render(results, tables, pictures, layout.root), encoding="utf-8")
    return path


def render(results: Results, tables: dict[str, Table], pictures: dict[str, Picture], root: Path) -> str:
    """The text of REPORT.md."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    template = environment.from_string(
        files("lexmem.reporting").joinpath("templates/report.md.jinja").read_text("utf-8")
    )
    text = template.render(
        results=results,
        setup=results.plan[results.baseline],
        base=results.title(results.baseline),
        names=[results.title(name) for name in results.variants],
        tables=tables,
        pictures=pictures,
        markdown=markdown,
        headlines=findings.headlines(results),
        by_frequency=findings.by_frequency(results),
        resolution=findings.resolution(results),
        speeds=findings.speeds(results),
        provenance=provenance(results, root),
    )
    return re.sub(r"\n{3,}", "\n\n", text)


def readme_section(results: Results, figures_folder: str) -> str:
    """Figure, table and headline sentences for a README; ``figures_folder`` as the README would link to it."""
    table = quality_tables.summary_table(results)
    pictures = all_pictures(results)
    picture = pictures.get("main_comparison", pictures["loss_curves"])
    sentences = "\n".join(f"- {sentence}" for sentence in findings.headlines(results))
    image = f"![{picture.title}]({figures_folder}/{picture.name}.svg)"
    return f"{image}\n\n{markdown(table)}\n{table.note}\n\n{sentences}\n"


def refresh_readme(readme: Path, section: str) -> None:
    """Replace what stands between the two markers of ``readme``.

    Raises:
        UserError: if the file or one of the markers is missing.
    """
    if not readme.exists():
        raise UserError(f"{readme}: no such file")
    text = readme.read_text(encoding="utf-8")
    begin, end = text.find(BEGIN), text.find(END)
    if begin < 0 or end < begin:
        raise UserError(f"{readme}: needs the lines {BEGIN} and, after it, {END}; the results go between them")
    with replacing(readme) as temporary:
        temporary.write_text(f"{text[: begin + len(BEGIN)]}\n{section}{text[end:]}", encoding="utf-8")


def _memory(results: Results) -> pd.DataFrame:
    loss, rows = test_loss(results), []
    for name in results.variants:
        found, cost = loss.estimate(name), results.plan[name]["cost"]
        if found is not None:
            low, high = found.interval or (found.mean, found.mean)
            row = {"variant": name, "total": cost["total"], "table_bytes": cost["table_bytes"]}
            rows.append(row | {"mean": found.mean, "low": low, "high": high})
    return pd.DataFrame(rows, columns=["variant", "total", "table_bytes", "mean", "low", "high"])
