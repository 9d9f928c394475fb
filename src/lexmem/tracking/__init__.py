"""MLflow beside the files: a leaf that no result depends on.

One experiment a preset, one parent run ``study``, one child a (variant, seed) found or created by its tags, so that
pretraining and evaluation log into the same run. A stage writes its files first and then calls :func:`record_pretrain`,
:func:`record_evaluate`, :func:`record_bench` or :func:`record_report`, which read those files; ``python -m
lexmem.tracking replay --preset P`` calls the same functions, so that a database rebuilt from files equals the one it
replaces. A training that is to be watched while it runs also uses :func:`training`.

A database that is locked, broken or of another version never fails a stage: the first failure is one warning line, the
rest of that stage's logging is dropped (and can be replayed). Everything is in ``./mlflow.db`` and ``./mlartifacts``;
a file lock orders the processes, because two that create a database at once both break it.
"""

from lexmem.tracking.records import record_bench, record_evaluate, record_pretrain, record_report, replay
from lexmem.tracking.store import Run, create_database, training

__all__ = [
    "Run",
    "create_database",
    "record_bench",
    "record_evaluate",
    "record_pretrain",
    "record_report",
    "replay",
    "training",
]
