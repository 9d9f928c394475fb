import json
from collections.abc import Callable
from pathlib import Path

import pytest
from made_up_results import PRESET, diverge

from lexmem.reporting.frames import Results, load_results
from lexmem.spec.errors import UserError


def test_everything_is_read_in_the_order_of_the_study(results: Results) -> None:
    assert results.variants == ["dense", "mix", "bank", "look"]
    assert results.baseline == "dense"
    assert results.floors == ["4-gram", "4-gram, whole corpus"]
    assert len(results.runs) == 12 and results.diverged.empty
    assert set(results.heldout["variant"]) == {*results.variants, *results.floors}
    assert results.title("look") == "LOOK_UP" and results.title("4-gram") == "4-gram"
    assert set(results.timings["stage"]) == {"corpus", "pretrain", "evaluate"}


def test_runs_outside_the_study_are_not_read(fresh: Callable[[], Path]) -> None:
    root = fresh()
    study = json.loads((root / "params.yaml").read_text(encoding="utf-8"))
    study |= {"variants": ["dense", "look"], "seeds": [0, 2]}
    (root / "params.yaml").write_text(json.dumps(study), encoding="utf-8")
    results = load_results(PRESET, root)
    pairs = {("dense", 0), ("dense", 2), ("look", 0), ("look", 2)}
    for frame in (results.runs, results.curves):
        assert set(zip(frame["variant"], frame["seed"], strict=True)) == pairs
    assert set(results.decode["variant"]) == {"dense", "look"}
    assert set(results.timings.dropna(subset=["variant"])["variant"]) == {"dense", "look"}


@pytest.mark.parametrize(
    ("relative", "command"),
    [
        ("plan.json", "pipelines.plan --preset toy"),
        ("metrics/pretrain/mix-1.json", "pipelines.pretrain --preset toy --variant mix --seed 1"),
        ("metrics/pretrain/mix-1.csv", "pipelines.pretrain --preset toy --variant mix --seed 1"),
        ("metrics/evaluate/look-2.json", "pipelines.evaluate --preset toy --variant look --seed 2"),
        ("metrics/evaluate/look-2.deciles.csv", "pipelines.evaluate --preset toy --variant look --seed 2"),
        ("metrics/floor/ngram.csv", "pipelines.floor --preset toy"),
        ("metrics/allocate/allocation.csv", "pipelines.allocate --preset toy"),
        ("metrics/bench/decode.csv", "pipelines.bench --preset toy"),
        ("metrics/tasks/tasks.json", "pipelines.tasks --preset toy"),
        ("metrics/corpus/manifest.json", "pipelines.corpus --preset toy"),
    ],
)
def test_a_missing_file_is_named_with_what_makes_it(fresh: Callable[[], Path], relative: str, command: str) -> None:
    root = fresh()
    path = root / "results" / PRESET / relative
    path.unlink()
    with pytest.raises(UserError) as raised:
        load_results(PRESET, root)
    message = str(raised.value)
    assert Path(relative).name in message and command in message and "\n" not in message


def test_a_missing_floor_is_named(fresh: Callable[[], Path]) -> None:
    root = fresh()
    for path in (root / "results" / PRESET / "metrics" / "floor").glob("*.json"):
        path.unlink()
    with pytest.raises(UserError, match=r"n-gram floor; make it with `python -m pipelines.floor"):
        load_results(PRESET, root)


def test_a_variant_without_a_plan_is_named(fresh: Callable[[], Path]) -> None:
    root = fresh()
    path = root / "results" / PRESET / "plan.json"
    plan = json.loads(path.read_text(encoding="utf-8"))
    plan["variants"] = plan["variants"][:-1]
    path.write_text(json.dumps(plan), encoding="utf-8")
    with pytest.raises(UserError, match=r"no entry for variant 'look'.*pipelines\.plan"):
        load_results(PRESET, root)


def test_a_broken_file_is_an_error_for_people(fresh: Callable[[], Path]) -> None:
    root = fresh()
    path = root / "results" / PRESET / "metrics" / "pretrain" / "mix-1.json"
    path.write_text('{"variant": ', encoding="utf-8")
    with pytest.raises(UserError, match=r"mix-1\.json: not valid JSON.*--variant mix --seed 1"):
        load_results(PRESET, root)


def test_a_diverged_run_is_kept_and_needs_no_evaluation(fresh: Callable[[], Path]) -> None:
    root = fresh()
    diverge(root, "bank", 1)
    (root / "results" / PRESET / "metrics" / "pretrain" / "bank-1.csv").unlink()
    results = load_results(PRESET, root)
    assert list(results.diverged["variant"]) == ["bank"]
    assert set(results.heldout.loc[results.heldout["variant"] == "bank", "seed"]) == {0, 2}


def test_a_study_without_a_finished_run_says_so(fresh: Callable[[], Path]) -> None:
    root = fresh()
    for variant in ("dense", "mix", "bank", "look"):
        for seed in range(3):
            diverge(root, variant, seed)
    with pytest.raises(UserError, match=r"no training of preset 'toy' finished \(loss is not finite at step 12\)"):
        load_results(PRESET, root)
