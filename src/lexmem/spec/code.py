"""Fingerprints of source code that ignore comments and layout."""

import ast
import hashlib
from collections.abc import Iterable
from pathlib import Path


def code_hash(paths: Iterable[Path]) -> str:
    """SHA-256 of the syntax trees of Python files (directories are searched), in the order of their paths."""
    files = sorted(file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path]))
    digest = hashlib.sha256()
    for file in files:
        digest.update(ast.dump(ast.parse(file.read_text(encoding="utf-8"))).encode())
    return digest.hexdigest()
