"""``params.yaml`` set to the study that a preset recommends, with its comments kept."""

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq

from lexmem.spec.files import replacing
from lexmem.spec.params import load_preset, preset_names


def activate(preset: str, root: Path = Path()) -> bool:
    """Make ``preset`` the active one, with the variants, seeds and configs of its ``study`` section.

    Runs that other presets recommend are dropped, so that going from one preset to another and back gives the same
    file; a run that no preset has is the user's own, and stays with its block.

    Returns:
        Whether ``params.yaml`` was rewritten: not if it already says so.
    """
    study = load_preset(preset, root).study
    path = root / "params.yaml"
    before = path.read_text(encoding="utf-8")
    yaml = YAML(typ="rt", pure=True)
    yaml.width = 120
    yaml.preserve_quotes = True
    document = yaml.load(before)
    document["preset"] = preset
    recommended = set(_recommended(root))
    own = [label for label in document["variants"] if label not in recommended]
    _set(document, "variants", [*study.variants, *own])
    _set(document, "seeds", study.seeds)
    configs = document["configs"]
    for label in [label for label in configs if label in recommended and label not in study.configs]:
        del configs[label]
    for label, block in study.configs.items():
        _set(configs, label, block)
    text = StringIO()
    yaml.dump(document, text)
    if text.getvalue() == before:
        return False
    with replacing(path) as temporary:
        temporary.write_text(text.getvalue(), encoding="utf-8")
    return True


def _set(parent: CommentedMap, key: str, value: Any) -> None:
    """Set a key in flow style; an equal value is left as it is written, with the comments around it."""
    if key in parent and parent[key] == value:
        return
    node = CommentedMap(value) if isinstance(value, dict) else CommentedSeq(value)
    node.fa.set_flow_style()
    if key in parent and hasattr(parent[key], "ca"):
        node.ca.comment, node.ca.end = parent[key].ca.comment, parent[key].ca.end
    parent[key] = node


def _recommended(root: Path) -> Iterator[str]:
    for name in preset_names(root):
        yield from load_preset(name, root).study.configs
