"""The folder of items that evaluation reads: ``tasks.json``, and a folder a leaf with ``test.jsonl``.

A task of ours has its lm-eval definition there too (``cloze.yaml``, ``cloze_b1/cloze_b1.yaml``, ...): lm-eval itself
can score it with ``--include_path <folder>``, run from the project's root.
"""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from lexmem.evaluation.build import Entry, Leaf
from lexmem.evaluation.contamination import Contamination
from lexmem.spec.files import replacing, sha256_file, write_json

TEMPLATES = files("lexmem.evaluation") / "task_files"


def write_tasks(
    folder: Path,
    entries: dict[str, Entry],
    in_prefix: dict[str, Contamination],
    in_corpus: dict[str, Contamination],
) -> dict[str, Any]:
    """Write all items and the listing, whole or not at all; leaves without an item are listed as skipped.

    Args:
        folder: ``Layout.tasks``.
        entries: by task name.
        in_prefix: contamination of every leaf by the training prefix.
        in_corpus: and by the whole training split.

    Returns:
        The listing, ``{"tasks": {name: {items, licence, source, contaminated, group, leaves, skipped}}}``.
    """
    listing = {}
    with replacing(folder) as temporary:
        temporary.mkdir()
        for name, entry in entries.items():
            leaves = {}
            for leaf_name, leaf in entry.leaves.items():
                if leaf.items:
                    leaves[leaf_name] = _write_leaf(temporary, folder, leaf_name, leaf, entry.template) | {
                        "contaminated": _counts(leaf_name, in_prefix, in_corpus)
                    }
            if entry.template is not None:
                group = _template(entry.template) | {"task": list(leaves)}
                _write_yaml(temporary / f"{entry.template}.yaml", group)
            listing[name] = _entry(entry, leaves)
        write_json(temporary / "tasks.json", {"tasks": listing})
    return {"tasks": listing}


def evidence(entries: dict[str, Entry]) -> dict[str, list[str]]:
    """The text of every item, by leaf: what a contaminated corpus would hold."""
    return {
        name: [leaf.evidence(item) for item in leaf.items]
        for entry in entries.values()
        for name, leaf in entry.leaves.items()
    }


def _entry(entry: Entry, leaves: dict[str, Any]) -> dict[str, Any]:
    total = {
        key: sum(leaf["contaminated"][key] for leaf in leaves.values()) for key in ("unjudged", "prefix", "corpus")
    }
    group = {"lm_eval": entry.group} if entry.group else {"own": f"{entry.template}.yaml"} if entry.template else None
    return {
        "items": sum(leaf["items"] for leaf in leaves.values()),
        "licence": entry.licence,
        "source": entry.source,
        "contaminated": total,
        "group": group,
        "leaves": leaves,
        "notes": {name: leaf.note for name, leaf in entry.leaves.items() if leaf.note is not None},
    }


def _write_leaf(temporary: Path, folder: Path, name: str, leaf: Leaf, template: str | None) -> dict[str, Any]:
    file = f"{name}/test.jsonl"
    (temporary / name).mkdir()
    with (temporary / file).open("w", encoding="utf-8", newline="\n") as lines:
        lines.writelines(json.dumps(item, ensure_ascii=False) + "\n" for item in leaf.items)
    definition = {"lm_eval": leaf.definition}
    if leaf.definition is None:
        data = {"dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(folder / file)}}}
        _write_yaml(temporary / name / f"{name}.yaml", {"task": name} | data | _template(f"{template}_leaf"))
        definition = {"own": f"{name}/{name}.yaml"}
    return {
        "items": len(leaf.items),
        "file": file,
        "sha256": sha256_file(temporary / file),
        "definition": definition,
    }


def _counts(leaf: str, in_prefix: dict[str, Contamination], in_corpus: dict[str, Contamination]) -> dict[str, int]:
    return {
        "unjudged": in_prefix[leaf].short,
        "prefix": in_prefix[leaf].contaminated,
        "corpus": in_corpus[leaf].contaminated,
    }


def _template(name: str) -> dict[str, Any]:
    return YAML(typ="safe", pure=True).load((TEMPLATES / f"{name}.yaml").read_text(encoding="utf-8"))


def _write_yaml(path: Path, value: dict[str, Any]) -> None:
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    with path.open("w", encoding="utf-8") as file:
        yaml.dump(value, file)
