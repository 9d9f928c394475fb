"""A whole results tree of made-up numbers: four variants, three seeds, every file that a report reads."""

import json
from pathlib import Path

import numpy as np
import pandas as pd

PRESET = "toy"
EFFECT = {"dense": 0.0, "mix": -0.03, "bank": -0.09, "look": -0.12}
TASKS = {"arc_easy": (0.28, 570), "hellaswag": (0.26, 200), "cloze": (0.5, 600), "homophones": (0.58, 400)}
BANDS = {"cloze_b1": (0.3, 200), "cloze_b2": (0.5, 200), "cloze_b3": (0.7, 200)}
FLOORS = {"ngram": "4-gram", "ngram-full": "4-gram, whole corpus"}
STEPS, TOKENS_A_STEP, FLOPS_A_TOKEN = 256, 4096, 11.7e6


def write(path: Path, content: object) -> None:
    """Write a frame as CSV, anything else as JSON (which is YAML too)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, pd.DataFrame):
        content.to_csv(path, index=False)
    else:
        path.write_text(json.dumps(content), encoding="utf-8")


def make_results(root: Path, seeds: tuple[int, ...] = (0, 1, 2)) -> Path:
    """Write params.yaml, a preset's results and its manifests under ``root``."""
    metrics = root / "results" / PRESET / "metrics"
    rng = np.random.default_rng(7)
    study = {"preset": PRESET, "variants": list(EFFECT), "seeds": list(seeds), "configs": {name: {} for name in EFFECT}}
    write(root / "params.yaml", study)
    write(
        root / "results" / PRESET / "plan.json",
        {"variants": [plan_entry(name) for name in EFFECT], "tolerance": 0.005},
    )
    for seed in seeds:
        for name, effect in EFFECT.items():
            write_run(metrics, name, seed, effect + 0.02 * seed + rng.normal(0, 0.004), rng)
    for stem, title in FLOORS.items():
        write(
            metrics / "floor" / f"{stem}.json", {"variant": title, "seed": 0, "heldout": heldout(5.9), "truncated": 0}
        )
        write(metrics / "floor" / f"{stem}.csv", scores(title, 0, -0.02, rng))
        write(metrics / "floor" / f"{stem}.deciles.csv", deciles(title, 0, 1.0))
    write_allocation(metrics / "allocate")
    write_bench(metrics / "bench", rng)
    write(metrics / "corpus" / "timing.json", {"seconds": 41.5})
    write(metrics / "corpus" / "manifest.json", corpus_manifest())
    write(metrics / "tasks" / "tasks.json", task_listing())
    return root


def plan_entry(name: str) -> dict:
    table = 0 if name in ("dense", "mix") else 4_194_304
    params = {"matrix": 786_432, "embedding": 1_048_576, "table": table, "norm": 1152}
    return {
        "variant": name,
        "type": name,
        "title": {"look": "LOOK_UP"}.get(name, name.capitalize()),
        "config": {"layers": "middle", "scale": 0.5, "match": {"flops": "dense"}},
        "model": {"width": 128, "layers": 4, "heads": 4, "ffn_width": 344},
        "vocab_size": 8192,
        "budget": {"tokens": STEPS * TOKENS_A_STEP, "seq_len": 256, "batch_size": 16, "steps": STEPS},
        "cost": {
            "flops_forward": FLOPS_A_TOKEN / 3,
            "flops_training": FLOPS_A_TOKEN * (1 + 0.001 * len(name)),
            "params": params,
            "total": sum(params.values()),
            "active": 1_836_160,
            "table_bytes": 4 * table,
            "bytes_gathered": 4096 if table else 0,
        },
        "code": "c0de",
        "hash": f"plan-{name}",
    }


def diverge(root: Path, variant: str, seed: int) -> None:
    """Make one training of the tree a diverged one, which is never evaluated."""
    metrics = root / "results" / PRESET / "metrics"
    path = metrics / "pretrain" / f"{variant}-{seed}.json"
    summary = json.loads(path.read_text(encoding="utf-8"))
    summary |= {"status": "loss is not finite at step 12", "valid_loss": None, "bits_per_byte": None, "steps": 12}
    write(path, summary)
    for leftover in (metrics / "evaluate").glob(f"{variant}-{seed}.*"):
        leftover.unlink()


def write_run(metrics: Path, name: str, seed: int, effect: float, rng: np.random.Generator) -> None:
    steps = np.arange(0, STEPS + 1, 16)
    loss = 4.2 + effect + 4.8 * np.exp(-np.sqrt(steps / 8))
    train = pd.DataFrame({"step": np.arange(2, STEPS + 1, 2)})
    train["value"] = 4.2 + effect + 4.8 * np.exp(-np.sqrt(train["step"] / 8)) + rng.normal(0, 0.05, len(train))
    curves = pd.concat(
        [
            pd.DataFrame({"step": steps, "metric": "valid_loss", "value": loss}),
            pd.DataFrame({"step": steps, "metric": "bits_per_byte", "value": loss / 3.7 / np.log(2)}),
            train.assign(metric="train_loss"),
        ]
    )
    curves["tokens"] = curves["step"] * TOKENS_A_STEP
    curves["flops"] = curves["tokens"] * FLOPS_A_TOKEN
    run = metrics / "pretrain" / f"{name}-{seed}.csv"
    write(
        run, curves.assign(variant=name, seed=seed)[["variant", "seed", "step", "tokens", "flops", "metric", "value"]]
    )
    summary = {"variant": name, "seed": seed, "plan_hash": f"plan-{name}", "status": "finished"}
    summary |= {"valid_loss": loss[-1], "bits_per_byte": loss[-1] / 3.7 / np.log(2), "steps": STEPS}
    tokens = STEPS * TOKENS_A_STEP
    write(run.with_suffix(".json"), summary | {"tokens": tokens, "flops": tokens * FLOPS_A_TOKEN})
    timing = {"seconds": 300.5, "tokens_per_second": 3500.0, "threads": 1, "machine": "A processor"}
    write(run.with_suffix(".timing.json"), timing)
    scored = metrics / "evaluate" / f"{name}-{seed}.csv"
    write(scored, scores(name, seed, -0.2 * effect, rng))
    write(
        scored.with_suffix(".json"),
        {"variant": name, "seed": seed, "heldout": heldout(loss[-1] + 0.05), "truncated": 0},
    )
    write(scored.with_suffix(".deciles.csv"), deciles(name, seed, effect))
    write(scored.with_suffix(".timing.json"), {"seconds": 60.25, "threads": 1, "machine": "A processor"})


def heldout(loss: float) -> dict:
    return {
        "tokens": 200_000,
        "words": 120_000,
        "bytes": 740_000,
        "loss": loss,
        "bits_per_byte": loss / 3.7 / np.log(2),
        "token_perplexity": np.exp(loss),
        "word_perplexity": np.exp(loss * 1.6),
        "byte_perplexity": np.exp(loss / 3.7),
    }


def scores(name: str, seed: int, effect: float, rng: np.random.Generator) -> pd.DataFrame:
    rows = []
    for task, (accuracy, n) in {**TASKS, **BANDS}.items():
        metrics = ["acc", "acc_norm"] if task in ("arc_easy", "hellaswag") else ["acc"]
        for metric in metrics:
            value = float(np.clip(accuracy + effect + rng.normal(0, 0.01), 0, 1))
            row = {"variant": name, "seed": seed, "task": task, "metric": metric, "value": value}
            rows.append(row | {"stderr": np.sqrt(value * (1 - value) / n), "n": n})
    return pd.DataFrame(rows)


def deciles(name: str, seed: int, effect: float) -> pd.DataFrame:
    rarity = np.arange(10, 0, -1)
    frame = pd.DataFrame({"bin": np.arange(1, 11), "types": 819, "tokens": (200_000 * 0.4 ** (rarity - 1)).astype(int)})
    unseen = pd.DataFrame({"bin": [0], "types": 12, "tokens": 7, "loss": 11.5 + effect + 0.01 * seed})
    frame["loss"] = 2.5 + 0.8 * rarity + effect * (0.5 + 0.15 * rarity) + 0.003 * seed * rarity
    frame = pd.concat([unseen, frame])
    return pd.concat(
        [frame.assign(variant=name, seed=seed, bins=bins) for bins in ("equal_type", "log_width")], ignore_index=True
    )[["variant", "seed", "bins", "bin", "types", "tokens", "loss"]]


def write_bench(folder: Path, rng: np.random.Generator) -> None:
    decode, training = [], []
    for repeat in range(5):
        for name in EFFECT:
            tiers = [("resident", False)]
            if name in ("bank", "look"):
                tiers += [("disk", False), ("disk", True), ("host", False), ("host", True)]
            for tier, prefetch in tiers:
                for batch in (1, 8):
                    speed = 220.0 * batch**0.5 * (1 if tier == "resident" else 0.9 if prefetch else 0.8)
                    speed += rng.normal(0, 5)
                    row = {"variant": name, "tier": tier, "prefetch": prefetch, "batch_size": batch, "repeat": repeat}
                    row |= {"tokens_per_second": speed, "ms_per_token_p50": 1000 * batch / speed}
                    row |= {"p10": 900 * batch / speed, "p90": 1300 * batch / speed}
                    row |= {"stall_ms_per_token": 0.0 if tier == "resident" else 0.4, "bytes_per_token": 4096}
                    decode.append(row)
            training.append({"variant": name, "repeat": repeat, "tokens_per_second": 3400 + rng.normal(0, 20)})
    frame = pd.DataFrame(training)
    frame["table_update_ms"] = 1.25
    frame["relative_to_baseline"] = frame["tokens_per_second"] / 3400
    write(folder / "decode.csv", pd.DataFrame(decode))
    write(folder / "training.csv", frame)
    write(folder / "bench.json", {"machine": "A processor", "threads": 1, "table_bytes": {"bank": 16_777_216}})


def write_allocation(folder: Path) -> None:
    rank = np.unique(np.geomspace(1, 8192, 40).astype(int))
    rows = {
        "lzw": np.clip(900 / rank**0.8, 1, 64),
        "uniform": np.full(len(rank), 4.0),
        "frequency": np.clip(2500 / rank, 1, 64),
    }
    columns = {"rank": rank, "token": rank[::-1], "count": 80_000 // rank}
    write(
        folder / "allocation.csv",
        pd.concat([pd.DataFrame({"method": m, **columns, "rows": r}) for m, r in rows.items()]),
    )
    totals = {"expected_rows": 9.5, "sum": 32_768, "max": 64, "tokens_at_one": 5000, "tokens_at_cap": 120}
    summary = {"tokens": STEPS * TOKENS_A_STEP, "vocab_size": 8192, "listing": "fixed", "codewords": 90_000}
    summary |= {"full": False, "budget": 32_768, "cap": 64, "methods": {method: totals for method in rows}}
    write(folder / "allocation.json", summary)


def corpus_manifest() -> dict:
    source = {"kind": "apt", "version": "1.0-1", "sha256": "ab" * 32, "documents": 1200, "bytes": 5_000_000}
    source |= {"dropped_duplicates": 3, "dropped_empty": 1, "replaced_surrogates": 0}
    return {
        "sources": [
            {"name": "speeches", "package": "some-speeches", "licence": "public domain", **source},
            {"name": "dictionary", "package": "dict_words", "licence": "GPL-2+", **source},
        ],
        "splits": {
            "train": {"documents": 2300, "bytes": 9_700_000},
            "valid": {"documents": 50, "bytes": 150_000},
            "test": {"documents": 50, "bytes": 150_000},
        },
        "sha256": "cd" * 32,
    }


def task_listing() -> dict:
    listing = {}
    for task, (_, n) in TASKS.items():
        leaves = [name for name in BANDS if name.startswith(task)] or [task]
        listing[task] = {
            "items": n,
            "licence": "MIT",
            "source": {"client": "pip", "package": "some-items", "version": "1.0"},
            "contaminated": {"unjudged": 4, "prefix": 0, "corpus": 1},
            "group": None if leaves == [task] else {"own": f"{task}.yaml"},
            "leaves": {leaf: {"items": n // len(leaves)} for leaf in leaves},
            "notes": {"cloze_b4": "too few words"} if task == "cloze" else {},
        }
    return {"tasks": listing}
