"""Packages that carry text as it is: speeches as text files, encyclopaedia leads as JSON."""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path


def read_sotu(root: Path) -> Iterator[str]:
    """A document a State of the Union address, in order of years."""
    for path in sorted(root.glob("package/data/*.txt"), key=lambda path: path.name):
        yield html.unescape(path.read_text(encoding="utf-8")).replace("\x02", "").strip()


def read_wikipedia_leads(root: Path) -> Iterator[str]:
    """A document an article: its title and its first paragraphs, in the order of the data set.

    The data set has dropped formulas and foreign spellings; the holes that they left are closed.
    """
    (path,) = root.rglob("summaries_en-us.json")
    for article in json.loads(path.read_text(encoding="utf-8")).values():
        lines = (re.sub(r" +(?=[,.;:)])", "", " ".join(line.split())) for line in article["extract"].split("\n"))
        text = "\n".join(line for line in lines if line)
        if text:
            yield f"{article['title']}\n{text}"
