"""Which stage may start when, without running any."""

import pytest

from lexmem.study.schedule import Schedule
from lexmem.study.stages import Pipeline, Stage


def stage(name: str, *needs: str) -> Stage:
    return Stage(name, frozenset(needs))


CHAINS = [
    stage("plan@p"),
    stage("pretrain@p-a-0", "plan@p"),
    stage("pretrain@p-b-0", "plan@p"),
    stage("pretrain@p-c-0", "plan@p"),
    stage("evaluate@p-a-0", "pretrain@p-a-0"),
    stage("evaluate@p-b-0", "pretrain@p-b-0"),
    stage("bench@p", "pretrain@p-a-0", "pretrain@p-b-0", "pretrain@p-c-0"),
    stage("report@p", "bench@p", "evaluate@p-a-0", "evaluate@p-b-0"),
]


def run(schedule: Schedule, failing: str = "") -> list[set[str]]:
    """Run to the end, the oldest running stage finishing first; returns what ran together at every moment."""
    together = []
    while not schedule.over:
        for ready in schedule.startable():
            schedule.start(ready)
        together.append(set(schedule.running))
        oldest = next(iter(schedule.running.values()))
        schedule.finish(oldest, oldest.name != failing)
    return together


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_needs_come_first_and_jobs_are_not_exceeded(jobs):
    schedule = Schedule(CHAINS, jobs, ["bench"])
    together = run(schedule)
    assert max(map(len, together)) <= jobs
    order = [done.name for done in schedule.done]
    assert sorted(order) == sorted(one.name for one in CHAINS)
    for one in CHAINS:
        assert all(order.index(need) < order.index(one.name) for need in one.needs)


def test_an_evaluation_starts_as_soon_as_its_training_is_done():
    schedule = Schedule(CHAINS, 5, ["bench"])
    for name in ("plan@p", "pretrain@p-b-0"):
        for ready in schedule.startable():
            schedule.start(ready)
        schedule.finish(schedule.running[name], True)
    assert [ready.name for ready in schedule.startable()] == ["evaluate@p-b-0"]


def test_what_measures_time_runs_alone():
    together = run(Schedule(CHAINS, 3, ["bench"]))
    assert {"bench@p"} in together
    assert all(names == {"bench@p"} for names in together if "bench@p" in names)


def test_a_failure_skips_only_what_builds_on_it():
    schedule = Schedule(CHAINS, 2, ["bench"])
    run(schedule, failing="pretrain@p-b-0")
    assert [one.name for one in schedule.failed] == ["pretrain@p-b-0"]
    assert [one.name for one in schedule.skipped] == ["evaluate@p-b-0", "bench@p", "report@p"]
    assert {one.name for one in schedule.done} == {"plan@p", "pretrain@p-a-0", "pretrain@p-c-0", "evaluate@p-a-0"}


def test_what_remains_is_outdated_or_builds_on_it():
    pipeline = Pipeline(CHAINS, frozenset({"pretrain@p-b-0"}))
    assert [one.name for one in pipeline.remaining] == ["pretrain@p-b-0", "evaluate@p-b-0", "bench@p", "report@p"]
    assert Pipeline(CHAINS, frozenset()).remaining == []
