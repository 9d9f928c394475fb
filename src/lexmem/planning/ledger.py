"""The ledger as a table on a terminal."""

from typing import Any

from rich.console import Console
from rich.table import Table


def print_ledger(entries: list[dict[str, Any]]) -> None:
    """Print what every run costs a token beside the first run."""
    baseline = entries[0]["cost"]["flops_training"]
    budget = entries[0]["budget"]
    table = Table(title=f"{budget['tokens']:,} tokens in {budget['steps']:,} steps", title_justify="left")
    for column in (
        "run",
        "FFN width",
        "MFLOP / token",
        "to first",
        "active M",
        "total M",
        "table MB",
        "kB read / token",
    ):
        table.add_column(column, justify="left" if column == "run" else "right")
    for entry in entries:
        cost = entry["cost"]
        table.add_row(
            entry["title"],
            str(entry["model"]["ffn_width"]),
            f"{cost['flops_training'] / 1e6:.3f}",
            f"{cost['flops_training'] / baseline - 1:+.2%}",
            f"{cost['active'] / 1e6:.2f}",
            f"{cost['total'] / 1e6:.2f}",
            f"{cost['table_bytes'] / 1e6:.1f}",
            f"{cost['bytes_gathered'] / 1e3:.1f}",
        )
    Console().print(table)
