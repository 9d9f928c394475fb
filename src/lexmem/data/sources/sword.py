"""Bibles and commentaries in SWORD's zText and zCom formats.

``*.?zs`` is an index of blocks (offset, compressed size, size: little-endian uint32), ``*.?zz`` holds the blocks
(zlib), each a book or a chapter of OSIS markup in reading order.
"""

import html
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

_CHAPTER = re.compile(r"<chapter\b[^>]*\bsID=[^>]*>")
_ASIDE = re.compile(r"\s*<(note|title|table)\b[^>]*(?<!/)>.*?</\1>\s*", re.DOTALL)
_BREAK = re.compile(r"<(?:div|lg|list|p|lb)\b[^>]*>|</(?:lg|p|list)>")
_LINE = re.compile(r"<(?:l|item)\b(?![^>]*\beID=)[^>]*>")
_TAG = re.compile(r"<[^>]*>")
_HEADING = re.compile(r"(?:Verses?|Chapter) [\d, :-]+\.?")


def read_sword(root: Path) -> Iterator[str]:
    """A document a chapter, without notes, headings, outlines and verse numbers; the Old Testament first."""
    for index in sorted(root.rglob("*.[bc]zs"), key=lambda path: path.stem, reverse=True):
        for block in _blocks(index):
            for chapter in _CHAPTER.split(block):
                if text := _prose(chapter):
                    yield text


def _blocks(index: Path) -> Iterator[str]:
    data = index.with_suffix(index.suffix[:-1] + "z").read_bytes()
    entries = index.read_bytes()
    for offset, packed, size in struct.iter_unpack("<III", entries[: len(entries) // 12 * 12]):
        if size:
            yield zlib.decompress(data[offset : offset + packed]).decode("utf-8", errors="replace")


def _prose(markup: str) -> str:
    markup = _BREAK.sub("\n\n", _ASIDE.sub(" ", markup)).replace("</w>(", "</w> (")
    text = html.unescape(_TAG.sub("", _LINE.sub("\n", markup))).replace("#(", "(")
    found = []
    for part in re.split(r"\n\s*\n", text):
        lines = (" ".join(line.split()) for line in part.split("\n"))
        paragraph = re.sub(r" +(?=[,.;:!?])", "", "\n".join(line for line in lines if line))
        if paragraph and not _HEADING.fullmatch(paragraph):
            found.append(paragraph)
    return "\n\n".join(found)
