"""What every source of text answers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A source ready to be read.

    ``kind`` is the registry client, ``files`` or ``hub``. ``sha256`` is the checksum that the text must have, "" for
    none. A ``streamed`` source is read no further than the corpus needs. ``read()`` yields documents.
    """

    name: str
    kind: str
    package: str
    version: str
    licence: str
    sha256: str
    streamed: bool
    read: Callable[[], Iterator[str]]
