"""Dictionaries in dictd's format: one gzip-compatible text, headwords at the margin, definitions indented."""

import gzip
import re
import string
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from lexmem.data.sources.passages import grouped

_DIGITS = string.ascii_uppercase + string.ascii_lowercase + string.digits + "+/"
_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", ",": "\u0327"}
_LETTERS = {"ae": "æ", "AE": "Æ", "oe": "œ", "eth": "ð", "thorn": "þ", "deg": "°", "pounds": "£", "sect": "§"}
_LETTER_CODE = re.compile(
    r"\[(?:(?P<before>['`^\"~,=.*\-])(?P<letters>[A-Za-z]{1,2})|(?P<short>[A-Za-z]{1,2})\^"
    r"|(?P<named>[a-z]{1,2})(?:mac|um|sl|dd|cr|til|dot)|(?P<letter>ae|AE|oe|eth|thorn|deg|pounds|sect))\]"
)
_SPOKEN = re.compile(r"\\[^\\]*\\(?:\s*\([^()]*\))?")
_SOURCE_AT_END = re.compile(r"\[[^\[\]]*(?:Webster|WordNet|PJC)[^\[\]]*\](?:\s+[\w'-]+){0,8}\s*\Z")
_BRACKETED = re.compile(r"\[[^\[\]]*\]")


def read_gcide(root: Path) -> Iterator[str]:
    r"""Webster of 1913 with WordNet additions, without pronunciations (``\..\``), etymologies and source tags."""
    return grouped(filter(None, map(_gcide_entry, _entries(_text(root)))))


def read_foldoc(root: Path) -> Iterator[str]:
    """The on-line dictionary of computing, without dates, link targets, subject tags and listings."""
    return grouped(filter(None, map(_foldoc_entry, _entries(_text(root)))))


def read_jargon(root: Path) -> Iterator[str]:
    """The jargon file: headword, part of speech and definition."""
    return grouped(filter(None, map(_prose, _entries(_text(root)))))


def read_devil(root: Path) -> Iterator[str]:
    """The Devil's Dictionary: entries begin with a word in capitals at the margin; verse keeps its lines."""
    text = _text(root)
    entries = re.split(r"\n\n(?=[A-Z]{2,}[A-Z' -]*,? )", text)[1:]
    return grouped("\n".join(line.strip() for line in entry.strip().splitlines()) for entry in entries)


def _text(root: Path) -> str:
    """The whole dictionary but its entries about itself, whose headwords begin with ``00``."""
    (path,) = root.rglob("*.dict.dz")
    with gzip.open(path) as file:
        data = file.read()
    kept, end = [], 0
    for start, size in sorted(_own_entries(path.with_name(path.name.replace(".dict.dz", ".index")))):
        kept.append(data[end:start])
        end = max(end, start + size)
    data = b"".join([*kept, data[end:]])
    # Single bytes of the Windows code page have slipped into otherwise clean UTF-8.
    return "".join(_decoded(line) for line in data.splitlines(keepends=True))


def _own_entries(index: Path) -> Iterator[tuple[int, int]]:
    """(offset, size) in bytes: an index line is headword, offset and size, the numbers in base 64."""
    for line in index.read_bytes().split(b"\n"):
        if line.startswith(b"00"):
            _, offset, size = line.decode().split("\t")
            yield _number(offset), _number(size)


def _number(digits: str) -> int:
    value = 0
    for digit in digits:
        value = value * 64 + _DIGITS.index(digit)
    return value


def _decoded(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("cp1252", errors="replace")


def _entries(text: str) -> list[str]:
    """Entries of a text: each begins with a line at the margin that follows a blank one."""
    return re.split(r"\n\s*\n(?=[^\s\\\[])", text)


def _prose(entry: str) -> str:
    """Headword lines joined by commas, every paragraph on one line, cross-reference braces removed."""
    head, _, body = entry.strip("\n").replace("{", "").replace("}", "").replace("%%%", "\n").partition("\n\n")
    head = ", ".join(" ".join(line.split()) for line in head.splitlines() if line.strip())
    return "\n".join([head, *(" ".join(part.split()) for part in re.split(r"\n\s*\n", body) if part.strip())])


def _gcide_entry(entry: str) -> str:
    entry = _LETTER_CODE.sub(_letter, _SPOKEN.sub("", entry))
    entry = _SOURCE_AT_END.sub("", entry)  # with the next headwords, which the package repeats there
    while (bare := _BRACKETED.sub("", entry)) != entry:  # brackets nest
        entry = bare
    lines = [" ".join(part.split()) for part in re.split(r"\n\s*\n", entry.replace("{", "").replace("}", ""))]
    text = "\n".join(line for line in lines if line)
    return re.sub(r" +(?=[,.;:)])", "", text)


def _letter(match: re.Match) -> str:
    if match["letter"]:
        return _LETTERS[match["letter"]]
    letters = match["letters"] or match["short"] or match["named"]
    return unicodedata.normalize("NFC", letters + _ACCENTS.get(match["before"] or "", ""))


def _foldoc_entry(entry: str) -> str:
    head, _, body = entry.strip("\n").partition("\n\n")
    kept = [part for part in re.split(r"\n\s*\n", body) if re.match(r" {3}\S", part)]
    body = "\n\n".join(kept)
    body = re.sub(r"\{\(?(?:http|ftp|news|mailto)[^}]*\}\.?", "", body)
    body = re.sub(r"(?m)^\s*(?:\(\d{4}-\d\d-\d\d\)|\[\{?[^\[\]]*\}?\]\.?)\s*$", "", body)
    body = re.sub(r"<[a-z][a-z ,/-]*>\s*", "", body)
    body = re.sub(r"\A\s*/[^/\s]+/\s*", "", body)  # pronunciation
    text = _prose(head + "\n\n" + body)
    return text if "\n" in text else ""
