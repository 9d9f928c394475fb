"""Which files a variant's computation is written in."""

import ast
from collections.abc import Iterator
from pathlib import Path

from lexmem import variants


def variant_sources(kind: str) -> list[Path]:
    """A variant's file, and those of ``lexmem.variants`` that it imports, directly or not."""
    found: dict[str, Path] = {}
    waiting = [kind]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = Path(variants.__file__).with_name(f"{name}.py")
            waiting += _siblings(ast.parse(found[name].read_text(encoding="utf-8")))
    return list(found.values())


def _siblings(tree: ast.Module) -> Iterator[str]:
    package = f"{variants.__name__}."
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.removeprefix(package) for alias in node.names if alias.name.startswith(package))
        elif isinstance(node, ast.ImportFrom) and node.module == variants.__name__:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(package):
            yield node.module.removeprefix(package)
