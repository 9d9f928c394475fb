"""Trainings of a few steps: equal to a plain loop, to themselves, and to themselves killed and started again."""

import csv
import io
import json
import math
import warnings

import pytest
import torch
import torch.nn.functional as F
from mlflow import MlflowClient
from safetensors.torch import load_file

from lexmem.allocation import Allocations
from lexmem.data.tokens import TokenFiles, TrainingWindows, heldout_windows
from lexmem.model.build import decoder_of_plan
from lexmem.model.module import initialise, named_specs
from lexmem.model.run import load_run
from lexmem.spec.errors import UserError
from lexmem.spec.files import read_json
from lexmem.spec.registry import variant_types
from lexmem.training import run as training_run
from lexmem.training.checkpoints import KEY, newest_checkpoint
from lexmem.training.history import History
from lexmem.training.optim import lr_factor, parameter_groups
from lexmem.training.run import FINISHED, pretrain

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:lightning")


class Killed(BaseException):
    """Stands for the end of the process: nothing of ours catches it."""


@pytest.fixture
def attempt(monkeypatch):
    """Trains; killed after step ``kill`` (before that step is saved); returns the steps that were run."""
    done = History.on_train_batch_end

    def run(project, variant, kill=None, **values):
        steps = []

        def on_train_batch_end(history, trainer, *rest):
            done(history, trainer, *rest)
            steps.append(trainer.global_step)
            if trainer.global_step == kill:
                raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(History, "on_train_batch_end", on_train_batch_end)
            if kill:
                with pytest.raises(Killed):
                    pretrain(project.layout, project.train(**values), variant, 0)
            else:
                assert pretrain(project.layout, project.train(**values), variant, 0) == FINISHED
        return steps

    return run


def checkpoints(project):
    return sorted(project.layout.scratch.rglob("*.ckpt"))


def curve(files, variant, seed=0):
    rows = csv.DictReader(io.StringIO(files[f"{variant}-{seed}.csv"].decode()))
    return {(row["metric"], int(row["step"])): float(row["value"]) for row in rows}


def test_equals_a_plain_loop(tracked):
    made = tracked(moe={}, dense={})
    train = made.train(z_loss=1e-3, grad_clip=0.5)
    tokens, budget = TokenFiles.open(made.layout.tokens), made.budget
    for variant in ("dense", "moe"):
        assert pretrain(made.layout, train, variant, 1) == FINISHED
        found = curve(made.files(variant, 1), variant, 1)
        plan = read_json(made.layout.plan(variant))
        model = decoder_of_plan(plan, Allocations.load(made.layout.allocation))
        initialise(model, 1)
        optimizer = torch.optim.AdamW(parameter_groups(model, train), betas=train.betas)
        windows, losses, norms = TrainingWindows(tokens, *budget.values(), 1), [], []
        rates = [group["lr"] for group in optimizer.param_groups]
        for step in range(made.steps):
            ids = torch.from_numpy(windows.batch(step))
            logits, aux = model(ids[:, :-1])
            logits = logits.flatten(0, 1)
            losses.append(F.cross_entropy(logits, ids[:, 1:].flatten()))
            z = logits.logsumexp(-1).square().mean()
            optimizer.zero_grad()
            (losses[-1] + 1e-3 * z + sum(aux.losses.values())).backward()
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5))
            for group, rate in zip(optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * lr_factor(step, made.steps, train)
            optimizer.step()
        for end, start in ((5, 0), (10, 5), (12, 10)):
            assert found["train_loss", end] == pytest.approx(torch.stack(losses[start:end]).mean().item(), rel=1e-5)
            assert found["grad_norm", end] == pytest.approx(torch.stack(norms[start:end]).mean().item(), rel=1e-4)
            assert found["lr", end] == pytest.approx(0.01 * lr_factor(end - 1, made.steps, train))
        auxiliary = {name for name, _ in found} - {"train_loss", "grad_norm", "lr", "valid_loss", "bits_per_byte"}
        assert auxiliary == ({"aux/balance", "aux/router_z"} if variant == "moe" else set())
        weights = load_file(made.layout.run(variant, 1) / "model.safetensors")
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(weights[name], parameter.detach(), rtol=1e-3, atol=1e-4)


def test_validation_is_of_the_finished_model_and_counts_text_alone_in_bits(tracked):
    made = tracked()
    assert pretrain(made.layout, made.train(), "dense", 0) == FINISHED
    tokens, model = TokenFiles.open(made.layout.tokens), load_run(made.layout.run("dense", 0)).model
    total = text = count = size = 0
    for window in heldout_windows(tokens, "valid", 8, 64, 3):
        ids = torch.from_numpy(window)
        losses = F.cross_entropy(model(ids[:, :-1])[0].flatten(0, 1), ids[:, 1:].flatten(), reduction="none")
        for loss, target in zip(losses.tolist(), ids[:, 1:].flatten().tolist(), strict=True):
            total, count = total + loss, count + 1
            if target != made.eot:
                text, size = text + loss, size + int(tokens.token_bytes[target])
    assert count == 64 and size < 64 * 3
    summary = json.loads(made.files("dense")["dense-0.json"])
    assert summary["valid_loss"] == pytest.approx(total / count, rel=1e-5)
    assert summary["bits_per_byte"] == pytest.approx(text / size / math.log(2), rel=1e-5)
    cost = read_json(made.layout.plan("dense"))["cost"]
    assert summary["steps"] == 12 and summary["tokens"] == made.budget["tokens"] and summary["status"] == FINISHED
    assert summary["flops"] == pytest.approx(made.budget["tokens"] * cost["flops_training"])


@pytest.mark.parametrize("kind", variant_types())
def test_killed_again_and_again_it_ends_in_the_same_files(tracked, attempt, kind, monkeypatch):
    whole, made = (tracked(name, **{kind: {}}) for name in ("whole", "killed"))
    assert attempt(whole, kind) == list(range(1, 13))
    assert not checkpoints(whole)
    assert attempt(made, kind, kill=3) == [1, 2, 3]
    assert attempt(made, kind, kill=6) == [1, 2, 3, 4, 5, 6]
    assert attempt(made, kind, kill=8) == [5, 6, 7, 8]
    assert attempt(made, kind, kill=11) == [5, 6, 7, 8, 9, 10, 11]
    assert [path.stem for path in checkpoints(made)] == ["00000004", "00000008"]
    with monkeypatch.context() as patch:  # killed once more between the last step and the first file

        def die(*_):
            raise Killed

        patch.setattr(training_run, "write_metrics", die)
        with pytest.raises(Killed):
            pretrain(made.layout, made.train(), kind, 0)
    assert made.files(kind) == {}
    assert attempt(made, kind) == []
    assert not checkpoints(made)
    assert made.files(kind) == whole.files(kind)
    assert set(made.files(kind)) == {f"{kind}-0.csv", f"{kind}-0.json", "model.safetensors", "plan.json",
                                     "tokenizer.json", "codewords.npz"}  # fmt: skip
    assert [step for metric, step in curve(made.files(kind), kind) if metric == "valid_loss"] == [5, 10, 12]


def test_another_seed_is_another_model_and_other_batches(tracked):
    made = tracked()
    for seed in (0, 1):
        pretrain(made.layout, made.train(), "dense", seed)
    one, two = made.files("dense", 0), made.files("dense", 1)
    assert one["model.safetensors"] != two["model.safetensors"]
    assert curve(one, "dense", 0)["train_loss", 5] != curve(two, "dense", 1)["train_loss", 5]


def test_a_truncated_checkpoint_falls_back_to_the_one_before_it(tracked, attempt):
    whole, made = tracked("whole"), tracked("cut")
    attempt(whole, "dense")
    attempt(made, "dense", kill=11)
    newest = checkpoints(made)[-1]
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
    with pytest.warns(UserWarning, match="00000008.ckpt cannot be read"):
        assert attempt(made, "dense", kill=11)[0] == 5
    # The cut one is still in the way of its successor; nothing is lost by it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert attempt(made, "dense", kill=12)[0] == 9
        for path in checkpoints(made):
            path.write_bytes(path.read_bytes()[:1000])
        assert attempt(made, "dense")[0] == 1
    assert made.files("dense") == whole.files("dense")


def test_a_checkpoint_of_something_else_is_refused_with_the_reason(tracked, attempt):
    made = tracked()
    attempt(made, "dense", kill=6)
    (path,) = checkpoints(made)
    checkpoint = torch.load(path, weights_only=False)
    torch.save(checkpoint | {KEY: "0" * 64}, path)
    with pytest.raises(UserError, match=r"00000004.ckpt is of other parameters, data or code .*remove it") as refused:
        pretrain(made.layout, made.train(), "dense", 0)
    assert "\n" not in str(refused.value)
    assert newest_checkpoint(path.parent, "0" * 64) == path
    assert newest_checkpoint(path.parent / "none", "0" * 64) is None


@pytest.mark.parametrize("changed", ["train", "validation", "plan", "tokens"])
def test_a_changed_parameter_never_resumes(tracked, attempt, changed):
    fresh, made = tracked("fresh"), tracked("changed")
    attempt(made, "dense", kill=6)
    values = {}
    for project in (fresh, made):
        if changed == "train":
            values = {"weight_decay": 0.01}
        elif changed == "validation":
            values = {"valid_tokens": 32}
        elif changed == "plan":
            path = project.layout.plan("dense")
            path.write_text(path.read_text().replace('"rope_theta": 10000.0', '"rope_theta": 500.0').replace(
                '"hash": "', '"hash": "f'))  # fmt: skip
        else:
            path = project.layout.tokens / "meta.json"
            path.write_text(path.read_text().replace('"sha256": "toy"', '"sha256": "other"'))
    assert attempt(made, "dense", **values) == list(range(1, 13))
    attempt(fresh, "dense", **values)
    assert made.files("dense") == fresh.files("dense")
    assert len(checkpoints(made)) == 1, "those of the other parameters stay"


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({"lr": 1e12}, "the loss is not finite at step 2"),
        ({"lr": 1e12, "valid_every": 1}, "the validation loss is not finite at step 1"),
        ({"z_loss": 1e34}, "the gradient is not finite at step 1"),
    ],
)
def test_what_is_not_finite_stops_the_training_and_reaches_no_file(tracked, values, status):
    made = tracked()
    assert pretrain(made.layout, made.train(**values), "dense", 0) == status
    files = made.files("dense")
    assert set(files) == {"dense-0.csv", "dense-0.json", "plan.json"}, "no weights"
    summary = json.loads(files["dense-0.json"])
    assert summary["status"] == status and summary["steps"] == 0 and summary["valid_loss"] is None
    for content in files.values():
        assert b"inf" not in content.lower() and b"nan" not in content.lower()
    client = MlflowClient(tracking_uri=f"sqlite:///{made.root / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("toy").experiment_id
    (logged,) = client.search_runs([experiment], "tags.variant = 'dense'")
    assert logged.info.status == "FAILED" and logged.data.tags["status"] == status
    assert all(math.isfinite(value) for value in logged.data.metrics.values())


def test_a_late_divergence_keeps_the_curve_up_to_it(tracked, monkeypatch):
    made, step_of = tracked(), training_run.Pretraining.training_step

    def poisoned(module, batch, index):
        if module.global_step == 6:
            with torch.no_grad():
                module.model.embedding.weight[0] = math.inf
        return step_of(module, batch, index)

    monkeypatch.setattr(training_run.Pretraining, "training_step", poisoned)
    assert pretrain(made.layout, made.train(), "dense", 0) == "the loss is not finite at step 7"
    files = made.files("dense")
    assert {step for _, step in curve(files, "dense")} == {5}
    summary = json.loads(files["dense-0.json"])
    assert summary["steps"] == 5 and summary["valid_loss"] > 0
    assert not checkpoints(made), "nothing to go on from"


@pytest.mark.parametrize("kind", ["tide", "l3"])
@pytest.mark.parametrize("decay", [False, True])
def test_rows_of_a_token_never_seen_stay_where_they_started_unless_they_decay(tracked, kind, decay):
    made = tracked(**{kind: {}})
    assert pretrain(made.layout, made.train(table_decay=decay, weight_decay=0.5), kind, 0) == FINISHED
    plan = read_json(made.layout.plan(kind))
    model = decoder_of_plan(plan, Allocations.load(made.layout.allocation))
    initialise(model, 0)
    weights = load_file(made.layout.run(kind, 0) / "model.safetensors")
    read = torch.zeros(made.vocab, dtype=torch.bool)
    tokens = TokenFiles.open(made.layout.tokens)
    read[torch.from_numpy(tokens.prefix(made.budget["tokens"]).astype("int64"))] = True
    tables = [(name, parameter) for name, parameter, spec in named_specs(model) if spec.group == "table"]
    for name, start in tables:
        rows = model.memories["l3_0"].count_V if kind == "l3" else torch.full((made.vocab,), len(start) // made.vocab)
        unread = ~read.repeat_interleave(rows)
        assert unread.any()
        assert torch.equal(weights[name][unread], start[unread]) == (not decay)
        assert not torch.equal(weights[name][~unread], start[~unread])


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"devices": 3, "strategy": "ddp"}, "budget.batch_size = 4 is not divisible by .* = 3 processes"),
        ({"strategy": "dpp"}, "train: .*invalid strategy name"),
        ({"accelerator": "gpu"}, "train: No supported gpu"),
    ],
)
def test_devices_that_do_not_exist_are_one_clear_line(tracked, values, words):
    if values.get("accelerator") == "gpu" and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    made = tracked()
    with pytest.raises(UserError, match=words) as refused:
        pretrain(made.layout, made.train(**values), "dense", 0)
    assert "\n" not in str(refused.value)
    assert made.files("dense") == {}
