"""Documents of a useful size: small entries grouped, long texts cut at their own borders.

A dictionary entry is shorter than a training window and a book longer than a whole small budget. Entries that follow
each other share a document of about 2 kB; a text over 8 kB is cut at paragraph borders (an over-long paragraph at
line, sentence or word borders) into parts of nearly equal size, so that a small prefix of the shuffled documents
already mixes all sources.
"""

import re
from collections.abc import Iterable, Iterator

GROUP_BYTES = 2_000
LIMIT_BYTES = 8_000

_PARAGRAPH = r"\r?\n(?:[ \t]*\r?\n)+"
_BORDERS = tuple(re.compile(f"({border})") for border in (_PARAGRAPH, r"\r?\n", r"(?<=[.!?;]) +", r"\s+"))


def paragraphs(text: str) -> list[str]:
    """Paragraphs at even places, the blank lines between them at odd ones: joined they are ``text``."""
    return _BORDERS[0].split(text)


def grouped(entries: Iterable[str], target: int = GROUP_BYTES) -> Iterator[str]:
    """Join consecutive entries, a blank line between, until a document has ``target`` bytes."""
    group: list[str] = []
    size = 0
    for entry in entries:
        group.append(entry)
        size += len(entry.encode())
        if size >= target:
            yield "\n\n".join(group)
            group, size = [], 0
    if group:
        yield "\n\n".join(group)


def parts(text: str, limit: int = LIMIT_BYTES) -> list[str]:
    """Cut ``text`` into parts of at most ``limit`` bytes; a text within the limit comes back untouched.

    The white space at a cut is dropped, everything else is kept.
    """
    return _cut(text, limit, 0)


def _cut(text: str, limit: int, level: int) -> list[str]:
    size = len(text.encode())
    if size <= limit:
        return [text]
    if level == len(_BORDERS):
        step = limit // 4  # a character has at most 4 bytes
        return [text[at : at + step] for at in range(0, len(text), step)]
    aim = size / -(-size // limit)  # parts of equal size rather than full ones and a rest
    found: list[str] = []
    part = gap = ""
    part_bytes = 0
    pieces = [*_BORDERS[level].split(text), ""]
    for unit, border in zip(pieces[::2], pieces[1::2], strict=True):
        unit_bytes = len(unit.encode())
        gap_bytes = len(gap)
        if part and (part_bytes >= aim or part_bytes + gap_bytes + unit_bytes > limit):
            found.append(part)
            part, part_bytes, gap, gap_bytes = "", 0, "", 0
        if unit_bytes > limit:
            found += [part] if part else []
            *whole, unit = _cut(unit, limit, level + 1)
            found += whole
            part, gap, part_bytes = unit, border, len(unit.encode())
        else:
            part += gap + unit
            part_bytes += gap_bytes + unit_bytes
            gap = border
    return [*found, part] if part else found
