"""Pretrain one variant with one seed; started again after a kill it ends in the same weights."""

import sys
from typing import Annotated

import typer

from lexmem.spec.errors import exit_on_user_error


def main(
    preset: Annotated[str, typer.Option(help="Name of a file of presets/.")],
    variant: Annotated[str, typer.Option(help="A run of params.yaml.")],
    seed: Annotated[int, typer.Option(help="Seed of weights and data order.")],
) -> None:
    """Write the finished model to runs/ and its curve to results/."""
    from lexmem.spec.layout import Layout
    from lexmem.spec.params import load_preset

    params = load_preset(preset)
    from lexmem.training.run import FINISHED, pretrain

    status = pretrain(Layout(preset), params.train, variant, seed)
    if status != FINISHED:
        print(f"warning: {variant}-{seed} stopped: {status}; it is listed as such in the report", file=sys.stderr)


if __name__ == "__main__":
    exit_on_user_error(lambda: typer.run(main))
