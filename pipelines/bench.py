"""Stage bench: decoding and training speed of every trained run, interleaved in one process."""

from typing import Annotated

import typer

from lexmem.spec.errors import exit_on_user_error


def main(preset: Annotated[str, typer.Option(help="Name of a file in presets/.")]) -> None:
    """Time the runs of the first seed; needs the machine for itself."""
    from time import perf_counter

    from lexmem.spec.files import write_json
    from lexmem.spec.layout import Layout
    from lexmem.spec.params import load_preset, load_study

    params, study, layout = load_preset(preset), load_study(), Layout(preset)
    from lexmem.inference.bench import run_bench
    from lexmem.inference.show import print_bench
    from lexmem.tracking import record_bench

    started = perf_counter()
    bench = run_bench(layout, params, study.variants, study.seeds[0], baseline=study.variants[0])
    bench.write(layout.metrics("bench"))
    timing = {"seconds": perf_counter() - started} | {key: bench.about[key] for key in ("threads", "machine")}
    write_json(layout.metrics("bench") / "timing.json", timing)
    record_bench(preset)
    print_bench(bench)


if __name__ == "__main__":
    exit_on_user_error(lambda: typer.run(main))
