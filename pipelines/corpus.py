"""Stage corpus: text of all sources of a preset to ``data/<preset>/corpus``."""

from typing import Annotated

import typer

from lexmem.spec.errors import exit_on_user_error
from lexmem.spec.files import write_json
from lexmem.spec.layout import Layout
from lexmem.spec.params import load_preset
from lexmem.spec.timing import timed


def main(preset: Annotated[str, typer.Option(help="A file of presets/, without .yaml.")]) -> None:
    """Fetch, extract, deduplicate, shuffle and split the text of a preset's sources."""
    from lexmem.data.corpus import build_corpus
    from lexmem.data.sources.registry import check_names, open_source

    params, layout = load_preset(preset).corpus, Layout(preset)
    check_names(params.sources)
    with timed(layout, "corpus"):
        sources = [open_source(spec, preset) for spec in params.sources]
        manifest = build_corpus(params, sources, layout.corpus)
    write_json(layout.metrics("corpus") / "manifest.json", manifest)
    for name, split in manifest["splits"].items():
        print(f"{name:<6} {split['documents']:>8,} documents {split['bytes'] / 1e6:8.1f} MB")


if __name__ == "__main__":
    exit_on_user_error(lambda: typer.run(main))
