"""Text from a stream of ids."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tokenizers import Tokenizer

REPLACEMENT = "\ufffd"  # what bytes decode to that are no character, or not yet


def stream_text(tokenizer: "Tokenizer", ids: Iterable[int]) -> Iterator[str]:
    """Pieces of text as soon as their characters are whole; together, what the ids decode to at once."""
    pending: list[int] = []
    for token in ids:
        pending.append(token)
        text = tokenizer.decode(pending)
        if not text.endswith(REPLACEMENT):
            yield text
            pending = []
    if pending:
        yield tokenizer.decode(pending)
