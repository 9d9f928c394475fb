"""Stage tokenize: a byte-level BPE tokenizer and memory-mapped token files of the corpus."""

from typing import Annotated, Any

import typer

from lexmem.spec.errors import exit_on_user_error
from lexmem.spec.files import replacing
from lexmem.spec.layout import Layout
from lexmem.spec.params import load_preset
from lexmem.spec.timing import timed


def main(preset: Annotated[str, typer.Option(help="Name of a file in presets/.")]) -> None:
    """Train the tokenizer on a sample of the training split and encode every split."""
    params, layout = load_preset(preset), Layout(preset)
    from lexmem.data.encode import tokenize_corpus

    with timed(layout, "tokenize"), replacing(layout.tokens) as out:
        meta = tokenize_corpus(layout.corpus, out, params.tokenizer)
    _print(meta)


def _print(meta: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("split", title=f"{meta['vocab_size']} entries, {meta['dtype'][1:]}")
    for column in ("documents", "MB", "words", "tokens", "bytes a token"):
        table.add_column(column, justify="right")
    for split, size in meta["splits"].items():
        ratio = size["bytes"] / max(size["tokens"] - size["documents"], 1)
        numbers = (f"{size['documents']:,}", f"{size['bytes'] / 1e6:.2f}", f"{size['words']:,}", f"{size['tokens']:,}")
        table.add_row(split, *numbers, f"{ratio:.2f}")
    Console().print(table)


if __name__ == "__main__":
    exit_on_user_error(lambda: typer.run(main))
