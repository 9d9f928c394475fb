"""Contamination is exact on texts whose 13-grams are counted by hand."""

import re

import pytest

from lexmem.evaluation.contamination import CHUNK_BYTES, GRAM, Contamination, contaminated, gram_hashes

WORDS = [f"w{i}" for i in range(40)]


def text(first: int, last: int) -> str:
    return " ".join(WORDS[first:last])


@pytest.mark.parametrize(
    ("known", "contaminated_items"),
    [
        (26, 1),  # all 14 grams of the item's 26 words
        (20, 1),  # 8 of 14
        (19, 0),  # 7 of 14: half is not most
        (12, 0),  # no whole gram
    ],
)
def test_more_than_half_of_the_grams(known, contaminated_items):
    result = contaminated({"task": [text(0, 26)]}, [f"before {text(0, known)} after"])
    assert result == {"task": Contamination(items=1, short=0, contaminated=contaminated_items)}


def test_short_items_are_counted_apart():
    result = contaminated({"task": [text(0, GRAM - 1), text(0, GRAM), ""]}, [text(0, GRAM)])
    assert result["task"] == Contamination(items=3, short=2, contaminated=1)


def test_grams_do_not_cross_documents_nor_items():
    assert contaminated({"task": [text(0, 13)]}, [text(0, 7), text(7, 13)])["task"].contaminated == 0
    assert contaminated({"task": [text(0, 7), text(7, 13)]}, [text(0, 13)])["task"] == Contamination(2, 2, 0)


def test_case_and_punctuation_do_not_matter_but_order_does():
    item = "It was the best of times, it was the worst of times: the age of wisdom."
    assert contaminated({"task": [item]}, [item.upper().replace(",", " --")])["task"].contaminated == 1
    assert contaminated({"task": [item]}, [" ".join(reversed(item.split()))])["task"].contaminated == 0


def test_tasks_are_counted_apart_and_any_chunk_is_searched():
    texts = ["filler words " * (CHUNK_BYTES // 13 + 1), text(0, 20), "", text(20, 40)]
    result = contaminated({"one": [text(0, 13)], "two": [text(25, 40), text(10, 30)], "none": []}, texts)
    assert result == {"one": Contamination(1, 0, 1), "two": Contamination(2, 0, 1), "none": Contamination(0, 0, 0)}


def test_no_items_and_no_text():
    assert contaminated({}, ["a text"]) == {}
    assert contaminated({"task": [text(0, 13)]}, [])["task"] == Contamination(1, 0, 0)


def test_hashes_agree_with_a_plain_walk_over_words():
    texts = [text(0, 20), "caf\u00e9 na\u00efve " * 8, "x" * 200 + " " + text(3, 18), "one two"]
    hashes, owner = gram_hashes(texts)
    grams = []
    for i, one in enumerate(texts):
        words = re.findall(r"\w+", one.lower())
        grams += [(tuple(words[j : j + GRAM]), i) for j in range(len(words) - GRAM + 1)]
    assert owner.tolist() == [i for _, i in grams]
    names = [gram for gram, _ in grams]
    assert [[a == b for b in names] for a in names] == [[a == b for b in hashes] for a in hashes]
