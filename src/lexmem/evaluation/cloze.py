"""Banded cloze: which of four words stands in a held-out sentence, by how often the words occur in training.

The four words of an item are of one frequency band, end alike, are about as long, and start alike after "a" or "an";
what follows the word is scored with it, so that the rest of the sentence counts too. Words are written in lower case.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from math import log
from typing import Any, NamedTuple

from lexmem.evaluation.spelling import is_word
from lexmem.evaluation.texts import LOWER_WORD, is_prose, sentences

Item = dict[str, Any]

# Occurrences in the training prefix, both ends included.
BANDS = {
    "cloze_b1": (5, 30),
    "cloze_b2": (31, 150),
    "cloze_b3": (151, 1_000),
    "cloze_b4": (1_001, 10_000),
    "cloze_b5": (10_001, 10**18),
}
CHOICES = 4
SHORTEST, LONGEST = 8, 32  # words of a sentence
WINDOW = 48  # words of a sentence and what is kept of the text before it
WORDS_BEFORE = 3  # in the sentence, at least
FEW_TYPES = 200  # a band with fewer words (function words) need not match endings
NEAREST = 12  # words of about the same frequency among which the wrong choices are drawn
ENDINGS = (
    "ations", "ation", "ities", "iness", "ingly", "ments", "ment", "ness", "able", "ible", "less", "sion", "tion",
    "ance", "ence", "ings", "ism", "ist", "ity", "ous", "ive", "ful", "ing", "ers", "est", "ies", "ant", "ent", "ate",
    "ish", "ize", "ise", "ary", "ory", "ian", "al", "ed", "en", "er", "ic", "ly", "or", "y", "s", "e",
)  # fmt: skip


class Place(NamedTuple):
    """A word in a sentence: the text before it (with earlier sentences), and the rest after it."""

    before: str
    word: str
    after: str

    @property
    def sentence(self) -> str:
        """All of it: equal for the words of one sentence."""
        return f"{self.before} {self.word}{self.after}"


class Made(NamedTuple):
    """Items of a task and, where there are fewer than asked for, why."""

    items: list[Item]
    note: str | None


def cloze_items(texts: Iterable[str], counts: Counter[str], n: int, seed: int) -> dict[str, Made]:
    """Make up to ``n`` items a band.

    Args:
        texts: held-out documents.
        counts: occurrences of every lower-case word in the training prefix.
        n: items wanted a band.
        seed: of every draw.

    Returns:
        For each band its items: ``context``, ``choices`` (each with the rest of the sentence), ``label``, ``word`` and
        ``count``, its occurrences. Words of a band are taken in turn, so that common ones do not crowd out others.
    """
    places: dict[str, dict[str, list[Place]]] = {band: defaultdict(list) for band in BANDS}
    for place in word_places(texts):
        if (band := band_of(counts[place.word])) is not None and is_plain(place.word):
            places[band][place.word].append(place)
    types: dict[str, list[str]] = {band: [] for band in BANDS}
    for word in sorted(counts):
        if (band := band_of(counts[word])) is not None and is_plain(word):
            types[band].append(word)
    return {band: _band_items(places[band], types[band], counts, n, f"{seed} {band}") for band in BANDS}


def band_of(count: int) -> str | None:
    """The band of a word that occurs ``count`` times, or None for one rarer than all bands."""
    return next((band for band, (low, high) in BANDS.items() if low <= count <= high), None)


def is_plain(word: str) -> bool:
    """Whether a word can be a choice: letters only, with a vowel, and no common abbreviation."""
    return word.isalpha() and any(c in "aeiouy" for c in word) and is_word(word)


def ending(word: str) -> str:
    """The longest known suffix that leaves two letters at least, or ``""``."""
    return next((suffix for suffix in ENDINGS if word.endswith(suffix) and len(word) >= len(suffix) + 2), "")


def word_places(texts: Iterable[str]) -> Iterator[Place]:
    """Every lower-case word inside the prose sentences of some texts, each with what stands around it.

    Before it come ``WORDS_BEFORE`` words of its sentence at least, and as many whole sentences of the same document as
    fit in ``WINDOW`` words.
    """
    for text in texts:
        earlier: list[str] = []
        for sentence in sentences(text):
            if not is_prose(sentence, 1, LONGEST):
                earlier = []
                continue
            n_words = len(sentence.split())
            if n_words >= SHORTEST:
                context = _fitting(earlier, WINDOW - n_words)
                for match in LOWER_WORD.finditer(sentence):
                    before, after = sentence[: match.start()], sentence[match.end() :]
                    if before.endswith(" ") and len(before.split()) >= WORDS_BEFORE and len(after) > 1:
                        yield Place(context + before.rstrip(), match.group(), after)
            earlier.append(sentence)


def take_turns(places: dict[str, list[Place]], draw: random.Random) -> Iterator[Place]:
    """One place of every word, then a second of every word that has one, and so on; both orders are drawn."""
    queues = [draw.sample(places[word], len(places[word])) for word in sorted(places)]
    draw.shuffle(queues)
    while queues:
        yield from (queue.pop() for queue in queues)
        queues = [queue for queue in queues if queue]


def choice_item(place: Place, wrong: list[str], draw: random.Random) -> Item:
    """An item whose right choice is at a drawn position among the wrong ones."""
    words = [*wrong]
    label = draw.randrange(len(words) + 1)
    words.insert(label, place.word)
    return {"context": place.before, "choices": [word + place.after for word in words], "label": label}


def evidence(item: Item) -> str:
    """The item's text with the right word."""
    return f"{item['context']} {item['choices'][item['label']]}"


def _band_items(places: dict[str, list[Place]], types: list[str], counts: Counter[str], n: int, seed: str) -> Made:
    draw = random.Random(seed)
    if len(types) < CHOICES:
        return Made([], f"{len(types)} words of this band in the training prefix; {CHOICES} are needed")
    kin = defaultdict(list)
    for word in types:
        kin[ending(word)].append(word)
    items: list[Item] = []
    used: set[str] = set()
    for place in take_turns(places, draw):
        if len(items) == n:
            return Made(items, None)
        if place.sentence in used or (wrong := _wrong_words(place, types, kin, counts, draw)) is None:
            continue
        used.add(place.sentence)
        items.append(choice_item(place, wrong, draw) | {"word": place.word, "count": counts[place.word]})
    return Made(items, None if len(items) == n else f"{len(items)} of {n}: the held-out text yields no more")


def _wrong_words(
    place: Place, types: list[str], kin: dict[str, list[str]], counts: Counter[str], draw: random.Random
) -> list[str] | None:
    """Three words of the band: alike in ending, length and frequency; None if there are not so many."""
    word = place.word
    around = set(LOWER_WORD.findall(f"{place.before} {place.after}".lower()))
    after_article = place.before.rsplit(" ", 1)[-1].lower() in ("a", "an")

    def fits(other: str) -> bool:
        if other == word or other in around or (len(word) > 4 and other[:4] == word[:4]):
            return False
        return not after_article or (other[0] in "aeiou") == (word[0] in "aeiou")

    alike = [o for o in kin[ending(word)] if abs(len(o) - len(word)) <= 2 and fits(o)]
    if len(alike) < CHOICES - 1 and len(types) < FEW_TYPES:
        alike = sorted((o for o in types if fits(o)), key=lambda o: abs(len(o) - len(word)))[:NEAREST]
    if len(alike) < CHOICES - 1:
        return None
    alike.sort(key=lambda o: abs(log(counts[o] / counts[word])))
    return draw.sample(alike[:NEAREST], CHOICES - 1)


def _fitting(earlier: list[str], room: int) -> str:
    """The last whole sentences that have at most ``room`` words in all, with a space after each."""
    kept = ""
    for sentence in reversed(earlier):
        room -= len(sentence.split())
        if room < 0:
            break
        kept = f"{sentence} {kept}"
    return kept
