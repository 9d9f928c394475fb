"""lm-eval's view of a scorer: text in, log-likelihoods out.

Edge cases, as lm-eval's own models treat them: an empty or whitespace-only context becomes the end-of-text id; spaces
at a context's end move to the continuation; a continuation without text scores ``(0.0, True)``; ids beyond ``max_len``
are cut from the context's left, and counted. A continuation that is itself too long is an error: its score would be
of other text.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
from tokenizers import Tokenizer

from lexmem.evaluation.batching import Request
from lexmem.evaluation.scorer import Score, Scorer
from lexmem.progress import metered
from lexmem.spec.errors import UserError

Pair = tuple[Sequence[int], Sequence[int]]

EMPTY = Score(0.0, True)
MAX_GENERATED = 256  # lm-eval's default where a task does not say


class HarnessLM(TemplateLM):
    """Any :class:`Scorer` as an lm-eval model.

    Args:
        scorer: scores ids.
        tokenizer: byte-level; no special tokens are added.
        eot_id: opens every text without context, and ends generation.

    Attributes:
        truncated: requests so far whose context was cut on the left.
        scored: requests so far that the scorer scored, in ``scoring_seconds``.
    """

    def __init__(self, scorer: Scorer, tokenizer: Tokenizer, eot_id: int) -> None:
        super().__init__()
        self.scorer, self.tokenizer, self.eot_id = scorer, tokenizer, eot_id
        self.truncated, self.scored, self.scoring_seconds = 0, 0, 0.0

    @property
    def eot_token_id(self) -> int:
        return self.eot_id

    @property
    def max_length(self) -> int:
        return self.scorer.max_len

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **kwargs: Any) -> list[int]:
        return self.tokenizer.encode(string, add_special_tokens=False).ids

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        pairs = self._encode_pairs([request.args for request in requests])
        return self._score([_name(request) for request in requests], pairs, "requests")

    def _loglikelihood_tokens(
        self, requests: list[tuple[tuple[str, str], list[int], list[int]]], **kwargs: Any
    ) -> list[tuple[float, bool]]:
        names = [f"continuation {_shorten(continuation)}" for (_, continuation), _, _ in requests]
        return self._score(names, [(context, continuation) for _, context, continuation in requests], "requests")

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """Log-likelihood of whole texts: every id is predicted once, with as much context as ``max_len`` allows."""
        names, windows, texts = [], [], []
        for index, request in enumerate(requests):
            ids = self.tok_encode(request.args[0])
            for window in get_rolling_token_windows(ids, self.prefix_token_id, self.max_length, context_len=1):
                windows.append(make_disjoint_window(window))
                names.append(_name(request))
                texts.append(index)
        totals = [0.0] * len(requests)
        for index, score in zip(texts, self._score(names, windows, "windows"), strict=True):
            totals[index] += score.log_likelihood
        return totals

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """Greedy text up to a stop string (left out), end-of-text, ``max_gen_toks`` or the model's length."""
        texts = []
        with metered("generate", len(requests), "texts") as advance:
            for request in requests:
                context, options = request.args
                texts.append(self._generate(context, options, _name(request)))
                advance(1)
        return texts

    def _generate(self, context: str, options: dict[str, Any], name: str) -> str:
        if options.get("do_sample") or options.get("temperature"):
            raise UserError(f"{name}: asks for sampling, but generation is greedy; set do_sample: false")
        stops = options.get("until") or []
        stops = [stops] if isinstance(stops, str) else stops
        most = options.get("max_gen_toks", MAX_GENERATED)
        # Room for the text is made at the context's expense, but at most half of the model's length.
        ids = self._cut(self.tok_encode(context) or [self.eot_id], max(self.max_length - most, self.max_length // 2))
        written: list[int] = []
        text = ""
        for _, token in zip(range(most), self.scorer.greedy(ids), strict=False):
            if token == self.eot_id:
                break
            written.append(token)
            text = self.tokenizer.decode(written, skip_special_tokens=False)
            ends = [text.index(stop) for stop in stops if stop and stop in text]
            if ends:
                return text[: min(ends)]
        return text

    def _encode_pairs(self, texts: list[tuple[str, str]]) -> Iterator[Pair]:
        """Ids of contexts and continuations; a text that several requests share is encoded once."""
        split = [_move_spaces(*pair) for pair in texts]
        strings = dict.fromkeys(text for context, rest in split for text in (context, context + rest) if rest)
        encoded = dict(zip(strings, self.tokenizer.encode_batch(list(strings), add_special_tokens=False), strict=True))
        for context, rest in split:
            if not rest:
                yield [self.eot_id], []
                continue
            context_ids = encoded[context].ids
            rest_ids = encoded[context + rest].ids[len(context_ids) :]
            # Where a token straddles the border so that nothing is left, the parts are encoded apart.
            yield context_ids or [self.eot_id], rest_ids or self.tok_encode(rest)

    def _score(self, names: list[str], pairs: Iterable[Pair], unit: str) -> list[Score]:
        asked: dict[int, Request] = {}
        for index, (context, continuation) in enumerate(pairs):
            if len(continuation) > self.max_length:
                raise UserError(
                    f"{names[index]}: its continuation has {len(continuation)} tokens, but the model reads at most "
                    f"{self.max_length} (budget.seq_len); leave the task out or train with longer sequences"
                )
            if continuation:
                kept = self._cut(context, self.max_length + 1 - len(continuation))
                asked[index] = Request(tuple(kept), tuple(continuation))
        started = time.monotonic()
        with metered("score", len(asked), unit) as advance:
            scores = dict(zip(asked, self.scorer.score(list(asked.values()), advance), strict=True))
        self.scored += len(asked)
        self.scoring_seconds += time.monotonic() - started
        return [scores.get(index, EMPTY) for index in range(len(names))]

    def _cut(self, context: Sequence[int], room: int) -> Sequence[int]:
        if len(context) <= room:
            return context
        self.truncated += 1
        return context[-room:]


def _move_spaces(context: str, continuation: str) -> tuple[str, str]:
    """Spaces at the end of a context belong to the word after it."""
    kept = context.rstrip()
    return kept, context[len(kept) :] + continuation


def _name(request: Instance) -> str:
    return f"{request.task_name} item {request.doc_id}, choice {request.idx}"


def _shorten(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")
