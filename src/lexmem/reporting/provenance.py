"""What the numbers of a report came from: code, packages, text, machine."""

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lexmem.reporting.frames import Results
from lexmem.spec.files import sha256_file
from lexmem.spec.timing import machine

CODE = ("src", "pipelines", "presets", "params.yaml", "requirements.lock")
PACKAGES = ("torch", "lightning", "lm-eval", "tokenizers", "numpy")
UNKNOWN = "unknown"


def provenance(results: Results, root: Path = Path()) -> list[tuple[str, str]]:
    """(what, value) pairs in reading order."""
    lock = root / "requirements.lock"
    timed = results.timings
    machines = sorted(set(timed["machine"].dropna().astype(str)))
    threads = sorted(set(timed["threads"].dropna().astype(int)))
    return [
        ("Commit", commit(root)),
        ("Locked packages, SHA-256", sha256_file(lock) if lock.exists() else UNKNOWN),
        ("Corpus, SHA-256", str(results.corpus.get("sha256", UNKNOWN))),
        ("Plans", ", ".join(f"{results.title(name)} {entry['hash'][:12]}" for name, entry in results.plan.items())),
        ("Seeds", ", ".join(map(str, results.seeds))),
        ("Trained and evaluated on", "; ".join(machines) or UNKNOWN),
        ("Benchmarked on", f"{results.bench.get('machine', UNKNOWN)}, {results.bench.get('threads', UNKNOWN)} threads"),
        ("Threads a process", ", ".join(map(str, threads)) or UNKNOWN),
        ("Reported on", f"{machine()}, {platform.system()}, Python {platform.python_version()}"),
        ("Packages", ", ".join(f"{name} {_version(name)}" for name in PACKAGES)),
    ]


def commit(root: Path) -> str:
    """HEAD, with a note if code or parameters differ from it; ``unknown`` outside a git repository."""
    head = _git(root, "rev-parse", "HEAD")
    if head is None:
        return UNKNOWN
    changed = _git(root, "status", "--porcelain", "--", *CODE)
    return f"{head}, with uncommitted changes to code or parameters" if changed else head


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return UNKNOWN
