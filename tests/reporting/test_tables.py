import csv as csv_reader
import io
import re
from pathlib import Path

import pytest

from lexmem.reporting.stats import Estimate
from lexmem.reporting.tables import DASH, MINUS, TIMES, Column, Table, csv, latex, latex_escape, markdown, write_table

TABLE = Table(
    name="sample",
    title="Losses & 100 % of_it",
    note="Costs $5 {or less}; x^2 ~ #1 \\ done",
    columns=[
        Column("name", "Model_name"),
        Column("words", "A|B", group="first"),
        Column("loss", "Loss (nats)", 3, group="first"),
        Column("change", "Δ", 2, 100.0, signed=True, group="second"),
        Column("count", "Tokens", group="second"),
    ],
    rows=[
        {"name": "a_b & c%", "words": "x|y_z*", "loss": Estimate(3.14159, 0.0123, 3), "change": None, "count": 1234567},
        {"name": "$d#{e}", "words": None, "loss": Estimate(2.5, None, 1), "change": -0.00012, "count": 0},
        {"name": "floor", "loss": 4.0},
    ],
    bold=frozenset({(0, "loss")}),
)
TEXTS = [
    ["a_b & c%", "x|y_z*", "3.142 ± 0.012", DASH, "1,234,567"],
    ["$d#{e}", DASH, f"2.500 ± {DASH}", f"{MINUS}0.01", "0"],
    ["floor", DASH, "4.000", None, None],  # absent from the second panel, where it has nothing to show
]


def expected(panel: int) -> list[list[str]]:
    columns = ([0, 1, 2], [0, 3, 4])[panel]
    return [[row[column] for column in columns] for row in TEXTS if row[columns[1]] is not None]


def parse_markdown(text: str) -> list[list[list[str]]]:
    panels = []
    for block in re.findall(r"(?:^\|.*\n?)+", text, flags=re.MULTILINE):
        rows = [re.split(r"(?<!\\)\|", line)[1:-1] for line in block.strip().splitlines()[2:]]
        panels.append(
            [
                [re.sub(r"\\([|_*])", r"\1", cell.strip().removeprefix("**").removesuffix("**")) for cell in row]
                for row in rows
            ]
        )
    return panels


def unlatex(cell: str) -> str:
    cell = re.sub(r"\{\\boldmath\\bfseries (.*)\}", r"\1", cell.strip())
    if match := re.fullmatch(r"\$(.*)\$", cell):
        number = match[1].replace(r"\pm", "±").replace("-", MINUS).replace("{,}", ",")
        return number.replace(rf"\mbox{{{MINUS}{MINUS}}}", DASH)
    for mark, letter in (
        (r"\_", "_"),
        (r"\&", "&"),
        (r"\%", "%"),
        (r"\$", "$"),
        (r"\#", "#"),
        (r"\{", "{"),
        (r"\}", "}"),
    ):
        cell = cell.replace(mark, letter)
    return cell.replace("--", DASH)


def parse_latex(text: str) -> list[list[list[str]]]:
    bodies = re.findall(r"\\midrule\n(.*?)\n\\bottomrule", text, flags=re.DOTALL)
    return [
        [[unlatex(cell) for cell in re.split(r"(?<!\\) & ", line.removesuffix(r" \\"))] for line in body.splitlines()]
        for body in bodies
    ]


@pytest.mark.parametrize("panel", [0, 1])
def test_markdown_and_latex_show_the_same_cells(panel: int) -> None:
    assert parse_markdown(markdown(TABLE))[panel] == expected(panel)
    assert parse_latex(latex(TABLE))[panel] == expected(panel)


def test_csv_has_full_precision_and_the_parts_of_estimates() -> None:
    rows = list(csv_reader.DictReader(io.StringIO(csv(TABLE))))
    assert float(rows[0]["loss"]) == 3.14159
    assert float(rows[0]["loss_ci95"]) == 0.0123
    assert [row["loss_n"] for row in rows] == ["3", "1", ""]
    assert rows[1]["loss_ci95"] == ""
    assert float(rows[1]["change"]) == -0.00012  # own unit: the printed one is scaled
    assert [row["count"] for row in rows] == ["1234567", "0", ""]
    assert [row["name"] for row in rows] == [row["name"] for row in TABLE.rows]


def test_bold_is_marked_in_both_print_formats() -> None:
    assert "| **3.142 ± 0.012** |" in markdown(TABLE)
    assert r"{\boldmath\bfseries $3.142 \pm 0.012$}" in latex(TABLE)


def test_latex_special_characters() -> None:
    assert latex_escape("50% & $x_1^2 {~#} \\") == (
        r"50\% \& \$x\_1\textasciicircum{}2 \{\textasciitilde{}\#\} \textbackslash{}"
    )
    assert latex_escape(f"{MINUS}1 ± 2 {TIMES} 3") == r"$-$1 $\pm$ 2 $\times$ 3"


def test_latex_environments_balance() -> None:
    text = latex(TABLE)
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 2
    assert text.count(r"\toprule") == text.count(r"\midrule") == text.count(r"\bottomrule") == 2
    without_escaped = re.sub(r"\\[{}]", "", text)
    assert without_escaped.count("{") == without_escaped.count("}")


def test_signs_and_zeros() -> None:
    table = Table("t", "", "", [Column("n", ""), Column("x", "", 1, signed=True)], [{"n": "r", "x": -0.01}])
    assert table.text(0, table.columns[1]) == "+0.0"


def test_nan_prints_as_a_dash() -> None:
    table = Table("t", "", "", [Column("n", ""), Column("x", "", 1)], [{"n": "r", "x": float("nan")}])
    assert table.text(0, table.columns[1]) == DASH


def test_three_files_are_written(tmp_path: Path) -> None:
    assert [path.name for path in write_table(TABLE, tmp_path)] == ["sample.md", "sample.csv", "sample.tex"]
    assert (tmp_path / "sample.csv").read_text(encoding="utf-8") == csv(TABLE)
