"""The frames and files of an evaluation, from real tasks on local items."""

import math

import numpy as np
import pandas as pd
import pytest
from datasets import Dataset
from lm_eval.api.group import AggMetricConfig, Group
from lm_eval.tasks import TaskManager

from lexmem.data.tokenizer import token_bytes
from lexmem.data.tokens import TokenFiles
from lexmem.evaluation.ngram import NgramModel, NgramScorer
from lexmem.evaluation.records import write_evaluation, write_nothing
from lexmem.evaluation.scorer import DecoderScorer
from lexmem.evaluation.suite import evaluate_all
from lexmem.evaluation.tasks import LoadedTasks, LocalTask
from lexmem.spec.files import read_json, write_json
from lexmem.spec.params import Preset

TEXT = "The ship sailed over the sea and the sailor sang. "


@pytest.fixture
def params():
    return Preset.read(
        {
            "corpus": {"sources": ["files:none"]},
            "tokenizer": {"vocab_size": 288},
            "tasks": {"names": []},
            "model": {"width": 32, "layers": 2, "heads": 4, "ffn_width": 48},
            "budget": {"tokens": 64, "seq_len": 16, "batch_size": 1},
            "train": {"lr": 1e-3, "valid_every": 1, "valid_tokens": 16, "checkpoint_every": 1},
            "evaluate": {"limit": 5, "heldout_tokens": 48, "batch_tokens": 64},
            "study": {"variants": ["dense"], "seeds": [0], "configs": {"dense": {}}},
        },
        "test",
    )


@pytest.fixture
def tokens(tmp_path, tokenizer):
    folder = tmp_path / "tokens"
    folder.mkdir()
    eot_id = tokenizer.get_vocab_size() - 1
    splits = {}
    for name, repeats in (("train", 20), ("test", 10)):
        ids = np.array([*tokenizer.encode(TEXT * repeats).ids, eot_id], "<u2")
        ids.tofile(folder / f"{name}.bin")
        splits[name] = {"tokens": len(ids)}
    np.save(folder / "token_bytes.npy", token_bytes(tokenizer))
    write_json(folder / "meta.json", {"vocab_size": eot_id + 1, "eot_id": eot_id, "dtype": "<u2", "splits": splits})
    return TokenFiles.open(folder)


@pytest.fixture
def tasks():
    return make_tasks(weight_by_size=True)


def make_tasks(weight_by_size: bool) -> LoadedTasks:
    """A group of two leaves with different numbers of items."""
    group = Group("both", aggregate_metric_list=[AggMetricConfig("acc", weight_by_size=weight_by_size)])
    for name, answers in (("few", [0, 1, 0]), ("many", [0, 1, 1, 0, 0, 1, 0])):
        items = [{"text": f"The {'ship' * (n + 1)} sailed over", "answer": answer} for n, answer in enumerate(answers)]
        config = {
            "task": name,
            "test_split": "test",
            "output_type": "multiple_choice",
            "doc_to_text": "{{text}}",
            "doc_to_choice": ["the sea", "the shore"],
            "doc_to_target": "{{answer}}",
            "metric_list": [{"metric": "acc", "aggregation": "mean", "higher_is_better": True}],
        }
        group.add(LocalTask(config, Dataset.from_list(items)))
    return LoadedTasks([group], TaskManager(include_defaults=False))


@pytest.mark.parametrize("by_size", [True, False])
def test_a_group_averages_its_leaves(decoder, tokenizer, tokens, params, by_size):
    evaluation = evaluate_all(DecoderScorer(decoder, 64, 256), tokenizer, tokens, make_tasks(by_size), params)
    frame = evaluation.tasks.set_index("task")
    few, many, both = (frame.loc[name] for name in ("few", "many", "both"))
    assert (few["n"], many["n"], both["n"]) == (3, 5, 8)  # five: the limit
    shares = (3 / 8, 5 / 8) if by_size else (1 / 2, 1 / 2)
    assert both["value"] == pytest.approx(shares[0] * few["value"] + shares[1] * many["value"])
    if by_size:
        variance = sum(row["n"] * row["value"] * (1 - row["value"]) for row in (few, many)) / (8 - 2) / 8
    else:
        variance = (few["stderr"] ** 2 + many["stderr"] ** 2) / 4
    assert both["stderr"] == pytest.approx(math.sqrt(variance)) and variance > 0


def test_files_of_an_evaluation(tmp_path, tokenizer, tokens, tasks, params):
    scorer = NgramScorer(NgramModel(tokens.prefix(64), tokens.vocab_size), 64)
    evaluation = evaluate_all(scorer, tokenizer, tokens, tasks, params)
    write_evaluation(tmp_path, "run", "4-gram, short", 3, evaluation, {"threads": 1})
    summary = read_json(tmp_path / "run.json")
    assert (summary["variant"], summary["seed"], summary["truncated"]) == ("4-gram, short", 3, 0)
    assert summary["heldout"] == evaluation.heldout and summary["heldout"]["tokens"] == 48
    frame = pd.read_csv(tmp_path / "run.csv")
    assert frame.columns.tolist() == ["variant", "seed", "task", "metric", "value", "stderr", "n"]
    assert frame["task"].tolist() == ["few", "many", "both"]
    assert set(frame["variant"]) == {"4-gram, short"} and set(frame["seed"]) == {3}
    deciles = pd.read_csv(tmp_path / "run.deciles.csv")
    assert deciles.columns.tolist() == ["variant", "seed", "bins", "bin", "types", "tokens", "loss"]
    assert deciles.groupby("bins")["tokens"].sum().tolist() == [48, 48]
    assert {"seconds", "requests_per_second", "threads"} <= read_json(tmp_path / "run.timing.json").keys()


def test_the_same_evaluation_writes_the_same_files(tmp_path, decoder, tokenizer, tokens, tasks, params):
    for name in ("one", "two"):
        for leaf in tasks.tasks[0].get_all_tasks():
            leaf._instances = None
        evaluation = evaluate_all(DecoderScorer(decoder, 64, 256), tokenizer, tokens, tasks, params)
        write_evaluation(tmp_path, name, "dense", 0, evaluation, {})
    for suffix in (".json", ".csv", ".deciles.csv"):
        assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


def test_a_stopped_training_has_empty_files(tmp_path):
    write_nothing(tmp_path, "run", "dense", 0)
    assert read_json(tmp_path / "run.json") == {"variant": "dense", "seed": 0, "heldout": None, "truncated": 0}
    assert pd.read_csv(tmp_path / "run.csv").columns.tolist()[-3:] == ["value", "stderr", "n"]
    assert len(pd.read_csv(tmp_path / "run.deciles.csv")) == 0
    assert read_json(tmp_path / "run.timing.json") == {}
