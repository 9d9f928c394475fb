"""From the corpus's JSON Lines to token files, a batch of documents in memory at a time."""

import json
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from tokenizers import Tokenizer

from lexmem.data.tokenizer import END_OF_TEXT, token_bytes, train_tokenizer
from lexmem.data.tokens import id_dtype
from lexmem.progress import metered
from lexmem.spec.errors import UserError
from lexmem.spec.files import read_json, sha256_file, sha256_json, write_json
from lexmem.spec.params import TokenizerParams

SPLITS = ("train", "valid", "test")
BATCH = 1 << 18  # characters encoded at a time; an encoding takes some 150 bytes a token while it lives
PIECE = 1 << 16  # characters of a document after which it may be cut
SAFE_CUT = re.compile(r"\n(?=[A-Za-z0-9])")  # the pre-tokeniser always ends a token between the two


@dataclass
class SplitSize:
    """What a split holds; ``bytes`` and ``words`` (separated by white space) are of its text."""

    tokens: int = 0
    documents: int = 0
    bytes: int = 0
    words: int = 0


def tokenize_corpus(corpus: Path, out: Path, params: TokenizerParams) -> dict[str, Any]:
    """Train a tokenizer on the start of ``corpus/train.jsonl``, encode every split into ``out``, return its meta.

    Writes ``tokenizer.json``, ``<split>.bin``, ``<split>.offsets.npy``, ``token_bytes.npy`` and ``meta.json``.

    Raises:
        UserError: if the corpus is missing, empty, not as the corpus stage writes it, or too small for the vocabulary.
    """
    manifest, train = corpus / "manifest.json", corpus / "train.jsonl"
    if not manifest.is_file():
        raise UserError(f"{manifest}: no such file; run the corpus stage first")
    if _megabytes(train) == 0:
        raise UserError(f"{train}: no documents")
    out.mkdir(parents=True)
    tokenizer = train_tokenizer(_sample(train, params.sample_mb), params.vocab_size)
    tokenizer.save(str(out / "tokenizer.json"))
    np.save(out / "token_bytes.npy", token_bytes(tokenizer))
    sizes = {split: _encode_split(tokenizer, corpus / f"{split}.jsonl", out, split) for split in SPLITS}
    files = sorted(path for path in out.iterdir() if path.suffix != ".npy")
    meta = {
        "vocab_size": params.vocab_size,
        "eot_id": tokenizer.token_to_id(END_OF_TEXT),
        "dtype": id_dtype(params.vocab_size).str,
        "splits": {split: asdict(size) for split, size in sizes.items()},
        "corpus_sha256": read_json(manifest)["sha256"],
        "sha256": sha256_json({path.name: sha256_file(path) for path in files}),
    }
    write_json(out / "meta.json", meta)
    return meta


def _encode_split(tokenizer: Tokenizer, path: Path, out: Path, split: str) -> SplitSize:
    size, lengths = SplitSize(), [np.zeros(1, np.int64)]
    n_bytes = token_bytes(tokenizer)
    with (out / f"{split}.bin").open("wb") as file, metered(f"encode {split}", _megabytes(path), "MB") as advance:
        for texts, megabytes in _batches(path):
            ids, n_ids = _encode(tokenizer, texts)
            text_bytes = sum(len(text.encode()) for text in texts)
            if int(n_bytes[ids].sum()) != text_bytes:
                raise AssertionError(f"{path}: {text_bytes} bytes of text became {n_bytes[ids].sum()} bytes of tokens")
            ids.tofile(file)
            lengths.append(n_ids)
            size.tokens += len(ids)
            size.documents += len(texts)
            size.bytes += text_bytes
            size.words += sum(len(text.split()) for text in texts)
            advance(megabytes)
    np.save(out / f"{split}.offsets.npy", np.cumsum(np.concatenate(lengths)))
    return size


def _encode(tokenizer: Tokenizer, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Ids of all texts, each followed by end-of-text, and how many each has, int64 (texts,)."""
    eot_id = tokenizer.token_to_id(END_OF_TEXT)
    pieces = [list(_pieces(text)) for text in texts]
    encodings = iter(tokenizer.encode_batch_fast(list(chain.from_iterable(pieces)), add_special_tokens=False))
    ids: list[int] = []
    ends = []
    for document in pieces:
        for _ in document:
            ids += next(encodings).ids
        ids.append(eot_id)
        ends.append(len(ids))
    return np.array(ids, id_dtype(tokenizer.get_vocab_size())), np.diff(ends, prepend=0)


def _pieces(text: str) -> Iterator[str]:
    """Cut a long text where that changes no token: it bounds memory and lets threads share one document."""
    start = 0
    while cut := SAFE_CUT.search(text, start + PIECE):
        yield text[start : cut.end()]
        start = cut.end()
    yield text[start:]


def _batches(path: Path) -> Iterator[tuple[list[str], float]]:
    """Texts of about ``BATCH`` characters and the megabytes of file that they took."""
    texts: list[str] = []
    characters = n_bytes = 0
    for text, line_bytes in _documents(path):
        texts.append(text)
        characters += len(text)
        n_bytes += line_bytes
        if characters >= BATCH:
            yield texts, n_bytes / 1e6
            texts, characters, n_bytes = [], 0, 0
    if texts:
        yield texts, n_bytes / 1e6


def _sample(path: Path, megabytes: float) -> Iterator[str]:
    """Texts from the start of the file until they have ``megabytes``."""
    total = min(megabytes, _megabytes(path))
    left = megabytes * 1e6
    with metered("read sample", total, "MB") as advance:
        for text, line_bytes in _documents(path):
            yield text
            advance(line_bytes / 1e6)
            left -= len(text.encode())
            if left <= 0:
                return


def _documents(path: Path) -> Iterator[tuple[str, int]]:
    """Each document's text and the bytes of its line. Lines end at LF alone; CR and U+2028 are text."""
    file: BinaryIO
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield json.loads(line)["text"], len(line)
            except (ValueError, KeyError, TypeError):
                raise UserError(f'{path}:{number}: not a JSON object with a "text"') from None


def _megabytes(path: Path) -> float:
    try:
        return path.stat().st_size / 1e6
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; run the corpus stage first") from None
