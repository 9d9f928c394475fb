"""``python -m lexmem.tracking replay --preset P``: MLflow's database, rebuilt from files."""

from pathlib import Path
from typing import Annotated

import typer

from lexmem.spec.errors import UserError, exit_on_user_error, nearest
from lexmem.spec.layout import Layout
from lexmem.tracking import replay

app = typer.Typer(add_completion=False, help="MLflow beside the files.")


@app.callback()
def tracking() -> None: ...


@app.command("replay")
def command(preset: Annotated[str, typer.Option(help="A folder of results/, by name.")]) -> None:
    """Log everything that results/<preset> holds to mlflow.db; safe to repeat."""
    if not Layout(preset).results.is_dir():
        raise UserError(
            f"preset = {preset!r}: nothing in results/ to replay; "
            + nearest(preset, [path.name for path in Path("results").glob("*/")])
        )
    print(f"MLflow: {replay(preset)} trainings of preset {preset} are in mlflow.db; look at them with `make ui`")


if __name__ == "__main__":
    exit_on_user_error(app)
