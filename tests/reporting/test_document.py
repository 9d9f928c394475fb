import re
from collections.abc import Callable
from pathlib import Path

import pytest
from made_up_results import PRESET, diverge, make_results

from lexmem.reporting import findings, measures
from lexmem.reporting.document import (
    BEGIN,
    END,
    all_pictures,
    all_tables,
    readme_section,
    refresh_readme,
    render,
    write_report,
)
from lexmem.reporting.frames import Results, load_results
from lexmem.reporting.measures import average, task_measures
from lexmem.reporting.quality_tables import main_table
from lexmem.reporting.stats import Estimate
from lexmem.reporting.tables import Table, csv, markdown
from lexmem.spec.errors import UserError
from lexmem.spec.layout import Layout

NOT_A_NUMBER = re.compile(r"\b(nan|NaN|inf|Infinity|None)\b")


@pytest.fixture(scope="module")
def written(results: Results, tree: Path) -> Path:
    return write_report(results, Layout(PRESET, tree)).parent


def report_and_tables(results: Results) -> tuple[str, dict[str, Table]]:
    """The text and tables of a report all of whose figures can be drawn."""
    tables, pictures = all_tables(results), all_pictures(results)
    for picture in pictures.values():
        picture.draw().draw_without_rendering()
    return render(results, tables, pictures, Path()), tables


def test_every_figure_is_written_in_both_formats_and_shown(written: Path) -> None:
    report = (written / "REPORT.md").read_text(encoding="utf-8")
    names = {path.stem for path in (written / "figures").iterdir()}
    assert names == {
        "allocation", "deciles", "difference_curves", "loss_against_memory", "loss_curves", "main_comparison",
        "tasks", "tasks_by_frequency", "timing_decode",
    }  # fmt: skip
    for name in names:
        assert f"(figures/{name}.svg)" in report
        for suffix in (".svg", ".png"):
            assert (written / "figures" / f"{name}{suffix}").stat().st_size > 2000


def test_every_table_is_written_in_three_formats_and_shown(written: Path, results: Results) -> None:
    report = (written / "REPORT.md").read_text(encoding="utf-8")
    tables = all_tables(results)
    assert {path.name for path in (written / "tables").iterdir()} == {
        f"{name}{suffix}" for name in tables for suffix in (".md", ".csv", ".tex")
    }
    for table in tables.values():
        assert markdown(table).strip() in report


def test_links_of_the_report_lead_somewhere(written: Path) -> None:
    report = (written / "REPORT.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", report)
    assert len(links) > 30
    assert all((written / link).exists() for link in links)


def test_no_output_holds_a_number_that_is_none(written: Path) -> None:
    texts = [written / "REPORT.md", *(written / "tables").iterdir()]
    for path in texts:
        assert not NOT_A_NUMBER.search(path.read_text(encoding="utf-8")), path.name


def test_a_second_report_has_the_same_bytes(written: Path, results: Results, tree: Path) -> None:
    before = {path: path.read_bytes() for path in written.rglob("*") if path.is_file() and "metrics" not in path.parts}
    assert len(before) > 50
    write_report(results, Layout(PRESET, tree))
    assert {path for path, content in before.items() if path.read_bytes() != content} == set()


def test_timings_are_only_in_tables_named_so(fresh: Callable[[], Path], results: Results) -> None:
    root = fresh()
    metrics = root / "results" / PRESET / "metrics"
    for path in [*metrics.glob("*/*timing.json"), *metrics.glob("bench/*.csv")]:
        text = path.read_text(encoding="utf-8")
        path.write_text(re.sub(r"(\d+\.\d)", r"7\1", text), encoding="utf-8")
    before, after = all_tables(results), all_tables(load_results(PRESET, root))
    changed = {name for name in before if csv(before[name]) != csv(after[name])}
    assert changed == {"timing_decode", "timing_training", "timing_stages"}


def test_main_table_agrees_with_the_frames(results: Results) -> None:
    rows = {row["name"]: row for row in main_table(results).rows}
    frame = results.runs.pivot(index="seed", columns="variant", values="valid_loss")
    found = rows["Bank"]["valid_loss_difference"]
    assert found.mean == pytest.approx((frame["bank"] - frame["dense"]).mean())
    assert rows["Dense"]["valid_loss"].mean == pytest.approx(frame["dense"].mean())
    assert rows["Dense"]["valid_loss_difference"] is None
    norm = results.tasks.query("variant == 'mix' and task == 'hellaswag' and metric == 'acc_norm'")["value"].mean()
    plain = results.tasks.query("variant == 'mix' and task == 'arc_easy' and metric == 'acc'")["value"].mean()
    assert (rows["Mix"]["hellaswag"].mean, rows["Mix"]["arc_easy"].mean) == pytest.approx((norm, plain))
    assert rows["guess"]["average"] == pytest.approx((0.25 + 0.25 + 0.25 + 0.5) / 4)
    assert isinstance(rows["4-gram"]["cloze"], float)


def test_average_is_seed_by_seed(results: Results) -> None:
    tasks = task_measures(results)
    assert [task.key for task in tasks] == ["arc_easy", "hellaswag", "cloze", "homophones"]
    values = average(tasks).values["look"]
    assert values[1] == pytest.approx(sum(task.values["look"][1] for task in tasks) / 4)


def test_headlines_are_computed(results: Results) -> None:
    found = measures.test_loss(results).difference("look", "dense")
    low, high = found.interval
    sentence = next(s for s in findings.headlines(results) if s.startswith("LOOK_UP"))
    numbers = [
        float(text.replace("\N{MINUS SIGN}", "-")) for text in re.findall(r"[+\N{MINUS SIGN}]\d+\.\d+", sentence)
    ]
    assert numbers == pytest.approx([found.mean, low, high], abs=5e-4)
    assert sentence.endswith("nats a token of test loss, 3 seeds: better.")


def test_one_seed_has_no_intervals_and_no_bold(tmp_path: Path) -> None:
    results = load_results(PRESET, make_results(tmp_path, seeds=(0,)))
    report, tables = report_and_tables(results)
    assert not NOT_A_NUMBER.search(report)
    assert "1 seed: no interval." in report and "With one seed no difference has an interval" in report
    for name in ("summary", "main", "deciles", "tasks_differences", "tasks_by_frequency"):
        assert not tables[name].bold
        assert "**" not in markdown(tables[name])
    loss = main_table(results).rows[0]["valid_loss"]
    assert isinstance(loss, Estimate) and loss.half_width is None


def test_a_diverged_run_is_listed_and_in_no_mean(fresh: Callable[[], Path]) -> None:
    root = fresh()
    diverge(root, "bank", 1)
    results = load_results(PRESET, root)
    tables = all_tables(results)
    assert "loss is not finite at step 12" in markdown(tables["diverged"])
    row = tables["main"].rows[results.variants.index("bank")]
    assert row["seeds"] == 2 and row["valid_loss"].n == 2 and row["valid_loss_difference"].n == 2
    assert not NOT_A_NUMBER.search(csv(tables["main"]))


def test_a_variant_all_of_whose_runs_diverged_leaves_a_report(fresh: Callable[[], Path]) -> None:
    root = fresh()
    for seed in range(3):
        diverge(root, "bank", seed)
    report, _ = report_and_tables(load_results(PRESET, root))
    assert not NOT_A_NUMBER.search(report)
    assert report.count("loss is not finite at step 12") == 3


def test_a_baseline_that_diverged_leaves_a_report_without_comparisons(fresh: Callable[[], Path]) -> None:
    root = fresh()
    for seed in range(3):
        diverge(root, "dense", seed)
    report, tables = report_and_tables(load_results(PRESET, root))
    assert not NOT_A_NUMBER.search(report) and "main_comparison" not in report
    assert tables["main"].rows[1]["valid_loss_difference"] is None


def test_the_baseline_alone_has_a_report_without_comparisons(fresh: Callable[[], Path]) -> None:
    root = fresh()
    (root / "params.yaml").write_text("{preset: toy, variants: [dense], seeds: [0, 1, 2], configs: {dense: {}}}")
    results = load_results(PRESET, root)
    report, _ = report_and_tables(results)
    assert not NOT_A_NUMBER.search(report) and "main_comparison" not in report
    assert "loss_curves" in readme_section(results, "figures")


def test_readme_section_is_replaced_and_the_rest_kept(results: Results, tmp_path: Path) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(f"# Title\n\n{BEGIN}\nold\n{END}\n\nrest\n", encoding="utf-8")
    refresh_readme(readme, readme_section(results, "results/toy/figures"))
    once = readme.read_text(encoding="utf-8")
    assert once.startswith(f"# Title\n\n{BEGIN}\n") and once.endswith(f"{END}\n\nrest\n") and "\nold\n" not in once
    assert "(results/toy/figures/main_comparison.svg)" in once and "| Dense |" in once
    refresh_readme(readme, readme_section(results, "results/toy/figures"))
    assert readme.read_text(encoding="utf-8") == once


@pytest.mark.parametrize("text", ["nothing", f"{END} {BEGIN}", BEGIN])
def test_readme_without_markers_is_an_error_and_kept(tmp_path: Path, text: str) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=r"needs the lines <!-- results:begin -->"):
        refresh_readme(readme, "new")
    assert readme.read_text(encoding="utf-8") == text
