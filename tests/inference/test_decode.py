import itertools

import pytest
import torch
from tiny_runs import EOT, VOCAB

from lexmem.data.tokenizer import END_OF_TEXT
from lexmem.inference.decode import decode, generate, next_logits
from lexmem.inference.sampling import GREEDY, Sampling
from lexmem.spec.errors import UserError

NOBODY = -1  # an end-of-text id that no model makes
DRAWN = Sampling(temperature=1.0, top_k=0, top_p=1.0, seed=0)


def prompts_of(*lengths: int) -> list[list[int]]:
    generator = torch.Generator().manual_seed(3)
    return [torch.randint(VOCAB - 1, (length,), generator=generator).tolist() for length in lengths]


def sequences(steps) -> list[list[int]]:
    """The tokens made for each prompt."""
    return [[token for token in made if token is not None] for made in zip(*steps, strict=True)]


@torch.no_grad()
def test_prefill_and_steps_give_the_logits_of_a_full_pass(decoder):
    ids = torch.tensor(prompts_of(30, 30))
    full, _ = decoder(ids)
    cache = decoder.new_cache(2, 30)
    got = [next_logits(decoder, ids[:, :20], cache)]
    got += [next_logits(decoder, ids[:, t : t + 1], cache) for t in range(20, 30)]
    torch.testing.assert_close(torch.stack(got, dim=1), full[:, 19:], atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_greedy_tokens_are_those_of_full_passes(decoder):
    (prompt,) = prompts_of(7)
    (made,) = sequences(decode(decoder, [prompt], 12, NOBODY, GREEDY))
    ids = list(prompt)
    for _ in range(12):
        ids.append(int(decoder(torch.tensor([ids]))[0][0, -1].argmax()))
    assert made == ids[7:]


def test_prompts_of_different_lengths_are_continued_as_if_alone(decoder):
    prompts = prompts_of(1, 9, 4, 4)
    together = sequences(decode(decoder, prompts, 6, NOBODY, GREEDY))
    alone = [sequences(decode(decoder, [prompt], 6, NOBODY, GREEDY))[0] for prompt in prompts]
    assert together == alone
    assert all(len(made) == 6 for made in together)


def test_each_sequence_stops_at_its_end_of_text(decoder):
    prompts = prompts_of(5, 5, 8)
    free = sequences(decode(decoder, prompts, 10, NOBODY, GREEDY))
    end = free[0][3]
    stopped = sequences(decode(decoder, prompts, 10, end, GREEDY))
    for made, whole in zip(stopped, free, strict=True):
        assert made == (whole[: whole.index(end) + 1] if end in whole else whole)
    assert len(stopped[0]) <= 4


def test_draws_follow_their_seed(decoder):
    def made(seed):
        return sequences(decode(decoder, prompts_of(3, 3), 8, NOBODY, Sampling(1.0, 0, 1.0, seed)))

    assert made(1) == made(1)
    assert made(1) != made(2)
    assert made(1)[0] != made(1)[1]


def test_one_candidate_left_is_the_greedy_one(decoder):
    prompts = prompts_of(6, 2)
    greedy = sequences(decode(decoder, prompts, 10, NOBODY, GREEDY))
    for sampling in (Sampling(1.0, 1, 1.0, 5), Sampling(1.0, 0, 1e-9, 5), Sampling(1e-30, 0, 1.0, 5)):
        assert sequences(decode(decoder, prompts, 10, NOBODY, sampling)) == greedy


def test_no_tokens_asked_for_gives_none(decoder):
    assert list(decode(decoder, prompts_of(3), 0, EOT, GREEDY)) == []


def test_a_prompt_without_tokens_is_refused(decoder):
    with pytest.raises(UserError, match="no tokens"):
        next(decode(decoder, [[1], []], 3, EOT, GREEDY))


def test_generate_streams_a_document_up_to_its_end(run):
    assert run.tokenizer.token_to_id(END_OF_TEXT) == EOT
    (free,) = sequences(decode(run.model, [[EOT]], 12, NOBODY, DRAWN))
    assert list(generate(run, [], 12, DRAWN)) == list(generate(run, [EOT], 12, DRAWN)) == free
    with torch.no_grad():
        run.model.embedding.weight[EOT] *= 8.0  # soon the most likely by far, or the least
    cut = list(generate(run, [], 12, DRAWN))
    (whole,) = sequences(decode(run.model, [[EOT]], 12, EOT, DRAWN))
    assert whole == [*cut, EOT]
    assert list(itertools.islice(generate(run, [1, 2], 12, DRAWN), 1)) == list(generate(run, [1, 2], 1, DRAWN))
