"""What can be wrong with a study beyond the form of its files, before any work is done."""

import os
from pathlib import Path

from lexmem.spec.errors import UserError, nearest
from lexmem.spec.params import Preset, Study, TrainParams, read_yaml
from lexmem.spec.registry import resolve


def check(study: Study, preset: Preset, root: Path = Path()) -> None:
    """Validate every variant's configuration, the runs that it matches, and the names of sources and tasks.

    Raises:
        UserError: one line with the key, what is allowed and the nearest match.
    """
    from lexmem.data.sources.registry import check_names as check_sources
    from lexmem.evaluation.catalogue import check_names as check_tasks

    path = root / "presets" / f"{study.preset}.yaml"
    for section in Preset.model_fields.keys() - read_yaml(path).keys():
        raise UserError(f"{path}: missing section {section!r}: DVC needs each written out; {{}} takes its defaults")
    check_sources(preset.corpus.sources)
    check_tasks(preset.tasks.names)
    for label, values in study.configs.items():
        _, config = resolve(label, values)
        for quantity, other in config.match.items():
            if other not in study.configs:
                where = f"params.yaml: configs.{label}.match.{quantity} = {other!r}"
                raise UserError(f"{where}: no such run; {nearest(other, study.configs)}")


def default_jobs(train: TrainParams) -> int:
    """Trainings at a time: as many as have their threads' cores; one where they share an accelerator."""
    if train.accelerator != "cpu":
        return 1
    return max(1, len(os.sched_getaffinity(0)) // train.threads)
