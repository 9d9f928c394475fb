"""Documents, the training prefix as text, words and sentences."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from lexmem.data.tokenizer import load_tokenizer
from lexmem.data.tokens import TokenFiles
from lexmem.spec.errors import UserError
from lexmem.spec.files import read_json

WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?")
LOWER_WORD = re.compile(r"(?<![\w'-])[a-z]+(?:'[a-z]+)?(?![\w'-])")
SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(]|--[A-Z])")  # "--Chaucer." follows a dictionary's quotations
PROSE = re.compile(r"[A-Z][\w \t\n,;:'()\"-]*[.!?]")


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a JSON Lines file, in order.

    Raises:
        UserError: if the file is missing or a line is not JSON.
    """
    try:
        with path.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file, 1):
                try:
                    yield json.loads(line)
                except json.JSONDecodeError as error:
                    raise UserError(f"{path}:{number}: not JSON: {error}") from None
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None


def read_texts(path: Path) -> Iterator[str]:
    """Texts of a corpus split, in order."""
    return (document["text"] for document in read_jsonl(path))


def first_texts(path: Path, max_characters: int) -> list[str]:
    """Texts of a corpus split until they hold ``max_characters``; documents are stored in a shuffled order."""
    texts, size = [], 0
    for text in read_texts(path):
        texts.append(text)
        size += len(text)
        if size >= max_characters:
            break
    return texts


def prefix_texts(corpus: Path, tokens: Path, budget_tokens: int) -> Iterator[str]:
    """Texts of the training prefix, exactly what a model sees: whole documents and the cut last one.

    Args:
        corpus: folder with ``train.jsonl``.
        tokens: folder of its token files.
        budget_tokens: length of the prefix in tokens.

    Raises:
        UserError: if the training split is shorter than the budget, or the token files are of another corpus.
    """
    files = TokenFiles.open(tokens)
    if files.meta["corpus_sha256"] != read_json(corpus / "manifest.json")["sha256"]:
        raise UserError(f"{tokens} was made from another text than {corpus} holds; run the tokenize stage again")
    offsets = files.prefix_offsets(budget_tokens)
    yield from islice(read_texts(corpus / "train.jsonl"), len(offsets) - 2)
    last = files.prefix(budget_tokens)[offsets[-2] : offsets[-1]]
    yield load_tokenizer(tokens / "tokenizer.json").decode(last.tolist())


def lower_case_counts(texts: Iterable[str]) -> Counter[str]:
    """Occurrences of every word written in lower case (apostrophes inside count as letters).

    Names and the first words of sentences are left out: they are other strings to a model.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(LOWER_WORD.findall(text))
    return counts


def sentences(text: str) -> list[str]:
    """Sentences of a document, with line breaks turned into spaces; borders are guessed from punctuation."""
    return [" ".join(piece.split()) for piece in SENTENCE_END.split(text)]


def is_prose(sentence: str, shortest: int, longest: int) -> bool:
    """Whether a sentence of ``shortest`` to ``longest`` words reads as plain text.

    It begins with a capital, ends with a full stop, holds no mark-up and few digits or capitals.
    """
    if not PROSE.fullmatch(sentence):
        return False
    words = sentence.split()
    plain = sum(1 for word in words if word.strip(".,;:!?'\"()").islower())
    return shortest <= len(words) <= longest and plain >= 0.7 * len(words)
