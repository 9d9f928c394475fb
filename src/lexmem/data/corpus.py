"""From sources to a corpus: clean, drop duplicates, shuffle across sources, split by document, account for it all.

A document is an entry group, chapter, article, speech or page of at most about 8 kB (``sources.passages``); train,
valid and test never share one. The order and the split depend on the seed and on each document's name alone, not on
the machine or on the order of sources. Of duplicates the first in the order of ``corpus.sources`` stays.

Memory: the texts and some 30 bytes a word, about 8 x the bytes of text at the peak. A streamed source (``hub:``,
``files:``) is read no further than ``max_documents``, which is therefore the way to bound a large one.
"""

import hashlib
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lexmem.data.dedupe import drop_duplicates
from lexmem.data.sources.passages import parts
from lexmem.data.sources.source import Source
from lexmem.progress import tracked
from lexmem.spec.errors import UserError
from lexmem.spec.files import replacing, sha256_file, sha256_json, write_json
from lexmem.spec.params import CorpusParams

SPLITS = ("train", "valid", "test")
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class Document:
    """A piece of text; ``id`` is its source and its place there."""

    id: str
    source: str
    text: str


@dataclass
class Account:
    """A source's row in the manifest: what it is, and what became of its documents."""

    name: str
    kind: str
    package: str
    version: str
    licence: str
    sha256: str = ""  # of the extracted text
    documents: int = 0  # in the corpus, with ``bytes``
    bytes: int = 0
    dropped_duplicates: int = 0  # documents
    dropped_paragraphs: int = 0  # duplicates inside documents
    dropped_empty: int = 0
    replaced_surrogates: int = 0
    extracted_bytes: int = 0  # before duplicates were dropped and documents capped


def build_corpus(params: CorpusParams, sources: Iterable[Source], folder: Path) -> dict[str, Any]:
    """Write ``{train,valid,test}.jsonl`` and ``manifest.json`` into ``folder``; returns the manifest.

    Raises:
        UserError: if a text's checksum is not the pinned one, or there are too few documents to split.
    """
    accounts: dict[str, Account] = {}
    documents: list[Document] = []
    for source in sources:
        account = Account(source.name, source.kind, source.package, source.version, source.licence)
        accounts[source.name] = account
        documents += _collect(source, params.max_documents, account)
    documents = _unique(documents, accounts)
    documents.sort(key=lambda document: _shuffle_key(params.seed, document.id))
    documents = documents[: params.max_documents]
    for document in documents:
        accounts[document.source].documents += 1
        accounts[document.source].bytes += len(document.text.encode())
    splits = _split(documents, params)
    with replacing(folder) as temporary:
        temporary.mkdir()
        manifest = {
            "sources": [asdict(account) for account in accounts.values()],
            "splits": {name: _write(temporary / f"{name}.jsonl", splits[name]) for name in SPLITS},
        }
        manifest["sha256"] = sha256_json([manifest["splits"][name]["sha256"] for name in SPLITS])
        write_json(temporary / "manifest.json", manifest)
    return manifest


def read_documents(path: Path) -> Iterator[dict[str, str]]:
    """The documents of a split's file: ``{"id", "source", "text"}``."""
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line)


def _collect(source: Source, max_documents: int | None, account: Account) -> list[Document]:
    """Read a source; its checksum is of the extracted documents, each followed by a zero byte."""
    found = _parts(source, account)
    if source.streamed:
        found = itertools.islice(found, max_documents)
    checksum = hashlib.sha256()
    documents: list[Document] = []
    for text in tracked(source.name, found):
        data = text.encode()
        checksum.update(data + b"\0")
        account.extracted_bytes += len(data)
        documents.append(Document(f"{source.name}/{len(documents)}", source.name, text))
    account.sha256 = checksum.hexdigest()
    if not documents:
        raise UserError(f"source {source.name!r}: there is no text in it (empty documents: {account.dropped_empty})")
    if source.sha256 and account.sha256 != source.sha256:
        raise UserError(
            f"source {source.name!r}: its text has sha256 {account.sha256}, expected {source.sha256}: "
            f"{source.kind} package {source.package} {source.version} is not what it was"
        )
    return documents


def _parts(source: Source, account: Account) -> Iterator[str]:
    for text in source.read():
        text, replaced = _SURROGATE.subn("\ufffd", text)
        account.replaced_surrogates += replaced
        for part in parts(text):
            if part.strip():
                yield part
            else:
                account.dropped_empty += 1


def _unique(documents: list[Document], accounts: dict[str, Account]) -> list[Document]:
    texts = (document.text for document in documents)
    unique = drop_duplicates(tracked("duplicates", texts, total=len(documents)))
    for index, document in enumerate(documents):
        account = accounts[document.source]
        account.dropped_paragraphs += int(unique.paragraphs_dropped[index])
        account.dropped_duplicates += index not in unique.texts
    return [Document(documents[index].id, documents[index].source, text) for index, text in unique.texts.items()]


def _shuffle_key(seed: int, name: str) -> bytes:
    return hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=16).digest()


def _split(documents: list[Document], params: CorpusParams) -> dict[str, list[Document]]:
    """The first documents of the shuffled order are for validation, the next for testing, the rest for training."""
    valid, test = (
        max(1, round(fraction * len(documents))) if fraction else 0
        for fraction in (params.valid_fraction, params.test_fraction)
    )
    if valid + test >= len(documents):
        raise UserError(
            f"corpus: {len(documents)} document(s) from {', '.join(params.sources)} cannot be split into train, "
            f"{valid} valid and {test} test: more text or smaller valid_fraction and test_fraction"
        )
    return {
        "valid": documents[:valid],
        "test": documents[valid : valid + test],
        "train": documents[valid + test :],
    }


def _write(path: Path, documents: list[Document]) -> dict[str, Any]:
    size = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for document in documents:
            file.write(json.dumps(asdict(document), ensure_ascii=False) + "\n")
            size += len(document.text.encode())
    return {"documents": len(documents), "bytes": size, "sha256": sha256_file(path)}
