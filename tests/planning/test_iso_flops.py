"""The ledger: equal FLOPs for whatever is registered, refusals in one line, hashes of what matters."""

import json
import sys

import numpy as np
import pytest

import lexmem.variants
from lexmem.allocation import Allocations
from lexmem.model.build import decoder_of_plan
from lexmem.model.cost import CostContext
from lexmem.model.module import model_cost
from lexmem.planning.ledger import print_ledger
from lexmem.planning.plan import TOLERANCE, Planner, make_plan
from lexmem.planning.sources import variant_sources
from lexmem.spec.code import code_hash
from lexmem.spec.errors import UserError
from lexmem.spec.files import sha256_json
from lexmem.spec.params import StudyParams, load_preset, load_study
from lexmem.spec.registry import load_variant, variant_types

EVERY = {kind: {} for kind in variant_types()}
SIZES = ["smoke", "pocket"]


def preset_of(name, **sections):
    preset = load_preset(name)
    return preset.model_copy(
        update={key: getattr(preset, key).model_copy(update=values) for key, values in sections.items()}
    )


def zipf(vocab):
    counts = 1_000_000 // np.arange(1, vocab + 1)
    last = np.random.default_rng(0).choice(vocab, size=20_000, p=counts / counts.sum())
    return Allocations(last.astype(np.int32), counts)


def plan(configs, preset=None, variants=None):
    preset = preset or preset_of("smoke")
    study = StudyParams(variants=variants or list(configs), seeds=[0], configs=configs)
    return {entry["variant"]: entry for entry in make_plan(study, preset, zipf(preset.tokenizer.vocab_size))}


@pytest.fixture(scope="module")
def every_plan():
    return {size: plan(EVERY, preset_of(size)) for size in SIZES}


@pytest.mark.parametrize("kind", variant_types())
@pytest.mark.parametrize("size", SIZES)
def test_flops_equal_denses(every_plan, size, kind):
    entries = every_plan[size]
    off = entries[kind]["cost"]["flops_training"] / entries["dense"]["cost"]["flops_training"] - 1
    assert abs(off) <= TOLERANCE / 2, "half of what the study tolerates, at these sizes"
    assert entries[kind]["budget"] == entries["dense"]["budget"]


@pytest.mark.parametrize("kind", variant_types())
def test_an_entry_survives_json_and_builds_the_model_it_describes(every_plan, kind):
    entry = every_plan["smoke"][kind]
    again = json.loads(json.dumps(entry, allow_nan=False))
    assert again == entry
    decoder = decoder_of_plan(again, zipf(again["vocab_size"]))
    cost = model_cost(decoder, CostContext(again["budget"]["seq_len"]))
    assert cost.params == entry["cost"]["params"] and cost.flops_training == entry["cost"]["flops_training"]
    assert entry["cost"]["total"] == sum(parameter.numel() for parameter in decoder.parameters())
    assert entry["hash"] == sha256_json({key: value for key, value in entry.items() if key != "hash"})


def test_the_plan_of_the_study_is_deterministic_and_in_its_order():
    study, preset = load_study(), load_preset("smoke")
    one, two = (make_plan(study, preset, zipf(preset.tokenizer.vocab_size)) for _ in range(2))
    assert one == two and [entry["variant"] for entry in one] == study.variants


def test_a_second_quantity_follows_its_own_knob():
    configs = EVERY | {"few": {"variant": "moe", "match": {"flops": "dense", "total": "l3"}}}
    configs["many"] = {"variant": "moe", "match": {"total": "tide", "flops": "dense"}}
    entries = plan(configs)
    for label, of in (("few", "l3"), ("many", "tide")):
        cost, experts = entries[label]["cost"], entries[label]["config"]["experts"]
        step = cost["params"]["expert"] / experts
        assert abs(cost["total"] - entries[of]["cost"]["total"]) <= step / 2 + cost["params"]["router"] / experts
        assert cost["flops_training"] == pytest.approx(entries["dense"]["cost"]["flops_training"], rel=TOLERANCE)
    assert entries["many"]["config"]["experts"] > entries["few"]["config"]["experts"] > 2


def test_a_run_that_matches_nothing_keeps_the_presets_width():
    entries = plan({"dense": {}, "free": {"variant": "tide", "match": {}}})
    assert entries["free"]["model"] == entries["dense"]["model"]
    assert entries["free"]["cost"]["flops_training"] > entries["dense"]["cost"]["flops_training"]


@pytest.mark.parametrize(
    ("configs", "words"),
    [
        ({"dense": {}, "tide": {"match": {"flops": "dnse"}}}, ["configs.tide.match", "'dnse'", "did you mean 'dense'"]),
        ({"moe": {"match": {"total": "l3"}}, "l3": {}}, ["configs.l3.match", "no run 'dense'"]),
        (
            {
                "l3": {"match": {"flops": "moe"}},
                "moe": {"match": {"total": "tide"}},
                "tide": {"match": {"flops": "l3"}},
            },
            ["l3 -> moe -> tide -> l3", "circle"],
        ),
        ({"dense": {}, "l3": {"match": {"total": "dense"}}}, ["configs.l3.match", "'total'", "no knob", "flops"]),
        ({"dense": {}, "moe": {"match": {"speed": "dense"}}}, ["configs.moe", "speed"]),
        ({"dense": {}, "tide": {"banks": 400}}, ["configs.tide.match", "flops", "ffn_width"]),
        ({"dense": {}, "other": {"variant": "tied"}}, ["configs.other", "'tied'", "tide"]),
        ({"dense": {}, "tide": {"bank": 2}}, ["configs.tide", "'bank'", "did you mean 'banks'"]),
    ],
)
def test_what_cannot_be_matched_is_refused_in_one_line(configs, words):
    with pytest.raises(UserError) as refused:
        plan(configs)
    assert "\n" not in str(refused.value)
    assert all(word in str(refused.value) for word in words), str(refused.value)


KNOBS = """
from typing import ClassVar
from lexmem.model.lookup import LookupTable
from lexmem.spec.variant import VariantConfig

class Config(VariantConfig):
    title: ClassVar[str] = "Knobs"
    knobs: ClassVar[dict[str, str]] = {"flops": "idle", "total": "rows", "table_bytes": "rows"}
    idle: int = 1
    rows: int = 1

    def install(self, decoder, context):
        decoder.memories["knobs"] = LookupTable(100_000 * self.rows, 8, 0.0)
"""


@pytest.fixture
def knobs(tmp_path):
    """A variant file of one's own, with a knob that turns nothing and one of very large steps."""
    (tmp_path / "knobs.py").write_text(KNOBS)
    lexmem.variants.__path__.append(str(tmp_path))
    yield load_variant("knobs")
    lexmem.variants.__path__.remove(str(tmp_path))
    del sys.modules["lexmem.variants.knobs"]


@pytest.mark.parametrize(
    ("match", "words"),
    [
        ({"flops": "tide"}, "no idle up to [0-9]+ gives flops"),
        ({"total": "dense"}, "total is .* off dense's, over 10.0%: rows cannot"),
        ({"table_bytes": "dense"}, "dense has no table_bytes to equal"),
    ],
)
def test_knobs_that_cannot_reach_are_refused_in_one_line(knobs, match, words):
    configs = {"dense": {}, "tide": {"match": {}}, "knobs": {"match": match}}
    study = StudyParams(variants=["knobs"], seeds=[0], configs=configs)
    planner = Planner(study, preset_of("smoke"), zipf(1024))
    with pytest.raises(UserError, match=words) as refused:
        planner.solve("knobs")
    assert "configs.knobs.match" in str(refused.value) and "\n" not in str(refused.value)


def test_tables_of_equal_bytes_by_a_knob(knobs):
    def solve(banks):
        configs = {"tide": {"match": {}, "banks": banks}, "knobs": {"match": {"table_bytes": "tide"}}}
        study = StudyParams(variants=["knobs"], seeds=[0], configs=configs)
        return Planner(study, preset_of("smoke"), zipf(1024)).solve("knobs")

    # A bank has 1,024 rows of 64, a step of the knob 100,000 of 8: 98 banks are 8.03 steps, 18 are 1.47.
    assert solve(98).config.rows == 8
    with pytest.raises(UserError, match=r"table_bytes is -32.*% off tide's"):
        solve(18)


def test_the_hash_follows_the_config_the_base_model_and_the_budget():
    def hash_of(preset, **config):
        return plan({"dense": {}, "tide": config}, preset)["tide"]["hash"]

    hashes = [
        hash_of(preset_of("smoke")),
        hash_of(preset_of("smoke"), router_std=0.1),
        hash_of(preset_of("smoke", model={"norm_eps": 1e-6})),
        hash_of(preset_of("smoke", budget={"tokens": 65536})),
    ]
    assert len(set(hashes)) == len(hashes)
    assert hash_of(preset_of("smoke", evaluate={"limit": 1}, train={"valid_every": 1})) == hashes[0]


@pytest.mark.parametrize("kind", variant_types())
def test_the_code_hash_follows_code_and_not_comments(every_plan, kind, tmp_path):
    source = variant_sources(kind)[0].read_text()
    versions = {
        "comment": "# A remark.\n" + source.replace("\n\n\n", "\n\n\n\n# Another.\n"),
        "code": source.replace('title: ClassVar[str] = "', 'title: ClassVar[str] = "New '),
    }
    found = {}
    for name, text in versions.items():
        assert text != source
        (tmp_path / f"{name}.py").write_text(text)
        found[name] = code_hash([tmp_path / f"{name}.py"])
    recorded = every_plan["smoke"][kind]["code"]
    assert found["comment"] == recorded != found["code"]


def test_the_code_of_a_variant_includes_the_siblings_that_it_imports(tmp_path, monkeypatch):
    package = tmp_path / "variants"
    package.mkdir()
    files = {
        "__init__": "",
        "mix": "from lexmem.variants.tide import Config\nfrom lexmem.variants import _shared",
        "tide": "import lexmem.variants._rows",
        "_shared": "",
        "_rows": "from lexmem.variants.tide import Config",
        "apart": "",
    }
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.setattr("lexmem.variants.__file__", str(package / "__init__.py"))
    assert {path.stem for path in variant_sources("mix")} == {"mix", "tide", "_shared", "_rows"}
    assert {path.stem for path in variant_sources("apart")} == {"apart"}


def test_the_ledger_prints_every_run(every_plan, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    print_ledger(list(every_plan["smoke"].values()))
    out = capsys.readouterr().out
    for kind in variant_types():
        assert load_variant(kind).title in out
