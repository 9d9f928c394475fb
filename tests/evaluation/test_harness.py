import math

import numpy as np
import pytest
import torch
from datasets import Dataset
from lm_eval.api.instance import Instance
from lm_eval.tasks import TaskManager

from lexmem.evaluation.harness import HarnessLM
from lexmem.evaluation.scorer import DecoderScorer
from lexmem.evaluation.suite import score_tasks
from lexmem.evaluation.tasks import LoadedTasks, LocalTask
from lexmem.spec.errors import UserError

MAX_LEN = 24
LONG = " ".join(["The ship sailed over the sea"] * 20)


@pytest.fixture
def eot_id(tokenizer):
    return tokenizer.get_vocab_size() - 1


@pytest.fixture
def lm(decoder, tokenizer, eot_id):
    return HarnessLM(DecoderScorer(decoder, MAX_LEN, 512), tokenizer, eot_id)


def ask(kind, *arguments):
    return [Instance(kind, {}, args, idx=0, metadata=("sea", number, 1)) for number, args in enumerate(arguments)]


def log_p(decoder, context: list[int], continuation: list[int]) -> float:
    with torch.no_grad():
        rows = decoder(torch.tensor([context + continuation]))[0][0].double().log_softmax(-1)
    return sum(float(rows[len(context) - 1 + i, token]) for i, token in enumerate(continuation))


def test_a_continuation_without_text_is_certain(lm):
    assert lm.loglikelihood(ask("loglikelihood", ("The ship", ""), ("", ""))) == [(0.0, True), (0.0, True)]
    assert lm._loglikelihood_tokens([(("The ship", ""), [1, 2], [])]) == [(0.0, True)]


@pytest.mark.parametrize("context", ["", "  ", "\n"])
def test_a_context_without_text_becomes_end_of_text(lm, decoder, eot_id, context):
    ((score, _),) = lm.loglikelihood(ask("loglikelihood", (context, " ship")))
    assert score == pytest.approx(log_p(decoder, [eot_id], lm.tok_encode(context + " ship")), rel=1e-5)


def test_a_trailing_space_moves_to_the_continuation(lm, decoder):
    apart, moved = lm.loglikelihood(ask("loglikelihood", ("The ship", " sailed"), ("The ship ", "sailed")))
    assert apart == moved
    assert apart[0] == pytest.approx(log_p(decoder, lm.tok_encode("The ship"), lm.tok_encode(" sailed")), rel=1e-5)


def test_the_literal_end_of_text_is_plain_text(lm, eot_id):
    assert eot_id not in lm.tok_encode("<|endoftext|>")


def test_a_token_over_the_border_leaves_the_parts_apart(lm, decoder):
    context, continuation = "shi", "p"
    assert len(lm.tok_encode(context + continuation)) <= len(lm.tok_encode(context))
    ((score, _),) = lm.loglikelihood(ask("loglikelihood", (context, continuation)))
    assert score == pytest.approx(log_p(decoder, lm.tok_encode(context), lm.tok_encode(continuation)), rel=1e-5)


def test_only_what_is_longer_than_max_len_plus_one_is_cut(lm, decoder):
    ids = lm.tok_encode(LONG)
    fits, cut = ids[: MAX_LEN + 1], ids[: MAX_LEN + 2]
    ((score, _),) = lm._loglikelihood_tokens([(("a", "b"), fits[:-3], fits[-3:])])
    assert lm.truncated == 0
    assert score == pytest.approx(log_p(decoder, fits[:-3], fits[-3:]), rel=1e-5)
    ((score, _),) = lm._loglikelihood_tokens([(("a", "b"), cut[:-3], cut[-3:])])
    assert lm.truncated == 1
    assert score == pytest.approx(log_p(decoder, cut[1:-3], cut[-3:]), rel=1e-5)


def test_a_continuation_of_max_len_keeps_one_id_of_context(lm, decoder):
    ids = lm.tok_encode(LONG)[: MAX_LEN + 5]
    ((score, _),) = lm._loglikelihood_tokens([(("a", "b"), ids[:5], ids[5:])])
    assert score == pytest.approx(log_p(decoder, ids[4:5], ids[5:]), rel=1e-5)


def test_a_continuation_longer_than_max_len_names_the_item(lm):
    with pytest.raises(UserError, match=r"sea item 1, choice 0: its continuation has \d+ tokens.*at most 24"):
        lm.loglikelihood(ask("loglikelihood", ("The", " ship"), ("The", " " + LONG)))
    with pytest.raises(UserError, match="continuation 'The ship sailed"):
        lm._loglikelihood_tokens([(("a", LONG), [1], lm.tok_encode(LONG))])


def test_duplicates_and_shared_contexts_keep_their_order(lm):
    pairs = [(c, a) for c in ("The sea", "The ship", "A sailor") for a in (" sang", " sailed over the sea", " sang")]
    pairs += pairs[::-1]
    together = lm.loglikelihood(ask("loglikelihood", *pairs))
    alone = [lm.loglikelihood(ask("loglikelihood", pair))[0] for pair in pairs]
    np.testing.assert_allclose([a for a, _ in together], [a for a, _ in alone], rtol=1e-5)
    assert [b for _, b in together] == [b for _, b in alone]
    assert len({round(a, 6) for a, _ in together}) == 6


def test_rolling_scores_each_token_once(lm, decoder, eot_id):
    for text in ("The ship", LONG, ""):
        (total,) = lm.loglikelihood_rolling(ask("loglikelihood_rolling", (text,)))
        ids = lm.tok_encode(text)
        expected = 0.0
        for start in range(0, len(ids), MAX_LEN):
            end = min(start + MAX_LEN, len(ids))
            # Windows after the first keep as much context as fits before their last target.
            first = max(0, end - MAX_LEN - 1)
            context = ids[first:start] if start else [eot_id]
            expected += log_p(decoder, context, ids[start:end])
        assert total == pytest.approx(expected, rel=1e-5)


def test_generation_is_greedy_and_ends_at_a_stop(lm, decoder, tokenizer):
    context = lm.tok_encode("The ship")
    written = []
    for _ in range(8):
        with torch.no_grad():
            written.append(int(decoder(torch.tensor([context + written]))[0][0, -1].argmax()))
    text = tokenizer.decode(written)
    (free,) = lm.generate_until(ask("generate_until", ("The ship", {"max_gen_toks": 8})))
    assert free == text
    stop = text[3:5]
    (stopped,) = lm.generate_until(ask("generate_until", ("The ship", {"until": [stop], "max_gen_toks": 8})))
    assert stopped == text[: text.index(stop)]


def test_generation_ends_at_end_of_text(decoder, tokenizer, lm):
    (first,) = lm.generate_until(ask("generate_until", ("The ship", {"max_gen_toks": 1})))
    ends = HarnessLM(lm.scorer, tokenizer, next(lm.scorer.greedy(lm.tok_encode("The ship"))))
    assert first and ends.generate_until(ask("generate_until", ("The ship", {"max_gen_toks": 4}))) == [""]


def test_generation_cuts_a_long_context_and_refuses_sampling(lm):
    (text,) = lm.generate_until(ask("generate_until", (LONG, {"max_gen_toks": 4})))
    assert text and lm.truncated == 1
    with pytest.raises(UserError, match="sampling"):
        lm.generate_until(ask("generate_until", ("The", {"do_sample": True})))


@pytest.fixture
def tasks():
    """A multiple-choice and a rolling task."""
    items = [
        {"question": f"The {noun} sailed over the", "choices": [" sea", " shore", " sailors sang"], "answer": i % 3}
        for i, noun in enumerate(["ship", "sailor", "singer", "sea", "shore", "ship", "sailor"])
    ]
    items = Dataset.from_list(items)
    choice = {
        "task": "pick",
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{question}}",
        "doc_to_choice": "{{choices}}",
        "doc_to_target": "{{answer}}",
        "target_delimiter": "",
        "metric_list": [{"metric": m, "aggregation": "mean", "higher_is_better": True} for m in ("acc", "acc_norm")],
    }
    rolling = {
        "task": "roll",
        "test_split": "test",
        "output_type": "loglikelihood_rolling",
        "doc_to_text": "",
        "doc_to_target": "{{question}}",
        "metric_list": [{"metric": "word_perplexity"}, {"metric": "bits_per_byte"}],
    }
    return LoadedTasks([LocalTask(choice, items), LocalTask(rolling, items)], TaskManager(include_defaults=False))


def test_equals_the_harness_of_transformers(lm, decoder, tokenizer, tasks, eot_id):
    from lm_eval.models.huggingface import HFLM
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    model = decoder.params
    config = LlamaConfig(
        vocab_size=decoder.vocab_size,
        hidden_size=model.width,
        intermediate_size=model.ffn_width,
        num_hidden_layers=model.layers,
        num_attention_heads=model.heads,
        num_key_value_heads=model.kv_heads,
        max_position_embeddings=MAX_LEN,
        rms_norm_eps=model.norm_eps,
        rope_theta=model.rope_theta,
        tie_word_embeddings=True,
        bos_token_id=eot_id,
        eos_token_id=eot_id,
    )
    names = [
        ("blocks.", "model.layers."),
        ("attention_norm", "input_layernorm"),
        ("ffn_norm", "post_attention_layernorm"),
        ("attention.query", "self_attn.q_proj"),
        ("attention.key", "self_attn.k_proj"),
        ("attention.value", "self_attn.v_proj"),
        ("attention.output", "self_attn.o_proj"),
        ("ffn.gate", "mlp.gate_proj"),
        ("ffn.up", "mlp.up_proj"),
        ("ffn.down", "mlp.down_proj"),
        ("embedding.", "model.embed_tokens."),
    ]
    weights = {}
    for name, value in decoder.state_dict().items():
        for ours, theirs in names:
            name = name.replace(ours, theirs)
        weights["model.norm.weight" if name == "norm.weight" else name] = value
    llama = LlamaForCausalLM(config).eval()
    loaded = llama.load_state_dict(weights, strict=False)
    assert not loaded.unexpected_keys and loaded.missing_keys in ([], ["lm_head.weight"])
    llama.tie_weights()
    end = tokenizer.id_to_token(eot_id)
    wrapped = PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=end, eos_token=end, pad_token=end)
    peer = HFLM(pretrained=llama, tokenizer=wrapped, max_length=MAX_LEN, batch_size=4)

    pairs = [(c, a) for c in ("", "The sea ", LONG, "A sailor who") for a in (" sang", " sailed over the", ";")]
    ours = lm.loglikelihood(ask("loglikelihood", *pairs))
    theirs = peer.loglikelihood(ask("loglikelihood", *pairs), disable_tqdm=True)
    np.testing.assert_allclose([a for a, _ in ours], [a for a, _ in theirs], rtol=1e-5)
    assert [b for _, b in ours] == [b for _, b in theirs]
    assert lm.truncated == 3

    ours, theirs = (score_tasks(model, tasks, limit=None) for model in (lm, peer))
    assert ours["metric"].tolist() == ["acc", "acc_norm", "word_perplexity", "bits_per_byte"]
    np.testing.assert_allclose(ours["value"].astype(float), theirs["value"].astype(float), rtol=1e-5)


def test_task_frame(lm, tasks):
    frame = score_tasks(lm, tasks, limit=5).set_index(["task", "metric"])
    accuracy = frame.loc[("pick", "acc")]
    assert accuracy["n"] == 5
    p = accuracy["value"]
    assert accuracy["stderr"] == pytest.approx(math.sqrt(p * (1 - p) / 4))
    assert frame.loc[("roll", "word_perplexity")].isna()["stderr"]
