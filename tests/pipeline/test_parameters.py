"""Every parameter that a stage names stands in every preset: DVC refuses to run a stage with a missing one."""

import pytest
from import_graph import ROOT

from lexmem.spec.params import preset_names, read_yaml

STAGES = read_yaml(ROOT / "dvc.yaml")["stages"]


def keys_of(stage: str, of_preset: bool) -> list[str]:
    """Keys of the active preset's file, or of ``params.yaml``."""
    found = []
    for entry in STAGES[stage].get("params", []):
        if isinstance(entry, dict) == of_preset:
            found += next(iter(entry.values())) if of_preset else [entry]
    return found


def stands_in(values: dict, key: str) -> bool:
    for part in key.split("."):
        if not isinstance(values, dict) or part not in values:
            return False
        values = values[part]
    return True


@pytest.mark.parametrize("preset", preset_names(ROOT))
@pytest.mark.parametrize("stage", STAGES)
def test_every_preset_has_the_keys_of_every_stage(stage, preset):
    values = read_yaml(ROOT / "presets" / f"{preset}.yaml")
    assert [key for key in keys_of(stage, of_preset=True) if not stands_in(values, key)] == []


@pytest.mark.parametrize("stage", STAGES)
def test_the_study_has_the_keys_of_every_stage(stage):
    values = read_yaml(ROOT / "params.yaml")
    assert [key for key in keys_of(stage, of_preset=False) if not stands_in(values, key)] == []
