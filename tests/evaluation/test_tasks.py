"""Every task loads from a folder of items, asks lm-eval's own questions and knows its own right answers."""

import json
import lzma
import tarfile

import pytest
from lm_eval.api.model import LM
from lm_eval.evaluator import simple_evaluate

from lexmem.evaluation import cloze
from lexmem.evaluation.build import Entry, Leaf, build_entry
from lexmem.evaluation.catalogue import BUILTINS, blimp_paradigms, builtin_definition, check_names
from lexmem.evaluation.contamination import contaminated
from lexmem.evaluation.store import evidence, write_tasks
from lexmem.evaluation.tasks import load_tasks
from lexmem.spec.errors import UserError
from lexmem.spec.files import read_json

LETTERS = {"text": ["wood", "iron", "silk", "lead"], "label": ["A", "B", "C", "D"]}

# For every task: an item as its source has it, the prompt, the choices, and the right one's index.
EXPECTED = {
    "arc_easy": (
        {"id": "1", "question": "What floats?", "choices": LETTERS, "answerKey": "A"},
        "Question: What floats?\nAnswer:",
        ["wood", "iron", "silk", "lead"],
        0,
    ),
    "arc_challenge": (
        {"id": "2", "question": "What rusts?", "choices": LETTERS, "answerKey": "B"},
        "Question: What rusts?\nAnswer:",
        ["wood", "iron", "silk", "lead"],
        1,
    ),
    "hellaswag": (
        {
            "ind": 3,
            "activity_label": "Sailing",
            "ctx_a": "A boat leaves.",
            "ctx_b": "the crew",
            "ctx": "A boat leaves. the crew",
            "endings": ["waves.", "sings [title] loudly.", "is a boat.", "flies."],
            "label": "1",
        },
        "Sailing: A boat leaves. The crew",
        ["waves.", "sings. loudly.", "is a boat.", "flies."],
        1,
    ),
    "piqa": (
        {"goal": "To open a tin", "sol1": "use a spoon", "sol2": "use an opener", "label": 1},
        "Question: To open a tin\nAnswer:",
        ["use a spoon", "use an opener"],
        1,
    ),
    "winogrande": (
        {"sentence": "Ann thanked Eve as _ had helped.", "option1": "Ann", "option2": "Eve", "answer": "2"},
        1,  # the choices are contexts, and what is scored is the rest
        ["Ann thanked Eve as Ann", "Ann thanked Eve as Eve"],
        "had helped.",
    ),
    "openbookqa": (
        {"id": "4", "question_stem": "Magnets attract", "choices": LETTERS, "answerKey": "B"},
        "Magnets attract",
        ["wood", "iron", "silk", "lead"],
        1,
    ),
    "boolq": (
        {"question": "do fish swim", "answer": True, "passage": "Fish live in water and swim.", "label": 1},
        "Fish live in water and swim.\nQuestion: do fish swim?\nAnswer:",
        ["no", "yes"],
        1,
    ),
    "sciq": (
        {
            "question": "What is wet?",
            "distractor1": "fire",
            "distractor2": "sand",
            "distractor3": "air",
            "correct_answer": "water",
            "support": " Water is wet.",
        },
        "Water is wet.\nQuestion: What is wet?\nAnswer:",
        ["fire", "sand", "air", "water"],
        3,
    ),
}


class Longest(LM):
    """A model that prefers the longest continuation, and says what it was asked."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def loglikelihood(self, requests):
        self.asked += [request.args for request in requests]
        return [(float(len(request.args[1])), True) for request in requests]

    def loglikelihood_rolling(self, requests):
        return [-1.0 for _ in requests]

    def generate_until(self, requests):
        raise NotImplementedError


def store(folder, entries):
    counts = contaminated(evidence(entries), [])
    return write_tasks(folder, entries, counts, counts)


def evaluate(names, folder, limit=None):
    loaded = load_tasks(names, folder, limit)
    model = Longest()
    scored = simple_evaluate(model, tasks=loaded.tasks, task_manager=loaded.manager, bootstrap_iters=0)
    return scored, model


def sentence_items(rights):
    """Pairs in which the longest choice is right where ``rights`` says so."""
    return [{"context": "He said", "choices": ["a.", "some."], "label": int(right)} for right in rights]


@pytest.fixture(scope="module")
def eight(tmp_path_factory):
    """A folder with the eight tasks, of one item each."""
    folder = tmp_path_factory.mktemp("items") / "tasks"
    entries = {}
    for name, (item, *_) in EXPECTED.items():
        task = BUILTINS[name]
        entries[name] = Entry(task.licence, {"package": "p"}, {name: Leaf([item], task.definition, task.evidence)})
    store(folder, entries)
    return folder


@pytest.mark.parametrize("name", EXPECTED)
def test_prompt_choices_and_answer(eight, name):
    _, prompt, choices, answer = EXPECTED[name]
    (task,) = load_tasks([name], eight).tasks
    document = task.eval_docs[0]
    assert task.task_name == name
    assert task.doc_to_text(document) == prompt
    assert task.doc_to_choice(document) == choices
    assert task.doc_to_target(document) == answer


def test_all_eight_are_scored_at_once(eight):
    scored, model = evaluate(list(EXPECTED), eight)
    assert list(scored["results"]) == list(EXPECTED)
    assert all(scored["results"][name]["sample_len"] == 1 for name in EXPECTED)
    assert scored["results"]["piqa"]["acc,none"] == 1.0
    assert ("Question: What floats?\nAnswer:", " wood") in model.asked
    assert ("Ann thanked Eve as Eve", " had helped.") in model.asked


def test_evidence_is_the_question_with_its_right_answer():
    texts = {name: BUILTINS[name].evidence(item) for name, (item, *_) in EXPECTED.items()}
    assert texts == {
        "arc_easy": "What floats? wood",
        "arc_challenge": "What rusts? iron",
        "hellaswag": "A boat leaves. the crew sings [title] loudly.",
        "piqa": "To open a tin use an opener",
        "winogrande": "Ann thanked Eve as Eve had helped.",
        "openbookqa": "Magnets attract iron",
        "boolq": "Fish live in water and swim. do fish swim",
        "sciq": " Water is wet. What is wet? water",
    }


def test_groups_of_ours_have_leaves_and_a_mean(tmp_path):
    leaves = {
        "cloze_b1": Leaf(sentence_items([True, False]), None, cloze.evidence),
        "cloze_b2": Leaf([], None, cloze.evidence, "no words of this band"),
        "cloze_b3": Leaf(sentence_items([True] * 6), None, cloze.evidence),
    }
    halves = {
        "homophones_common": Leaf(sentence_items([True] * 3), None, cloze.evidence),
        "homophones_rare": Leaf(sentence_items([False]), None, cloze.evidence),
    }
    listing = store(
        tmp_path / "tasks",
        {
            "cloze": Entry("own", {}, leaves, template="cloze"),
            "homophones": Entry("own", {}, halves, template="homophones"),
        },
    )["tasks"]
    assert listing == read_json(tmp_path / "tasks" / "tasks.json")["tasks"]
    assert listing["cloze"]["notes"] == {"cloze_b2": "no words of this band"}
    assert list(listing["cloze"]["leaves"]) == ["cloze_b1", "cloze_b3"]

    scored, model = evaluate(["cloze", "homophones"], tmp_path / "tasks")
    acc = {name: result["acc,none"] for name, result in scored["results"].items()}
    acc |= {name: result["acc,none"] for name, result in scored["groups"].items()}
    assert acc == {
        "cloze": 0.75,  # the mean over bands
        "cloze_b1": 0.5,
        "cloze_b3": 1.0,
        "homophones": 0.5,  # the mean of the halves
        "homophones_common": 1.0,
        "homophones_rare": 0.0,
    }
    assert set(model.asked) == {("He said", " a."), ("He said", " some.")}


def test_a_group_without_items_is_left_out(tmp_path):
    empty = Entry("own", {}, {"cloze_b1": Leaf([], None, cloze.evidence, "none")}, template="cloze")
    store(tmp_path / "tasks", {"cloze": empty})
    assert load_tasks(["cloze"], tmp_path / "tasks").tasks == []


def test_limit_reads_the_first_items(tmp_path):
    task = BUILTINS["lambada_openai"]
    items = [{"text": f"word number {i}"} for i in range(5)]
    store(
        tmp_path / "tasks", {"lambada_openai": Entry("MIT", {}, {"lambada_openai": Leaf(items, task.definition, str)})}
    )
    (some,) = load_tasks(["lambada_openai"], tmp_path / "tasks", limit=2).tasks
    (every,) = load_tasks(["lambada_openai"], tmp_path / "tasks").tasks
    assert list(some.eval_docs) == items[:2]
    assert list(every.eval_docs) == items


def test_tasks_of_a_local_copy(tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    with lzma.open(copy / "lambada_openai_test.jsonl.xz", "wt", encoding="utf-8") as file:
        file.write(json.dumps({"text": "They walked to the old house"}) + "\n")
    (copy / "wikitext").mkdir()
    page = {"page": "A page , with ten words , no more words"}
    (copy / "wikitext" / "test.jsonl").write_text(json.dumps(page) + "\n", encoding="utf-8")
    pair = {"sentence_good": "Cats sleep.", "sentence_bad": "Cats sleeps."}
    for name in blimp_paradigms():
        (tmp_path / f"{name}.jsonl").write_text(json.dumps(pair) + "\n", encoding="utf-8")
    with tarfile.open(copy / "blimp.tar.xz", "w:xz") as tar:
        for name in blimp_paradigms():
            tar.add(tmp_path / f"{name}.jsonl", f"blimp/{name}.jsonl")

    names = ["lambada_openai", "wikitext", "blimp"]
    store(tmp_path / "tasks", {name: build_entry(name, None, copy) for name in names})
    scored, model = evaluate(names, tmp_path / "tasks")
    assert ("They walked to the old", " house") in model.asked
    assert scored["results"]["lambada_openai"]["acc,none"] == 1.0
    assert scored["results"]["wikitext"]["word_perplexity,none"] == pytest.approx(2.71828 ** (1 / 10), rel=1e-4)
    assert len(blimp_paradigms()) == 67
    assert scored["groups"]["blimp"]["acc,none"] == 0.0  # the bad sentences are the longer ones
    assert scored["results"]["blimp_anaphor_gender_agreement"]["sample_len"] == 1


def test_a_local_copy_of_loose_files(tmp_path):
    (tmp_path / "blimp").mkdir()
    for name in blimp_paradigms():
        (tmp_path / "blimp" / f"{name}.jsonl").write_text('{"sentence_good": "a", "sentence_bad": "b"}\n')
    assert len(build_entry("blimp", None, tmp_path).leaves) == 67
    (tmp_path / "blimp" / "wh_island.jsonl").unlink()
    with pytest.raises(UserError, match="lacks 1 of 67 paradigms, first 'wh_island'"):
        build_entry("blimp", None, tmp_path)


def test_a_task_to_be_had_from_nowhere(tmp_path, monkeypatch):
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    with pytest.raises(UserError, match=r"'wikitext': .* cannot be had from the hub .* tasks\.data_dir") as error:
        build_entry("wikitext", None, tmp_path)
    assert "\n" not in str(error.value)


def test_mistakes_are_one_line(tmp_path, eight):
    with pytest.raises(UserError, match=r"'hellaswog' is not a task; .*did you mean 'hellaswag'"):
        check_names(["hellaswog"])
    with pytest.raises(UserError, match="run the tasks stage first"):
        load_tasks(["piqa"], tmp_path)
    with pytest.raises(UserError, match=r"'cloze' is not in .*tasks\.json; allowed: arc_challenge"):
        load_tasks(["cloze"], eight)
    with pytest.raises(UserError, match=r"tasks\.data_dir = '.*nowhere': no such folder"):
        build_entry("wikitext", None, tmp_path / "nowhere")
    (tmp_path / "wikitext.jsonl").write_text("page\n")
    with pytest.raises(UserError, match=r"wikitext\.jsonl: not JSON Lines"):
        build_entry("wikitext", None, tmp_path)


def test_definitions_are_in_lm_eval():
    for name, task in BUILTINS.items():
        assert f"task: {name}" in builtin_definition(task.definition).read_text()
