"""Which of the project's files a Python file imports, directly or not: read from syntax trees, nothing is run."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
# Variants are imported by name, and their code reaches a stage through the hash in its plan entry; tracking is a
# leaf that no result depends on.
LEAVES = (SOURCE / "lexmem" / "variants", SOURCE / "lexmem" / "tracking")


def closure(entry: Path, leaves: bool = True) -> set[Path]:
    """``entry`` and every file of ``src`` that its imports reach, up to the leaves; empty ``__init__`` left out."""
    found, open_files = set(), [entry]
    while open_files:
        file = open_files.pop()
        if file in found or (leaves and any(leaf in file.parents for leaf in LEAVES)):
            continue
        found.add(file)
        open_files += [path for name in _imports(file) for path in _files(name)]
    return {file for file in found if file.name != "__init__.py" or _has_code(file)}


@cache
def _imports(file: Path) -> tuple[str, ...]:
    """Every module that a file names in an import which is not for types alone."""
    return tuple(_walk(file))


def _walk(file: Path) -> Iterator[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    only_types = {
        child
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for child in ast.walk(statement)
    }
    for node in ast.walk(tree):
        if node in only_types:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def _files(name: str) -> tuple[Path, ...]:
    """The files that ``import name`` runs: its own and those of the packages that it is in."""
    parts = name.split(".")
    if parts[0] != "lexmem":
        return ()
    bases = [SOURCE.joinpath(*parts[:end]) for end in range(1, len(parts) + 1)]
    paths = [path for base in bases for path in (base.with_suffix(".py"), base / "__init__.py")]
    return tuple(path for path in paths if path.exists())


def _has_code(init: Path) -> bool:
    """Whether a package's ``__init__`` holds more than its docstring."""
    body = ast.parse(init.read_text(encoding="utf-8")).body
    return any(not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)) for node in body)
