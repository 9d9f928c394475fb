"""WordNet's data files: one synonym set a line, its words before the bar and its gloss after."""

from collections.abc import Iterator
from pathlib import Path

from lexmem.data.sources.passages import grouped

_SPEECH = {"noun": "noun", "verb": "verb", "adj": "adjective", "adv": "adverb"}


def read_wordnet(root: Path) -> Iterator[str]:
    """``word, synonym (noun): gloss; "example"``; consecutive sets share a document."""
    return grouped(_glosses(root))


def _glosses(root: Path) -> Iterator[str]:
    for suffix, speech in _SPEECH.items():
        (path,) = root.rglob(f"data.{suffix}")
        with path.open(encoding="utf-8") as file:
            for line in file:
                if not line.startswith(" "):  # the licence is indented
                    yield _gloss(line, speech)


def _gloss(line: str, speech: str) -> str:
    fields, _, gloss = line.partition(" | ")
    fields = fields.split()
    count = int(fields[3], 16)
    words = (word.split("(")[0].replace("_", " ") for word in fields[4 : 4 + 2 * count : 2])
    return f"{', '.join(words)} ({speech}): {' '.join(gloss.split())}"
