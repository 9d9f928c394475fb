"""A study that is as small as can be: two variants, one seed, 32 steps, on text made here."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = ("src", "pipelines", "presets", "params.yaml", "dvc.yaml", ".dvc/config", ".dvc/.gitignore", ".dvcignore")
TINY = """
corpus: {sources: ["files:texts/*.jsonl"], valid_fraction: 0.1, test_fraction: 0.2}
tokenizer: {vocab_size: 320, sample_mb: 1.0}
allocate: {rows_per_token: 2.0, cap: 8}
tasks: {names: [cloze], cloze_items: 8, homophone_items: 8}
model: {width: 16, layers: 2, heads: 2, ffn_width: 48}
budget: {tokens: 4096, seq_len: 32, batch_size: 4}
train: {lr: 3.0e-3, valid_every: 8, valid_tokens: 512, checkpoint_every: 8}
evaluate: {limit: 4, heldout_tokens: 1024, batch_tokens: 1024}
bench: {batch_sizes: [1], prompt_tokens: 4, new_tokens: 4, repeats: 2, train_steps: 2}
study:
  variants: [dense, tide]
  seeds: [0]
  configs:
    dense: {}
    tide: {banks: 2}
"""
WORDS = (Path(__file__).parent / "words.txt").read_text().split()


def make(root: Path, documents: int = 400) -> None:
    """Copy the project's code to ``root`` and put a tiny preset with its own text beside it."""
    for part in PARTS:
        (root / part).parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
            shutil.copytree(ROOT / part, root / part, ignore=ignored)
        else:
            shutil.copy(ROOT / part, root / part)
    (root / "presets/tiny.yaml").write_text(TINY)
    (root / "texts").mkdir()
    rng = random.Random(0)
    with (root / "texts/all.jsonl").open("w") as file:
        for _ in range(documents):
            file.write(json.dumps({"text": " ".join(_sentence(rng) for _ in range(rng.randint(4, 10)))}) + "\n")


def _sentence(rng: random.Random) -> str:
    """Words with a heavy head and a long tail."""
    ranks = (int(rng.paretovariate(0.6)) - 1 for _ in range(rng.randint(6, 14)))
    return " ".join(WORDS[rank] if rank < len(WORDS) else rng.choice(WORDS) for rank in ranks).capitalize() + "."


def environment(root: Path) -> dict[str, str]:
    """The project's own copy of the code, this Python, no git identity, and no way out to a network."""
    nowhere = "http://127.0.0.1:9"
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "DVC_", "MLFLOW_"))},
        "PYTHONPATH": str(root / "src"),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(root),
        "OMP_NUM_THREADS": "1",
        "http_proxy": nowhere,
        "https_proxy": nowhere,
    }


def command(root: Path, *arguments: str) -> str:
    """Run ``python -m ...`` in the project; returns its output."""
    done = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=root,
        env=environment(root),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout
