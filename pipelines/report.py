"""Stage report: tables, figures and REPORT.md from the files of a finished study."""

from pathlib import Path
from typing import Annotated

import typer

from lexmem.spec.errors import exit_on_user_error
from lexmem.spec.layout import Layout
from lexmem.spec.params import load_preset


def main(
    preset: Annotated[str, typer.Option(help="Name of a file in presets/.")],
    readme: Annotated[Path | None, typer.Option(help="Also refresh the results section of this file.")] = None,
) -> None:
    """Write results/PRESET/{tables,figures,REPORT.md} and log them to MLflow's parent run."""
    load_preset(preset)
    layout = Layout(preset)
    from lexmem.reporting.document import readme_section, refresh_readme, write_report
    from lexmem.reporting.frames import load_results
    from lexmem.tracking import record_report

    results = load_results(preset)
    print(f"report: {write_report(results, layout)}")
    if readme is not None:
        refresh_readme(readme, readme_section(results, layout.figures.as_posix()))
        print(f"report: {readme}")
    record_report(preset)


if __name__ == "__main__":
    exit_on_user_error(lambda: typer.run(main))
