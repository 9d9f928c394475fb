"""Documentation in reStructuredText: its paragraphs, without directives, listings, tables and section rules."""

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

_ROLE = re.compile(r":[\w:+-]+:`([^`<]*?)\s*(?:<[^>]*>)?`")
_LINK = re.compile(r"`([^`<]*?)\s*(?:<[^>]*>)?`__?")
_MARKS = re.compile(r"``|\*\*|(?<!\w)[*`](?=\S)|(?<=\S)[*`](?!\w)|\|(?=\w)|(?<=\w)\|")
_ITEM = re.compile(r"^(?:[-*+]|#\.|\d+[.)]|\(?[a-z]\))\s+")
_ITEM_LINE = re.compile(r"\n(?=\s*(?:[-*+]|#\.|\d+[.)])\s)")
_RULE = re.compile(r"(?m)^[ \t]*([=\-~^\"'`#*+_.:])\1{2,}[ \t]*$")


def read_linux_docs(root: Path) -> Iterator[str]:
    """A document a file of the kernel's documentation; translations are left out."""
    (base,) = (path for path in root.rglob("Documentation") if path.is_dir())
    for path in sorted(base.rglob("*.rst.gz"), key=lambda path: path.relative_to(base).as_posix()):
        if "translations" not in path.parts:
            with gzip.open(path, "rt", encoding="utf-8", errors="replace") as file:
                if text := prose(file.read()):
                    yield text


def prose(text: str) -> str:
    """The paragraphs and list items of a reStructuredText document, each on one line, a blank line between."""
    found = []
    skipped_from: int | None = None  # indentation of a directive or of the paragraph that opened a listing
    for block in re.split(r"\n\s*\n", _RULE.sub("", text.expandtabs())):
        lines = block.strip("\n").split("\n")
        indent = len(lines[0]) - len(lines[0].lstrip())
        if skipped_from is not None and indent > skipped_from:
            continue
        skipped_from = None
        if lines[0].lstrip().startswith(".. ") or lines[0].strip() == "..":
            skipped_from = indent
            continue
        if block.rstrip().endswith("::"):
            skipped_from = indent
        if not _is_table(lines) and not lines[0].lstrip().startswith((":", "$", ">>>")):
            found += [_plain(item) for item in _ITEM_LINE.split(block)]
    return "\n\n".join(part for part in found if len(part.split()) > 3)


def _is_table(lines: list[str]) -> bool:
    return any(re.search(r"={3,}\s+={3,}|\+-{2,}|\S\s{3,}\S+\s{3,}\S|^\s*\|", line) for line in lines)


def _plain(text: str) -> str:
    text = _LINK.sub(r"\1", _ROLE.sub(r"\1", " ".join(text.split())))
    return _MARKS.sub("", _ITEM.sub("", text)).replace("::", ":").strip()
