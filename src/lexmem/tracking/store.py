"""MLflow runs in one local database, found by their tags, and a failure of which fails nothing else."""

import logging
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock

QUIET = {"MLFLOW_DISABLE_TELEMETRY": "true", "DO_NOT_TRACK": "true", "GIT_PYTHON_REFRESH": "quiet"}
LOCK_SECONDS = 120.0
BATCH = 1000  # metrics a call: MLflow's limit
PARAMS = 100  # parameters a call: MLflow's limit


class Tracker:
    """The MLflow database of the project at ``root``."""

    def __init__(self, root: Path = Path()) -> None:
        self.root = root
        self._client: Any = None
        self._lock = FileLock(root / "mlflow.db.lock", timeout=LOCK_SECONDS)
        self._broken = False

    def attempt(self, action: Callable[[Any], Any]) -> Any:
        """Return ``action(client)``, one process at a time; after a first failure, one warning line, do nothing."""
        if self._broken:
            return None
        try:
            with self._lock:
                if self._client is None:
                    self._client = _connect(self.root)
                return action(self._client)
        except Exception as error:  # whatever MLflow, SQLAlchemy or the file system raise: results matter more
            self._broken = True
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            print(
                f"warning: MLflow: this stage logs nothing more ({reason[:200]}); its results are not affected, and "
                "`python -m lexmem.tracking replay` rebuilds mlflow.db from them",
                file=sys.stderr,
            )
            return None


class Run:
    """One MLflow run. Every method does nothing once the database has failed."""

    def __init__(self, tracker: Tracker, preset: str, name: str, tags: Mapping[str, str]) -> None:
        self._tracker = tracker
        self._find = {"preset": preset, "run": name, **tags}
        self._id = tracker.attempt(lambda client: _found(client, self._find) or self._created(client))
        self.reason: str | None = None

    def params(self, values: Mapping[str, Any]) -> None:
        """Log parameters once; nested mappings become dotted names.

        A run that already has other values for them is of an older configuration: MLflow deletes it (it can be
        restored until ``mlflow gc``) and this one starts afresh.
        """
        flat = {clean(name): str(value)[:6000] for name, value in flatten(values, ".").items()}

        def log(client: Any) -> None:
            from mlflow.entities import Param

            known = client.get_run(self._id).data.params
            if any(known.get(name, value) != value for name, value in flat.items()):
                client.delete_run(self._id)
                self._id, known = self._created(client), {}
            new = [Param(name, value) for name, value in flat.items() if name not in known]
            for start in range(0, len(new), PARAMS):
                client.log_batch(self._id, params=new[start : start + PARAMS])

        self._tracker.attempt(log)

    def rows(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Log tidy rows (keys step, metric, value; tokens and flops where known) in batches.

        A point's time is its step (milliseconds since 1970), so that logging it again, after a resumed training or
        by a replay, adds nothing. Non-finite values are left out: SQLite has no such numbers.
        """
        values = {}
        for row in rows:
            step = int(row["step"])
            values[row["metric"], step] = row["value"]
            values.update({(name, step): row[name] for name in ("tokens", "flops") if name in row})
        finite = {key: float(value) for key, value in values.items() if _is_number(value)}

        def log(client: Any) -> None:
            from mlflow.entities import Metric

            points = [Metric(clean(name), value, step, step) for (name, step), value in finite.items()]
            for start in range(0, len(points), BATCH):
                client.log_batch(self._id, metrics=points[start : start + BATCH])

        self._tracker.attempt(log)

    def summary(self, values: Mapping[str, Any]) -> None:
        """Log final numbers: nested mappings become ``a/b``, what is not a finite number is left out, and a number
        that the run already has is not repeated."""
        numbers = {clean(name): float(value) for name, value in flatten(values, "/").items() if _is_number(value)}

        def log(client: Any) -> None:
            from mlflow.entities import Metric

            known, now = client.get_run(self._id).data.metrics, int(time.time() * 1000)
            new = [Metric(name, value, now, 0) for name, value in numbers.items() if known.get(name) != value]
            for start in range(0, len(new), BATCH):
                client.log_batch(self._id, metrics=new[start : start + BATCH])

        self._tracker.attempt(log)

    def artifacts(self, directory: Path) -> None:
        """Copy the files of ``directory`` to the run's artifacts, under the directory's name."""
        self._tracker.attempt(lambda client: client.log_artifacts(self._id, str(directory), directory.name))

    def fail(self, reason: str) -> None:
        """End the run as FAILED for ``reason`` (``loss is not finite at step 12``) once its ``with`` block is left."""
        self.reason = reason

    def begin(self) -> None:
        """Mark the run RUNNING."""
        self._tracker.attempt(lambda client: client.update_run(self._id, status="RUNNING"))

    def end(self, status: str, note: str) -> None:
        """Mark the run FINISHED, FAILED or KILLED; ``note`` is its tag ``status``."""

        def log(client: Any) -> None:
            client.set_tag(self._id, "status", note[:500])
            client.set_terminated(self._id, status)

        self._tracker.attempt(log)

    def _created(self, client: Any) -> str:
        tags = dict(self._find)
        experiment = _experiment(client, tags["preset"], self._tracker.root)
        if "variant" in tags:
            tags["mlflow.parentRunId"] = Run(self._tracker, tags["preset"], "study", {})._id
        commit = _commit(self._tracker.root)
        if commit:
            tags["commit"] = commit
        return client.create_run(experiment, tags=tags, run_name=tags["run"]).info.run_id


def child(preset: str, variant: str, seed: int, plan_hash: str, root: Path = Path()) -> Run:
    """The run of one (variant, seed, plan), found by its tags or created."""
    tags = {"variant": variant, "seed": str(seed), "plan_hash": plan_hash}
    return Run(Tracker(root), preset, f"{variant}-{seed}", tags)


@contextmanager
def training(preset: str, variant: str, seed: int, plan_hash: str, root: Path = Path()) -> Iterator[Run]:
    """The run of a training while it runs: RUNNING inside, then FINISHED; FAILED after an exception or
    :meth:`Run.fail`; KILLED after an interrupt. Live rows go to :meth:`Run.rows`, many at a time."""
    run = child(preset, variant, seed, plan_hash, root)
    run.begin()
    try:
        yield run
    except Exception as error:
        run.end("FAILED", run.reason or f"{type(error).__name__}: {error}")
        raise
    except BaseException:
        run.end("KILLED", "interrupted")
        raise
    run.end("FAILED" if run.reason else "FINISHED", run.reason or "finished")


def create_database(root: Path = Path()) -> None:
    """Create the database if there is none, so that no stage waits for another that does."""
    Tracker(root).attempt(lambda client: client.search_experiments(max_results=1))


def flatten(values: Mapping[str, Any], separator: str) -> dict[str, Any]:
    """Nested mappings as one, names joined by ``separator``."""
    flat = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            flat.update({f"{name}{separator}{key}": item for key, item in flatten(value, separator).items()})
        else:
            flat[name] = value
    return flat


def clean(name: str) -> str:
    """``name`` with the characters that MLflow refuses in names replaced."""
    return re.sub(r"[^\w\-. :/]", "_", name)


def _connect(root: Path) -> Any:
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    from mlflow import MlflowClient

    for name in ("mlflow", "alembic"):  # after the import, which sets levels of its own
        logging.getLogger(name).setLevel(logging.WARNING)
    return MlflowClient(tracking_uri=f"sqlite:///{root / 'mlflow.db'}")


def _experiment(client: Any, preset: str, root: Path) -> str:
    found = client.get_experiment_by_name(preset)
    return found.experiment_id if found else client.create_experiment(preset, str(root / "mlartifacts"))


def _found(client: Any, tags: Mapping[str, str]) -> str | None:
    experiment = client.get_experiment_by_name(tags["preset"])
    if experiment is None:
        return None
    where = " and ".join(f"tags.{name} = '{value}'" for name, value in tags.items())
    runs = client.search_runs([experiment.experiment_id], where, max_results=1)
    return runs[0].info.run_id if runs else None


def _commit(root: Path) -> str | None:
    try:
        git = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return git.stdout.strip() if git.returncode == 0 else None


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and math.isfinite(float(value))
    except (TypeError, ValueError):
        return False
