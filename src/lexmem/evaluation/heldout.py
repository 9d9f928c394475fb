"""Loss on held-out text: by token, word and byte, and by how often the target was seen in training.

The held-out text is the stream of the test split cut into windows of ``seq_len`` inputs, each scored with the context
inside its window. ``loss`` and token perplexity are over all targets. End-of-text targets are no text: bits per byte
and the perplexities by word and byte leave out their loss as they leave out their bytes.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from tokenizers import Tokenizer

from lexmem.data.tokens import TokenFiles, heldout_windows
from lexmem.evaluation.scorer import Scorer
from lexmem.progress import metered
from lexmem.spec.errors import UserError

BINS = 10
DECILE_COLUMNS = ["bins", "bin", "types", "tokens", "loss"]


@dataclass(frozen=True)
class HeldoutLosses:
    """Scored targets, in the order of the text.

    Attributes:
        targets: ids, int64 (N,).
        losses: nats, float64 (N,).
    """

    targets: np.ndarray
    losses: np.ndarray


def heldout_losses(scorer: Scorer, tokens: TokenFiles, seq_len: int, max_tokens: int, batch_size: int) -> HeldoutLosses:
    """Score at most ``max_tokens`` of the test split.

    Raises:
        UserError: if the split is shorter than one window.
    """
    targets, losses = [], []
    expected = min(max_tokens, len(tokens.split("test")) - 1) // seq_len * seq_len
    with metered("held-out", expected, "tokens") as advance:
        for windows in heldout_windows(tokens, "test", seq_len, max_tokens, batch_size):
            targets.append(windows[:, 1:].reshape(-1))
            losses.append(scorer.token_losses(windows).reshape(-1))
            advance(len(targets[-1]))
    return HeldoutLosses(np.concatenate(targets), np.concatenate(losses))


def summarise(heldout: HeldoutLosses, tokens: TokenFiles, tokenizer: Tokenizer) -> dict[str, float]:
    """Counts of exactly the scored text, ``loss`` in nats a token, ``bits_per_byte``, and perplexities.

    Raises:
        UserError: if the scored text has no word.
    """
    text = heldout.targets != tokens.eot_id
    n_bytes = int(tokens.token_bytes[heldout.targets[text]].sum())
    n_words = count_words(heldout.targets, tokens.eot_id, tokenizer)
    if not n_words:
        raise UserError(f"{tokens.path}: the held-out text has no words; raise corpus.test_fraction")
    total, loss = float(heldout.losses[text].sum()), float(heldout.losses.mean())
    return {
        "tokens": len(heldout.targets),
        "words": n_words,
        "bytes": n_bytes,
        "loss": loss,
        "bits_per_byte": total / n_bytes / math.log(2),
        "token_perplexity": _exp(loss),
        "word_perplexity": _exp(total / n_words),
        "byte_perplexity": _exp(total / n_bytes),
    }


def count_words(ids: np.ndarray, eot_id: int, tokenizer: Tokenizer) -> int:
    """Words between white space; a document's end also ends a word."""
    documents = np.split(ids, np.flatnonzero(ids == eot_id))
    parts = [document[document != eot_id].tolist() for document in documents]
    return sum(len(text.split()) for text in tokenizer.decode_batch(parts, skip_special_tokens=False))


def deciles(heldout: HeldoutLosses, counts: np.ndarray) -> pd.DataFrame:
    """Mean loss by frequency of the target in training, two ways; bin 1 is the rarest, 0 was never seen.

    Args:
        counts: occurrences of each id in the training prefix, int64 (V,).

    Returns:
        One row a bin that has targets, with columns ``bins``, ``bin``, ``types`` (ids in the bin), ``tokens`` (scored
        targets) and ``loss`` (nats): ``equal_type`` has ten bins of equally many ids, ``log_width`` ten of equal
        width in the logarithm of the count.
    """
    frames = []
    for name, bin_V in (("equal_type", equal_type_bins(counts)), ("log_width", log_width_bins(counts))):
        of_target = bin_V[heldout.targets]
        n_types = np.bincount(bin_V, minlength=BINS + 1)
        n_tokens = np.bincount(of_target, minlength=BINS + 1)
        sums = np.bincount(of_target, heldout.losses, minlength=BINS + 1)
        filled = np.flatnonzero(n_tokens)
        columns = [name, filled, n_types[filled], n_tokens[filled], sums[filled] / n_tokens[filled]]
        frames.append(pd.DataFrame(dict(zip(DECILE_COLUMNS, columns, strict=True))))
    return pd.concat(frames, ignore_index=True)


def equal_type_bins(counts: np.ndarray) -> np.ndarray:
    """Bin of each id, (V,): ids seen, by count (ties by id), in ten bins of equally many; 0 for the others."""
    seen = np.flatnonzero(counts)
    ascending = seen[np.argsort(counts[seen], kind="stable")]
    bins = np.zeros(len(counts), np.int64)
    for number, ids in enumerate(np.array_split(ascending, BINS), start=1):
        bins[ids] = number
    return bins


def log_width_bins(counts: np.ndarray) -> np.ndarray:
    """Bin of each id, (V,): ids seen, in ten bins of equal width in log count; 0 for the others."""
    seen = np.flatnonzero(counts)
    bins = np.zeros(len(counts), np.int64)
    if len(seen):
        logs = np.log(counts[seen])
        edges = np.linspace(logs.min(), logs.max(), BINS + 1)
        bins[seen] = 1 + np.searchsorted(edges[1:-1], logs, side="right") if edges[0] < edges[-1] else 1
    return bins


def _exp(nats: float) -> float:
    """``exp``, the largest float where that overflows (a model that diverged)."""
    return math.exp(min(nats, math.log(np.finfo(np.float64).max)))
