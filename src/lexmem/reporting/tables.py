"""One declaration of a table, written as Markdown, CSV (full precision) and LaTeX (booktabs)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pandas as pd

from lexmem.reporting.stats import Estimate
from lexmem.spec.files import replacing

Cell = str | int | float | Estimate | None

MINUS, TIMES, DASH = "\u2212", "\u00d7", "\u2013"
_LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    MINUS: "$-$",
    "±": r"$\pm$",
    TIMES: r"$\times$",
    "·": r"$\cdot$",
    "Δ": r"$\Delta$",
    "≥": r"$\geq$",
    "≤": r"$\leq$",
    DASH: "--",
    "…": r"\ldots{}",
}


@dataclass(frozen=True)
class Column:
    """One column: where its cells are in a row and how numbers are printed.

    Attributes:
        key: name in rows and in CSV, where numbers keep their own unit and full precision.
        header: what readers see, with the unit of the printed number.
        digits: decimals printed, after multiplying by ``scale``.
        signed: print a plus sign (for differences).
        group: columns of one group make one panel in Markdown and LaTeX.
    """

    key: str
    header: str
    digits: int = 0
    scale: float = 1.0
    signed: bool = False
    group: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns; the first column names the row and is repeated in every panel.

    ``bold`` holds (row number, column key) of cells to stress.
    """

    name: str
    title: str
    note: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Cell]]
    bold: frozenset[tuple[int, str]] = frozenset()

    def text(self, row: int, column: Column) -> str:
        """The printed form of one cell, before any markup."""
        return _text(self.rows[row].get(column.key), column)

    def panels(self) -> list[tuple[str, list[Column], list[int]]]:
        """(group, columns, row numbers): each opens with the naming column and leaves out rows it has nothing on."""
        label, *rest = self.columns
        panels = []
        for group, found in groupby(rest, key=lambda column: column.group):
            columns = list(found)
            rows = [n for n, row in enumerate(self.rows) if any(row.get(column.key) is not None for column in columns)]
            panels.append((group, [label, *columns], rows))
        return panels


def markdown(table: Table) -> str:
    """Pipe tables, one a panel, numbers aligned right."""
    blocks = []
    for group, columns, rows in table.panels():
        numeric = [_is_numeric(table, column) for column in columns]
        lines = [
            _pipe([_markdown_escape(column.header) for column in columns]),
            _pipe(["---:" if number else ":---" for number in numeric]),
        ]
        for row in rows:
            cells = [_markdown_escape(table.text(row, column)) for column in columns]
            stress = [(row, column.key) in table.bold for column in columns]
            lines.append(_pipe([f"**{cell}**" if bold else cell for cell, bold in zip(cells, stress, strict=True)]))
        blocks.append((f"*{group}*\n\n" if group else "") + "\n".join(lines))
    return "\n\n".join(blocks) + "\n"


def csv(table: Table) -> str:
    """Every number as it is; an estimate takes the columns ``key``, ``key_ci95`` (half width) and ``key_n``."""
    data: dict[str, list] = {}
    for column in table.columns:
        cells = [row.get(column.key) for row in table.rows]
        if any(isinstance(cell, Estimate) for cell in cells):
            estimates = [cell if isinstance(cell, Estimate) else None for cell in cells]
            data[column.key] = [cell.mean if isinstance(cell, Estimate) else cell for cell in cells]
            data[f"{column.key}_ci95"] = [found.half_width if found else None for found in estimates]
            data[f"{column.key}_n"] = [found.n if found else None for found in estimates]
        else:
            data[column.key] = cells
    frame = pd.DataFrame({key: pd.Series(values, dtype=object) for key, values in data.items()})
    return frame.to_csv(index=False, lineterminator="\n")


def latex(table: Table) -> str:
    """A ``table`` environment for the booktabs package, one ``tabular`` a panel."""
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{latex_escape(table.title)}. {latex_escape(table.note)}}}"]
    lines.append(rf"\label{{tab:{table.name}}}")
    for group, columns, rows in table.panels():
        numeric = [_is_numeric(table, column) for column in columns]
        if group:
            lines.append(rf"\par\medskip\emph{{{latex_escape(group)}}}\par\smallskip")
        lines.append(rf"\begin{{tabular}}{{{''.join('r' if number else 'l' for number in numeric)}}}")
        lines += [r"\toprule", _ampersand([latex_escape(column.header) for column in columns]), r"\midrule"]
        for row in rows:
            cells = []
            for column, number in zip(columns, numeric, strict=True):
                text = table.text(row, column)
                cell = _latex_number(text) if number and text != DASH else latex_escape(text)
                if (row, column.key) in table.bold:
                    cell = rf"{{\boldmath\bfseries {cell}}}"
                cells.append(cell)
            lines.append(_ampersand(cells))
        lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def latex_escape(text: str) -> str:
    """``text`` with LaTeX's special characters and our few symbols made printable."""
    return "".join(_LATEX.get(letter, letter) for letter in text)


def write_table(table: Table, folder: Path) -> list[Path]:
    """Write ``<name>.md``, ``.csv`` and ``.tex`` into ``folder`` and return their paths."""
    paths = []
    for suffix, content in ((".md", markdown(table)), (".csv", csv(table)), (".tex", latex(table))):
        path = folder / f"{table.name}{suffix}"
        with replacing(path) as temporary:
            temporary.write_text(content, encoding="utf-8", newline="")
        paths.append(path)
    return paths


def number_text(value: float, column: Column) -> str:
    """One number as ``column`` prints it, with a true minus sign."""
    sign = "+" if column.signed else ""
    rounded = round(value * column.scale, column.digits) + 0.0  # + 0.0 turns a negative zero positive
    return f"{rounded:{sign},.{column.digits}f}".replace("-", MINUS)


def _text(cell: Cell, column: Column) -> str:
    if isinstance(cell, Estimate):
        spread = DASH if cell.half_width is None else f"{cell.half_width * abs(column.scale):,.{column.digits}f}"
        return f"{number_text(cell.mean, column)} ± {spread}"
    if cell is None or (isinstance(cell, float) and cell != cell):
        return DASH
    return cell if isinstance(cell, str) else number_text(cell, column)


def _is_numeric(table: Table, column: Column) -> bool:
    return column is not table.columns[0] and not any(isinstance(row.get(column.key), str) for row in table.rows)


def _pipe(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _ampersand(cells: Sequence[str]) -> str:
    return f"{' & '.join(cells)} \\\\"


def _markdown_escape(text: str) -> str:
    return " ".join(text.replace("|", r"\|").replace("_", r"\_").replace("*", r"\*").split())


def _latex_number(text: str) -> str:
    body = text.replace("±", r"\pm").replace(MINUS, "-").replace(",", "{,}").replace(DASH, r"\mbox{--}")
    return f"${body}$"
