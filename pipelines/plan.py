"""The iso-FLOP ledger: solve every run's knobs, refuse a study that is not equal, print and write the plan."""

from typing import Annotated

import typer

from lexmem.spec.errors import exit_on_user_error


def main(preset: Annotated[str, typer.Option(help="Name of a file of presets/.")]) -> None:
    """Write one plan entry a run, and all of them to the results."""
    from lexmem.allocation import Allocations
    from lexmem.planning.ledger import print_ledger
    from lexmem.planning.plan import TOLERANCE, make_plan
    from lexmem.spec.files import replacing, write_json
    from lexmem.spec.layout import Layout
    from lexmem.spec.params import load_preset, load_study

    params, study, layout = load_preset(preset), load_study(), Layout(preset)
    entries = make_plan(study, params, Allocations.load(layout.allocation))
    print_ledger(entries)
    with replacing(layout.plan("").parent) as folder:
        for entry in entries:
            write_json(folder / f"{entry['variant']}.json", entry)
    write_json(layout.results / "plan.json", {"tolerance": TOLERANCE, "variants": entries})


if __name__ == "__main__":
    exit_on_user_error(lambda: typer.run(main))
