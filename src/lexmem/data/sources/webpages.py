"""Manuals and books as HTML pages: the running text of each page, without code, tables and navigation."""

from collections.abc import Iterator
from pathlib import Path

from lxml import etree, html

_SKIPPED = {"script", "style", "pre", "table", "nav", "form", "footer", "img", "sup", "head"}
_SKIPPED_CLASSES = {
    *("book-navigation", "navheader", "navfooter", "docnav", "toc", "toctree-wrapper", "related", "sphinxsidebar"),
    *("headerlink", "indexterm", "url", "mediaobject", "versionmodified"),
    *("sig", "highlight", "programlisting", "screen", "doctest"),
}
_BLOCKS = {
    *("p", "div", "section", "article", "main", "body", "blockquote", "br", "hr"),
    *("li", "ul", "ol", "dl", "dt", "dd", "h1", "h2", "h3", "h4", "h5", "h6"),
}
_BORDER = "\ue000"  # a private character: marks the edges of blocks


def read_anarchism(root: Path) -> Iterator[str]:
    """The sections and appendices of the FAQ; lists of links and contents are left out."""
    return _pages(root, "html/sec*.html", "html/append*.html", "html/intro.html")


def read_debian_handbook(root: Path) -> Iterator[str]:
    """The English sections of the administrator's handbook."""
    return _pages(root, "html/en-US/*.html", body="//body/div[not(@id='banner')]")


def read_python_docs(root: Path) -> Iterator[str]:
    """The main column of every page in a chapter's folder, without signatures and the log of changes."""
    return _pages(root, "*-doc/html/*/[!c]*.html", "*-doc/html/*/c[!h]*.html", body="//*[@role='main']")


def read_postgresql_docs(root: Path) -> Iterator[str]:
    """Every page of the manual."""
    return _pages(root, "html/*.html")


def _pages(root: Path, *patterns: str, body: str = "//body") -> Iterator[str]:
    paths = {path for pattern in patterns for path in root.rglob(pattern)}
    for path in sorted(paths, key=lambda path: path.relative_to(root).as_posix()):
        if text := running_text(path.read_bytes(), body):
            yield text


def running_text(page: bytes, body: str) -> str:
    """Paragraphs of the elements at XPath ``body``, a blank line between; "" if there is none."""
    tree = html.document_fromstring(page, parser=html.HTMLParser(encoding="utf-8", remove_comments=True))
    for element in list(tree.iter(etree.Element)):
        if element.tag in _SKIPPED or _SKIPPED_CLASSES & set(element.get("class", "").split()):
            element.drop_tree()
    for element in tree.iter(*_BLOCKS):
        element.text = _BORDER + (element.text or "")
        element.tail = _BORDER + (element.tail or "")
    found = (" ".join(part.split()) for root in tree.xpath(body) for part in root.text_content().split(_BORDER))
    return "\n\n".join(part for part in found if part)
