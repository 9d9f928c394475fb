"""Decoders and runs of every variant, for the tests of this folder."""

from pathlib import Path

import pytest
from tiny_runs import make_decoder, plan_of, write_inputs

from lexmem.model.decoder import Decoder
from lexmem.model.run import Run, load_run
from lexmem.model.save import save_run
from lexmem.spec.registry import variant_types


@pytest.fixture(params=variant_types())
def variant(request) -> str:
    return request.param


@pytest.fixture
def decoder(variant: str) -> Decoder:
    return make_decoder(variant)


@pytest.fixture(scope="session")
def inputs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    write_inputs(folder)
    return folder


@pytest.fixture
def run_folder(variant: str, inputs: Path, tmp_path: Path) -> Path:
    save_run(tmp_path / f"{variant}-0", make_decoder(variant), plan_of(variant), inputs, inputs)
    return tmp_path / f"{variant}-0"


@pytest.fixture
def run(run_folder: Path) -> Run:
    return load_run(run_folder)
