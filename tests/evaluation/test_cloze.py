"""Cloze items on a corpus made so that the right answers are known."""

from collections import Counter

import pytest

from lexmem.evaluation.cloze import BANDS, band_of, cloze_items, ending, evidence, word_places
from lexmem.evaluation.texts import is_prose, lower_case_counts, sentences

RARE = ["walking", "talking", "singing", "reading", "farming"]
TEXTS = [f"The first sentence tells of the town. That year they were {word} near the old town." for word in RARE] + [
    "Title without an end\n\nshort. NAMES AND CAPITALS ALL OVER THE LINE HERE. Numbers 12 34 56 78 in 9 0 1 places."
]
COUNTS = Counter(dict.fromkeys(RARE, 10) | dict.fromkeys(["old", "near", "day", "town"], 3))


def words_of(item):
    tail = item["choices"][item["label"]].removeprefix(item["word"])
    return [choice.removesuffix(tail) for choice in item["choices"]]


def test_every_right_answer_is_the_sentence_of_the_text():
    made = cloze_items(TEXTS, COUNTS, 5, seed=0)["cloze_b1"]
    assert made.note is None
    assert sorted(item["word"] for item in made.items) == sorted(RARE)
    for item in made.items:
        text = f"The first sentence tells of the town. That year they were {item['word']} near the old town."
        assert evidence(item) == text
        assert item["context"].endswith("That year they were")
        assert item["count"] == 10
        assert words_of(item)[item["label"]] == item["word"]
        assert len(set(words_of(item))) == 4 and set(words_of(item)) <= set(RARE)


def test_equal_seeds_give_equal_items_and_others_differ():
    assert cloze_items(TEXTS, COUNTS, 5, seed=3) == cloze_items(TEXTS, COUNTS, 5, seed=3)
    assert cloze_items(TEXTS, COUNTS, 5, seed=3) != cloze_items(TEXTS, COUNTS, 5, seed=4)


def test_labels_are_spread_over_all_positions():
    texts = [f"He said that they were {RARE[i % 5]} near house {'x' * i} on that day." for i in range(100)]
    made = cloze_items(texts, COUNTS, 80, seed=0)["cloze_b1"]
    places = Counter(item["label"] for item in made.items)
    assert len(made.items) == 80 and min(places[i] for i in range(4)) >= 8


def test_words_take_turns():
    texts = [f"He said that they were walking in place {'x' * i} on that day." for i in range(50)] + TEXTS
    made = cloze_items(texts, COUNTS, 10, seed=0)["cloze_b1"]
    assert Counter(item["word"] for item in made.items) == {
        "walking": 6, "talking": 1, "singing": 1, "reading": 1, "farming": 1,
    }  # fmt: skip


def test_too_few_items_or_words_are_noted():
    made = cloze_items(TEXTS, COUNTS, 50, seed=0)
    assert len(made["cloze_b1"].items) == 5
    assert made["cloze_b1"].note == "5 of 50: the held-out text yields no more"
    assert made["cloze_b2"] == ([], "0 words of this band in the training prefix; 4 are needed")
    assert set(made) == set(BANDS)
    assert cloze_items([], Counter(), 5, seed=0)["cloze_b5"].items == []


def test_choices_are_of_the_band_end_alike_and_are_new_to_the_sentence():
    wrong = ["running", "sitting", "jumping"]
    other_band, other_end, much_longer = "seeing", "stone", "understanding"
    counts = Counter(dict.fromkeys(["walking", "old", *wrong], 10) | {other_band: 40, other_end: 10, much_longer: 10})
    counts |= Counter({f"filler{chr(97 + i // 26)}{chr(97 + i % 26)}": 10 for i in range(250)})  # no small band
    texts = ["The riding man was said to be walking near there."]
    (item,) = cloze_items(texts, counts | Counter({"riding": 10}), 1, seed=0)["cloze_b1"].items
    assert sorted(words_of(item)) == sorted(["walking", *wrong])


@pytest.mark.parametrize(("article", "fitting"), [("a", "ranking"), ("an", "asking")])
def test_an_article_does_not_give_the_answer_away(article, fitting):
    vowels, consonants = ["acting", "eating", "asking", "aiming"], ["sorting", "casting", "ranking", "melting"]
    counts = Counter(dict.fromkeys([*vowels, *consonants], 10))
    texts = [f"People said that it was {article} {fitting} of many things."]
    (item,) = cloze_items(texts, counts, 1, seed=0)["cloze_b1"].items
    assert sorted(words_of(item)) == sorted(vowels if article == "an" else consonants)


def test_bands_meet_without_a_gap():
    assert [band_of(c) for c in (4, 5, 30, 31, 150, 151, 1000, 1001, 10_000, 10_001, 10**9)] == [
        None, "cloze_b1", "cloze_b1", "cloze_b2", "cloze_b2", "cloze_b3", "cloze_b3",
        "cloze_b4", "cloze_b4", "cloze_b5", "cloze_b5",
    ]  # fmt: skip


def test_endings():
    words = ["walking", "nation", "king", "ring", "red", "quickly", "town", "notions"]
    assert [ending(word) for word in words] == ["ing", "tion", "", "", "", "ly", "", "s"]


def test_places_keep_whole_earlier_sentences_of_prose_only():
    text = "A plain start of it. See [note 3] here. It was said once by many people there."
    places = list(word_places([text]))
    assert places[0] == ("It was said", "once", " by many people there.")
    long = " ".join(["word"] * 25)
    text = f"This {long} end. That {long} end. It was said once by many people there."
    last = list(word_places([text]))[-1]
    assert last.before == f"That {long} end. It was said once by many" and last.word == "people"


def test_names_hyphens_and_abbreviations_are_not_words():
    counts = lower_case_counts(["The well-known Man don't say O'clock, man. x2 man's naïve men"])
    assert counts == {"don't": 1, "say": 1, "man": 1, "man's": 1, "men": 1}


def test_sentences_and_prose():
    assert sentences("One is\nhere. Two  are. three? \"Four!\" Five.") == [
        "One is here.", "Two are. three?", '"Four!" Five.',
    ]  # fmt: skip
    assert is_prose("This is a plain sentence, of words.", 5, 10)
    for bad in ("No end here at all", "this has no capital.", "It has [mark-up] in it.", "A B C D E F.", "Too short."):
        assert not is_prose(bad, 3, 10)
