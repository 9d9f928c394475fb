"""The whole study: what is out of date and all that builds on it, with a view of what is done and what remains."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from lexmem.spec.errors import UserError, exit_on_user_error


def main(
    preset: Annotated[str, typer.Option(help="First take this preset's runs into params.yaml.")] = "",
    jobs: Annotated[int, typer.Option(min=0, help="Stages at a time; 0: as many as have cores of their own.")] = 0,
) -> None:
    """Run the study that params.yaml describes."""
    import filelock

    from lexmem.spec.activate import activate

    if preset and activate(preset):
        print(f"params.yaml: now the study of presets/{preset}.yaml")
    Path(".scratch").mkdir(exist_ok=True)
    lock = filelock.FileLock(".scratch/study.lock", timeout=0)
    try:
        with lock:
            raise SystemExit(_run(jobs))
    except filelock.Timeout:
        raise UserError("a study runs in this folder already; wait for it or stop it") from None


def _run(jobs: int) -> int:
    from lexmem.spec.layout import Layout
    from lexmem.spec.params import load_preset, load_study
    from lexmem.study.stages import read_pipeline

    study = load_study()
    preset, layout = load_preset(study.preset), Layout(study.preset)
    _without_git()
    pipeline = read_pipeline()
    report = layout.results / "REPORT.md"
    if not pipeline.remaining:
        print(f"{study.preset}: all {len(pipeline.stages)} stages are up to date: {report}")
        return 0
    from lexmem.study.preflight import check, default_jobs
    from lexmem.study.run import Stopped, failures, run_stages
    from lexmem.tracking import create_database

    check(study, preset)
    create_database()
    jobs = jobs or default_jobs(preset.train)
    print(f"{study.preset}: {len(pipeline.remaining)} of {len(pipeline.stages)} stages to run, {jobs} at a time")
    logs = layout.scratch / "logs"
    try:
        schedule = run_stages(pipeline.remaining, jobs, preset.train.threads, logs)
    except Stopped as stopped:
        print("stopped; the same command goes on where this one ended", file=sys.stderr)
        return 128 + stopped.number
    for line in failures(schedule, logs):
        print(line, file=sys.stderr)
    if schedule.failed:
        return 1
    print(f"{study.preset}: done: {report}")
    return 0


def _without_git() -> None:
    """Let DVC work in a folder that is no git repository (an unpacked archive)."""
    root = Path().resolve()
    if any((folder / ".git").exists() for folder in (root, *root.parents)):
        return
    subprocess.run([sys.executable, "-m", "dvc", "config", "--local", "core.no_scm", "true"], check=True)


if __name__ == "__main__":
    exit_on_user_error(lambda: typer.run(main))
