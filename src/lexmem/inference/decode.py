"""Prefill and decode with a KV cache: one batch, prompts of any lengths, tokens as they are made."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from lexmem.data.tokenizer import END_OF_TEXT
from lexmem.inference.sampling import Sampling, choose
from lexmem.model.decoder import Cache, Decoder
from lexmem.model.run import Run
from lexmem.spec.errors import UserError


def next_logits(model: Decoder, ids_BT: Tensor, cache: Cache) -> Tensor:
    """Logits ``(B, V)`` after the last of ``ids_BT``, which continue what is in ``cache``."""
    hidden, _ = model.hidden(ids_BT, cache)
    return model.logits(hidden[:, -1])


@torch.inference_mode()
def decode(
    model: Decoder, prompts: Sequence[Sequence[int]], max_new_tokens: int, eot_id: int, sampling: Sampling
) -> Iterator[list[int | None]]:
    """Continue ``prompts`` side by side until each has ended or has ``max_new_tokens`` new tokens.

    All begin at position 0. The length that all prompts have is prefilled at once; a longer prompt is then fed a token
    a step while shorter ones are continued, so that no padding enters the model.

    Yields:
        A step's new id for every prompt; ``None`` where there is none: still in its prompt, or done. An end-of-text id
        is yielded as the last of its sequence.

    Raises:
        UserError: if a prompt is empty (give it the end-of-text id, after which a document begins).
    """
    if not all(prompts):
        raise UserError("a prompt has no tokens; begin a document with the end-of-text token")
    device = model.embedding.weight.device
    lengths = [len(prompt) for prompt in prompts]
    generator = torch.Generator(device).manual_seed(sampling.seed)
    cache = model.new_cache(len(prompts), max(lengths) + max_new_tokens)
    left = [max_new_tokens] * len(prompts)
    fed_BT = torch.tensor([prompt[: min(lengths)] for prompt in prompts], device=device)
    while any(left):
        chosen = choose(next_logits(model, fed_BT, cache), sampling, generator).tolist()
        made: list[int | None] = []
        for i, prompt in enumerate(prompts):
            if cache.length < lengths[i]:
                chosen[i] = prompt[cache.length]
                made.append(None)
            elif left[i]:
                left[i] = 0 if chosen[i] == eot_id else left[i] - 1
                made.append(chosen[i])
            else:
                made.append(None)
        yield made
        fed_BT = torch.tensor(chosen, device=device)[:, None]


def generate(run: Run, prompt_ids: Sequence[int], max_new_tokens: int, sampling: Sampling) -> Iterator[int]:
    """Ids that continue ``prompt_ids`` (none: a new document), up to the end of the text, which is left out."""
    eot_id = run.tokenizer.token_to_id(END_OF_TEXT)
    for (token,) in decode(run.model, [list(prompt_ids) or [eot_id]], max_new_tokens, eot_id, sampling):
        if token != eot_id:
            yield token
