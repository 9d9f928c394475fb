"""The benchmark of a tiny study: every variant of the registry."""

import csv

import pytest
from tiny_runs import MODEL, VOCAB, make_decoder, plan_of, write_inputs, write_tokens

from lexmem.inference.bench import run_bench
from lexmem.inference.offload import lookup_tables
from lexmem.inference.show import print_bench
from lexmem.inference.speed import relative_speeds
from lexmem.inference.timing import Steps, medians
from lexmem.model.save import save_run
from lexmem.spec.errors import UserError
from lexmem.spec.files import read_json, write_json
from lexmem.spec.layout import Layout
from lexmem.spec.params import Preset
from lexmem.spec.registry import variant_types

VARIANTS = variant_types()
REPEATS, BATCHES = 3, [1, 2]
PRESET = Preset.read(
    {
        "corpus": {"sources": ["web"]},
        "tokenizer": {"vocab_size": VOCAB},
        "tasks": {"names": []},
        "model": MODEL.model_dump(mode="json"),
        "budget": {"tokens": 256, "seq_len": 16, "batch_size": 4},
        "train": {"lr": 1e-3, "valid_every": 1, "valid_tokens": 1, "checkpoint_every": 1},
        "bench": {
            "batch_sizes": BATCHES,
            "prompt_tokens": 4,
            "new_tokens": 9,
            "repeats": REPEATS,
            "train_steps": 2,
        },
        "study": {"variants": VARIANTS, "seeds": [0], "configs": {name: {} for name in VARIANTS}},
    },
    "preset",
)


@pytest.fixture(scope="module")
def layout(tmp_path_factory) -> Layout:
    """Trained runs of all variants but the last, whose training diverged."""
    layout = Layout("tiny", tmp_path_factory.mktemp("study"))
    write_tokens(layout.tokens, 400)
    layout.allocation.mkdir()
    write_inputs(layout.allocation)
    for variant in VARIANTS[:-1]:
        save_run(layout.run(variant, 0), make_decoder(variant), plan_of(variant), layout.allocation, layout.allocation)
    layout.run(VARIANTS[-1], 0).mkdir()
    write_json(layout.run(VARIANTS[-1], 0) / "plan.json", plan_of(VARIANTS[-1]))
    return layout


@pytest.fixture(scope="module")
def bench(layout):
    return run_bench(layout, PRESET, VARIANTS, 0, VARIANTS[0])


def test_every_setting_is_timed_in_every_repeat(bench):
    expected = set()
    for variant in VARIANTS[:-1]:
        places = [("resident", False)]
        if lookup_tables(make_decoder(variant)):
            places += [("disk", False), ("disk", True)]
        expected |= {(variant, *place, batch, r) for place in places for batch in BATCHES for r in range(REPEATS)}
    got = [tuple(row[key] for key in ("variant", "tier", "prefetch", "batch_size", "repeat")) for row in bench.decode]
    assert len(got) == len(set(got))
    assert set(got) == expected
    assert len({row["variant"] for row in bench.decode[:: len(got) // REPEATS]}) > 1  # repeats begin differently


def test_numbers_of_a_decoding_agree(bench):
    for row in bench.decode:
        assert 0 < row["p10"] <= row["ms_per_token_p50"] <= row["p90"]
        assert 1 / row["p90"] < row["tokens_per_second"] / row["batch_size"] / 1e3
        assert (row["stall_ms_per_token"] > 0) == (row["tier"] != "resident")
        assert (row["bytes_per_token"] > 0) == (bench.about["table_bytes"][row["variant"]] > 0)
    # Whatever the tier, the same texts need the same rows.
    same = {}
    for row in bench.decode:
        same.setdefault((row["variant"], row["batch_size"], row["repeat"]), set()).add(row["bytes_per_token"])
    assert all(len(values) == 1 for values in same.values())


def test_training_is_compared_within_a_repeat(bench):
    assert [(row["variant"], row["repeat"]) for row in bench.training] == [
        (v, r) for r in (0, 1) for v in VARIANTS[:-1]
    ]
    base = {row["repeat"]: row["tokens_per_second"] for row in bench.training if row["variant"] == VARIANTS[0]}
    for row in bench.training:
        assert row["relative_to_baseline"] == pytest.approx(row["tokens_per_second"] / base[row["repeat"]])
        assert (row["table_update_ms"] > 0) == (bench.about["table_bytes"][row["variant"]] > 0)
    assert bench.about["training_relative"][VARIANTS[0]] == 1.0


def test_what_diverged_is_listed(bench, capsys):
    assert bench.about["diverged"] == [VARIANTS[-1]]
    assert VARIANTS[-1] not in bench.about["table_bytes"]
    print_bench(bench)
    assert f"diverged: {VARIANTS[-1]}" in capsys.readouterr().out


def test_files_are_written_and_nothing_else(bench, layout, tmp_path):
    bench.write(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bench.json", "decode.csv", "training.csv"]
    with (tmp_path / "decode.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["tokens_per_second"]) for row in rows] == [row["tokens_per_second"] for row in bench.decode]
    assert read_json(tmp_path / "bench.json") == bench.about
    assert not list((layout.scratch / "bench").iterdir())


def test_a_run_that_is_missing_is_named(layout):
    with pytest.raises(UserError, match="absent-0"):
        run_bench(layout, PRESET, [VARIANTS[0], "absent"], 0, VARIANTS[0])
    with pytest.raises(UserError, match="nothing to time"):
        run_bench(layout, PRESET, VARIANTS[-1:], 0, VARIANTS[0])


def test_a_machine_without_the_device_says_so(layout):
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    train = PRESET.train.model_copy(update={"accelerator": "gpu"})
    with pytest.raises(UserError, match=r"train\.accelerator = 'gpu'"):
        run_bench(layout, PRESET.model_copy(update={"train": train}), VARIANTS, 0, VARIANTS[0])


def test_a_summary_of_steps():
    summary = Steps([0.010, 0.020, 0.030, 0.040], stall_seconds=0.008, bytes_read=4000).summary(batch_size=5)
    assert summary["tokens_per_second"] == pytest.approx(200.0)
    assert summary["ms_per_token_p50"] == pytest.approx(25.0)
    assert summary["p10"] == pytest.approx(13.0)
    assert summary["p90"] == pytest.approx(37.0)
    assert summary["stall_ms_per_token"] == pytest.approx(2.0)
    assert summary["bytes_per_token"] == pytest.approx(200.0)


def test_medians_and_ratios():
    rows = [{"variant": name, "tokens_per_second": speed} for name, speed in [("a", 1), ("b", 8), ("a", 4), ("a", 2)]]
    assert medians(rows, ["variant"], "tokens_per_second") == {("a",): 2, ("b",): 8}
    assert relative_speeds(rows, "a") == {"a": 1.0, "b": 4.0}
    assert relative_speeds(rows, "c") == {}
