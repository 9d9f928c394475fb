"""Presets and the study: what is accepted, and the one line that every mistake gets."""

import copy
from pathlib import Path

import pytest

from lexmem.spec.errors import UserError
from lexmem.spec.params import (
    AllocateParams,
    Preset,
    Study,
    TrainParams,
    load_preset,
    load_study,
    preset_names,
    read_yaml,
    rows_budget,
)
from lexmem.spec.registry import resolve

GOOD = {
    "corpus": {"sources": ["sotu"]},
    "tokenizer": {"vocab_size": 512},
    "allocate": {"rows_per_token": 2.0, "cap": 8},
    "tasks": {"names": ["cloze"]},
    "model": {"width": 32, "layers": 2, "heads": 4, "ffn_width": 64},
    "budget": {"tokens": 4096, "seq_len": 32, "batch_size": 4},
    "train": {"lr": 1e-3, "valid_every": 8, "valid_tokens": 256, "checkpoint_every": 8},
    "study": {"variants": ["dense", "tide"], "seeds": [0, 1], "configs": {"dense": {}, "tide": {"banks": 2}}},
}


def changed(path: str, value):
    """GOOD with the value at a dotted path replaced; a path of one name that does not exist is added."""
    values = copy.deepcopy(GOOD)
    *parents, last = path.split(".")
    block = values
    for name in parents:
        block = block[name]
    block[last] = value
    return values


def complaint(values) -> str:
    with pytest.raises(UserError) as caught:
        Preset.read(values, "presets/x.yaml")
    line = str(caught.value)
    assert "\n" not in line and len(line) < 400
    assert line.startswith("presets/x.yaml: ")
    return line.removeprefix("presets/x.yaml: ")


def renamed(old: str, new: str):
    values = copy.deepcopy(GOOD)
    *parents, last = old.split(".")
    block = values
    for name in parents:
        block = block[name]
    block[new] = block.pop(last)
    return values


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_is_valid_and_every_run_of_it_resolves(name):
    preset = load_preset(name)
    assert preset.budget.steps >= 1
    for label, block in preset.study.configs.items():
        kind, config = resolve(label, block)
        assert kind == block.get("variant", label)
        assert set(config.match.values()) <= preset.study.configs.keys()


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_writes_out_the_sections_that_stages_depend_on(name):
    assert read_yaml(Path("presets") / f"{name}.yaml").keys() == Preset.model_fields.keys()


def test_the_study_of_params_yaml_is_valid():
    study = load_study()
    assert study.preset in preset_names()
    for label in study.variants:
        resolve(label, study.configs[label])


@pytest.mark.parametrize(
    ("old", "new", "names", "near"),
    [
        ("train", "trian", "budget", "train"),
        ("train.lr", "lrr", "weight_decay", "lr"),
        ("model.ffn_width", "ffn", "ffn_width", "ffn_width"),
        ("study.seeds", "seed", "variants", "seeds"),
    ],
)
def test_a_misspelt_key_gets_the_allowed_names_and_the_nearest(old, new, names, near):
    line = complaint(renamed(old, new))
    assert f"unknown key '{'.'.join([*old.split('.')[:-1], new])}'" in line
    assert "allowed: " in line and names in line
    assert f"did you mean '{near}'?" in line


@pytest.mark.parametrize(
    ("path", "value", "parts"),
    [
        ("model.width", 33, ["model: ", "width = 33", "heads = 4"]),
        ("model.width", 36, ["model: ", "width / heads = 9", "even"]),
        ("model.kv_heads", 3, ["model: ", "heads = 4", "kv_heads = 3"]),
        ("budget.tokens", 127, ["budget: ", "tokens = 127", "128"]),
        ("budget.tokens", 1e6, ["budget.tokens = 1000000.0", "integer"]),
        ("study.seeds", [], ["study.seeds = []", "at least 1"]),
        ("study.seeds", [0, 0], ["seeds = [0, 0]", "twice"]),
        ("study.seeds", [-1], ["study.seeds.0 = -1"]),
        ("study.seeds", [True], ["study.seeds.0 = True", "integer"]),
        ("study.variants", [], ["study.variants = []", "at least 1"]),
        ("study.variants", "dense", ["study.variants = 'dense'", "list"]),
        ("study.variants", ["tyde"], ["'tyde'", "allowed: dense, tide", "did you mean 'tide'?"]),
        ("study.configs", {"a/b": {}}, ["'a/b'", "letters, digits"]),
        ("train.lr", "1e-3", ["train.lr = '1e-3'", "number"]),
        ("train.lr", 0.0, ["train.lr = 0.0", "greater than 0"]),
        ("train.lr", float("inf"), ["train.lr = inf", "finite"]),
        ("train.lr", float("nan"), ["train.lr = nan", "finite"]),
        ("train.threads", 0, ["train.threads = 0", "greater than 0"]),
        ("train.precision", "fp16", ["train.precision = 'fp16'", "'32-true', 'bf16-mixed' or 'bf16-true'"]),
        ("train", None, ["train = None"]),
        ("corpus.sources", [], ["corpus.sources = []", "at least 1"]),
        ("corpus.valid_fraction", 0.99, ["corpus: ", "valid_fraction = 0.99", "test_fraction = 0.015"]),
        ("tokenizer.vocab_size", 256, ["tokenizer.vocab_size = 256", "257"]),
        ("allocate.rows_per_token", 0.5, ["allocate.rows_per_token = 0.5", "greater than or equal to 1"]),
        ("allocate.rows_per_token", 9.0, ["allocate: ", "rows_per_token = 9.0", "cap = 8"]),
        ("evaluate", {"limit": 0}, ["evaluate.limit = 0", "greater than 0"]),
        ("bench", {"batch_sizes": [0]}, ["bench.batch_sizes.0 = 0"]),
    ],
)
def test_a_wrong_value_is_named_with_what_is_allowed(path, value, parts):
    line = complaint(changed(path, value))
    assert [part for part in parts if part not in line] == []


@pytest.mark.parametrize("key", ["train", "train.lr", "model.width", "study.configs"])
def test_a_missing_key_is_named(key):
    values = copy.deepcopy(GOOD)
    *parents, last = key.split(".")
    block = values
    for name in parents:
        block = block[name]
    del block[last]
    assert complaint(values) == f"missing key {key!r}"


@pytest.mark.parametrize("values", [[], None, "text", 3])
def test_a_file_that_is_no_block_is_refused(values):
    assert complaint(values).startswith("expected a block of keys, got ")


def test_long_values_do_not_flood_the_line():
    assert len(complaint(changed("train.lr", "x" * 1000))) < 200


@pytest.mark.parametrize("text", ["1e-3", "1.0e-3", "0.001", "1E-3"])
def test_one_reader_of_yaml_1_2(tmp_path, text):
    file = tmp_path / "p.yaml"
    file.write_text(f"lr: {text}\nvalid_every: 1\nvalid_tokens: 1\ncheckpoint_every: 1\n")
    assert TrainParams.read(read_yaml(file), "p").lr == 0.001


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"a: [1", "not valid YAML"),
        (b"a: 1\na: 2\n", "not valid YAML"),
        (b"\ta: 1", "not valid YAML"),
        (b"\xff\xfe", "UTF-8"),
    ],
)
def test_unreadable_yaml_is_one_line_with_the_path(tmp_path, content, word):
    file = tmp_path / "p.yaml"
    file.write_bytes(content)
    with pytest.raises(UserError) as caught:
        read_yaml(file)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"{file}: ")
    assert word in str(caught.value)


def test_a_missing_file_and_an_unknown_preset_are_named(tmp_path):
    with pytest.raises(UserError, match=r"params\.yaml: no such file"):
        load_study(tmp_path)
    with pytest.raises(UserError, match=r"preset = 'pockt'.*allowed: .*smoke.*did you mean 'pocket'\?"):
        load_preset("pockt")
    with pytest.raises(UserError, match="no such preset"):
        load_preset("../presets/pocket")


def test_parameters_are_frozen():
    with pytest.raises(ValueError, match="frozen"):
        Preset.read(GOOD, "x").train.lr = 1.0


def test_study_reads_the_preset_too():
    study = Study.read({"preset": "smoke", **GOOD["study"]}, "params.yaml")
    assert study.preset == "smoke"
    with pytest.raises(UserError, match=r"params\.yaml: missing key 'preset'"):
        Study.read(GOOD["study"], "params.yaml")


def test_steps_and_rows_are_whole_numbers():
    budget = Preset.read(changed("budget.tokens", 4096 + 127), "x").budget
    assert budget.steps == 32
    assert rows_budget(AllocateParams(rows_per_token=1.5, cap=2), 257) == 385
    assert rows_budget(AllocateParams(rows_per_token=1.0, cap=1), 257) == 257
