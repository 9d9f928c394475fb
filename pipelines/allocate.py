"""Stage allocate: codewords of the training prefix, and rows a token by three methods."""

from typing import Annotated, Any

import typer

from lexmem.spec.errors import exit_on_user_error
from lexmem.spec.files import replacing, write_json
from lexmem.spec.layout import Layout
from lexmem.spec.params import load_preset, rows_budget
from lexmem.spec.timing import timed


def main(preset: Annotated[str, typer.Option(help="Name of a file in presets/.")]) -> None:
    """Parse the training prefix into codewords and compare the allocations at the preset's budget and cap."""
    params, layout = load_preset(preset), Layout(preset)
    from lexmem.allocation import Allocations
    from lexmem.allocation.lzw import parse
    from lexmem.allocation.summary import summarise, write_frame
    from lexmem.data.tokens import TokenFiles

    tokens, rule = TokenFiles.open(layout.tokens), params.allocate
    prefix = tokens.prefix(params.budget.tokens)
    with timed(layout, "allocate"):
        codewords = parse(prefix, tokens.vocab_size, tokens.eot_id, rule.listing, rule.max_codewords)
        allocations = Allocations(codewords.sorted_last(), tokens.counts(params.budget.tokens))
    budget, cap = rows_budget(params.allocate, tokens.vocab_size), params.allocate.cap
    summary = {
        "tokens": len(prefix),
        "vocab_size": tokens.vocab_size,
        "listing": params.allocate.listing,
        "codewords": len(codewords),
        "full": codewords.full,
        "budget": budget,
        "cap": cap,
        "methods": summarise(allocations, budget, cap),
    }
    with replacing(layout.allocation) as out:
        allocations.save(out / "codewords.npz")
    write_json(layout.metrics("allocate") / "allocation.json", summary)
    write_frame(layout.metrics("allocate") / "allocation.csv", allocations, budget, cap)
    _print(summary)


def _print(summary: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    title = (
        f"{summary['budget']:,} rows for {summary['vocab_size']:,} tokens, at most {summary['cap']} each; "
        f"{summary['codewords']:,} codewords ({summary['listing']} listing) from {summary['tokens']:,} training tokens"
    )
    table = Table("allocation", title=title)
    for column in ("budget", "cap", "expected rows a token", "tokens at one row", "tokens at the cap"):
        table.add_column(column, justify="right")
    for method, row in summary["methods"].items():
        numbers = (f"{row['sum']:,}", str(summary["cap"]), f"{row['expected_rows']:.2f}")
        table.add_row(method, *numbers, f"{row['tokens_at_one']:,}", f"{row['tokens_at_cap']:,}")
    Console().print(table)


if __name__ == "__main__":
    exit_on_user_error(lambda: typer.run(main))
