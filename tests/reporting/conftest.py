import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from made_up_results import PRESET, make_results

from lexmem.reporting.frames import Results, load_results


@pytest.fixture(scope="session")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of a finished study; read only."""
    return make_results(tmp_path_factory.mktemp("study"))


@pytest.fixture(scope="session")
def results(tree: Path) -> Results:
    return load_results(PRESET, tree)


@pytest.fixture
def fresh(tree: Path, tmp_path: Path) -> Callable[[], Path]:
    """Copy the study for a test that breaks it."""
    return lambda: shutil.copytree(tree, tmp_path / "study")
