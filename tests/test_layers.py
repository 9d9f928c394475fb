"""The rules of the house: imports run downwards only, and nothing outside its file names a variant."""

import ast
from pathlib import Path

import pytest

from lexmem.spec.registry import variant_types

SOURCE = Path(__file__).parents[1] / "src" / "lexmem"
LAYERS = ("spec", "data", "allocation", "model", "variants", "planning", "training", "evaluation", "inference",
          "reporting", "study")  # fmt: skip
LEAVES = ("tracking", "progress")  # these import spec alone; everyone may import them
FILES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if path.parent != SOURCE)
# The default of `match`: the baseline's label in the studies of this project.
NAMED = {("spec/variant.py", "dense")}


def imported(path: Path) -> set[str]:
    """Rooms of the house that a file imports when it runs (imports for types alone are left out)."""
    tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and getattr(branch.test, "id", "") == "TYPE_CHECKING"
        for statement in branch.body
        for node in ast.walk(statement)
    }
    modules = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "lexmem":
            modules |= {f"lexmem.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
        elif isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
    return {module.split(".")[1] for module in modules if module.startswith("lexmem.")}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_run_downwards(path):
    room = path.parts[0]
    below = () if room in LEAVES else LAYERS[: LAYERS.index(room)]
    allowed = {room, "spec", *below, *(() if room == "spec" else LEAVES)}
    assert imported(path) - allowed == set()


@pytest.mark.parametrize("path", [path for path in FILES if path.parts[0] != "variants"], ids=str)
def test_no_file_names_a_variant(path):
    tree = ast.parse((SOURCE / path).read_text(encoding="utf-8"))
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    found = strings & set(variant_types())
    assert {(path.as_posix(), name) for name in found} - NAMED == set()
