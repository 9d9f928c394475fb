"""A byte-level BPE tokenizer: any text, NUL and broken accents included, comes back byte for byte."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from lexmem.spec.errors import UserError

END_OF_TEXT = "<|endoftext|>"

# Words with their leading space, numbers in groups of at most three digits, punctuation with trailing line ends:
# the pattern of Llama 3's tokenizer, with combining marks kept inside words.
PRE_TOKEN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
    r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+"
    r"|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+"
    r"|\s+(?!\S)"
    r"|\s+"
)


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Train byte-level BPE of exactly ``vocab_size`` entries: 256 bytes, merges, and last the end-of-text id.

    No normalisation. Ties between pairs are broken by their ids, so equal texts give an equal tokenizer.

    Raises:
        UserError: if the texts have too few repeated pairs to reach ``vocab_size``.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(PRE_TOKEN), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1,
        min_frequency=2,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_special_tokens([AddedToken(END_OF_TEXT, special=True, normalized=False)])
    reached = tokenizer.get_vocab_size()
    if reached != vocab_size:
        raise UserError(
            f"tokenizer.vocab_size = {vocab_size}: the sample yields only {reached} entries; "
            "lower it, raise tokenizer.sample_mb or give more text"
        )
    tokenizer.encode_special_tokens = True
    return tokenizer


def load_tokenizer(path: Path) -> Tokenizer:
    """Read ``tokenizer.json``. The literal text of a special token is plain text (the file cannot say so itself).

    Raises:
        UserError: if the file is missing or is not a tokenizer.
    """
    if not path.is_file():
        raise UserError(f"{path}: no such tokenizer; run the tokenize stage first")
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # tokenizers raises bare Exception
        raise UserError(f"{path}: not a tokenizer file: {' '.join(str(error).split())}") from None
    tokenizer.encode_special_tokens = True
    return tokenizer


def token_bytes(tokenizer: Tokenizer) -> np.ndarray:
    """Bytes of text behind each id, int32 (V,): 0 for end-of-text."""
    # The byte-level alphabet writes each byte as one character.
    lengths = np.array([len(tokenizer.id_to_token(i)) for i in range(tokenizer.get_vocab_size())], np.int32)
    lengths[tokenizer.token_to_id(END_OF_TEXT)] = 0
    return lengths
