"""Grouping entries and cutting long texts; duplicates."""

import pytest

from lexmem.data.dedupe import drop_duplicates
from lexmem.data.sources.passages import grouped, parts


def _words(start, count):
    return " ".join(f"word{number}" for number in range(start, start + count))


def test_entries_are_grouped_up_to_the_target():
    assert list(grouped(["aaaa", "bbbb", "cc", "d"], target=6)) == ["aaaa\n\nbbbb", "cc\n\nd"]


@pytest.mark.parametrize("text", ["", "\ufeffone\r\n\r\ntwo\x00", "e\u0301", " kept \n\n\n as it is \n"])
def test_a_text_within_the_limit_is_untouched(text):
    assert parts(text, limit=100) == [text]


def test_long_text_is_cut_at_paragraphs_into_equal_parts():
    text = "\n\n".join(f"{letter * 30}" for letter in "abcdef")
    assert parts(text, limit=100) == [
        f"{'a' * 30}\n\n{'b' * 30}\n\n{'c' * 30}",
        f"{'d' * 30}\n\n{'e' * 30}\n\n{'f' * 30}",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "\n\n".join(_words(start, 20) for start in range(0, 400, 20)),  # paragraphs
        "\r\n".join(_words(start, 20) for start in range(0, 400, 20)),  # lines
        ". ".join(_words(start, 20) for start in range(0, 400, 20)),  # sentences
        _words(0, 400),  # words only
        "short\n\n" + _words(0, 300) + "\n\nshort again\n\n" + "x" * 999,  # all at once
        "é€𝄞" * 300,  # no border at all, characters of 2, 3 and 4 bytes
    ],
)
def test_parts_keep_every_character_but_white_space_and_stay_within_the_limit(text):
    found = parts(text, limit=300)
    assert len(found) > 1
    assert all(0 < len(part.encode()) <= 300 for part in found)
    assert "".join("".join(found).split()) == "".join(text.split())


def test_equal_paragraphs_are_dropped_from_later_documents():
    same = _words(0, 13)
    unique = drop_duplicates([f"first\n\n{same}\n\nlast", f"second\r\n\r\n{same.upper()}!\r\n\r\nend", "third"])
    assert unique.texts == {0: f"first\n\n{same}\n\nlast", 1: "second\r\n\r\nend", 2: "third"}
    assert unique.paragraphs_dropped.tolist() == [0, 1, 0]


def test_short_paragraphs_may_repeat_but_equal_documents_may_not():
    unique = drop_duplicates(["Yes.\n\nNo.", "No.\n\nYes.", "Yes.\n\nNo."])
    assert sorted(unique.texts) == [0, 1]


def test_near_duplicates_are_dropped_by_the_share_of_13_grams():
    original = _words(0, 100)
    near = _words(0, 80) + " " + _words(500, 20)  # 68 of 88 13-grams are the original's
    far = _words(60, 40) + " " + _words(900, 60)  # 28 of 88
    assert sorted(drop_duplicates([original, near, far]).texts) == [0, 2]


def test_repetition_inside_one_document_is_no_duplicate():
    assert sorted(drop_duplicates(["again and " * 60]).texts) == [0]


def test_no_documents_and_documents_without_words():
    assert drop_duplicates([]).texts == {}
    assert drop_duplicates(["...", "?!"]).texts == {0: "...", 1: "?!"}
