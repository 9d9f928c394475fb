"""``dvc.yaml``'s lists of code against what the stages import: everything that can change an outcome, and no more."""

from pathlib import Path

import pytest
from import_graph import ROOT, closure

from lexmem.spec.params import read_yaml

STAGES = read_yaml(ROOT / "dvc.yaml")["stages"]
# The wording of errors, the drawing of progress and the clock change no outcome.
SHOWN = {"src/lexmem/spec/errors.py", "src/lexmem/spec/timing.py", "src/lexmem/progress.py"}
# Files that are read, not imported.
DATA = {"src/lexmem/evaluation/task_files"}


def relative(files) -> set[str]:
    return {str(file.relative_to(ROOT)) for file in files}


def used(stage: str) -> set[str]:
    """Files whose code a stage runs; those which only variants import are run by whatever builds a model."""
    files = relative(closure(ROOT / "pipelines" / f"{stage}.py"))
    if "src/lexmem/spec/registry.py" in files:
        for variant in (ROOT / "src/lexmem/variants").glob("*.py"):
            files |= relative(closure(variant, leaves=False)) - {f"src/lexmem/variants/{variant.name}"}
    return {file for file in files if not file.startswith(("src/lexmem/tracking", "src/lexmem/variants"))} - SHOWN


def listed(stage: str) -> list[str]:
    return [dep for dep in STAGES[stage]["deps"] if dep.startswith(("src/", "pipelines/"))]


def covered_by(dep: str) -> set[str]:
    path = ROOT / dep
    return relative(path.rglob("*.py")) if path.is_dir() else {dep}


def before(stage: str) -> set[str]:
    """The stages whose code cannot change without this one running anew: itself and pretrain, for what reads runs."""
    reads_runs = any(dep.startswith("runs/${item.preset}") and "/plan/" not in dep for dep in STAGES[stage]["deps"])
    return {stage, "pretrain"} if reads_runs else {stage}


def test_every_stage_has_its_script():
    scripts = {path.stem for path in (ROOT / "pipelines").glob("*.py")} - {"__init__", "study"}
    assert set(STAGES) == scripts


@pytest.mark.parametrize("stage", STAGES)
def test_every_import_is_listed(stage):
    covered = set().union(*(covered_by(dep) for dep in listed(stage)))
    assert used(stage) - covered == set()


@pytest.mark.parametrize("stage", STAGES)
def test_nothing_else_is_listed(stage):
    wanted = set().union(*(used(name) for name in before(stage)))
    if stage == "plan":
        wanted |= covered_by("src/lexmem/variants")
    for dep in listed(stage):
        if dep in DATA:
            continue
        assert (ROOT / dep).exists(), f"{stage}: {dep} does not exist"
        surplus = {file for file in covered_by(dep) - wanted if not _is_empty_init(ROOT / file)}
        assert surplus == set(), f"{stage}: {dep}"
        assert covered_by(dep) & used(stage) or stage == "plan", f"{stage}: {dep}"


@pytest.mark.parametrize("stage", STAGES)
def test_files_beside_the_code_are_listed(stage):
    files = used(stage)
    if "src/lexmem/evaluation/catalogue.py" in files:
        assert "src/lexmem/evaluation/task_files" in STAGES[stage]["deps"]
    if stage == "report":
        assert "src/lexmem/reporting" in STAGES[stage]["deps"]  # with its templates


def test_stages_write_only_under_their_preset():
    for name, stage in STAGES.items():
        for out in [*stage.get("outs", []), *stage.get("metrics", []), *stage.get("plots", [])]:
            path = out if isinstance(out, str) else next(iter(out))
            assert path.split("/")[1] == "${item.preset}", f"{name}: {path}"
            assert path.startswith("results/") == isinstance(out, dict), f"{name}: only results are in git ({path})"


def _is_empty_init(file: Path) -> bool:
    return file.name == "__init__.py" and file not in closure(file)
