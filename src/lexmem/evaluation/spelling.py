"""Which entries of a pronouncing dictionary are English words, and which pairs are one word in two spellings."""

import re

# Names, foreign words, abbreviations and tags that occur in lower case; of short entries only the words listed.
NOT_WORDS = (
    "bel", "bil", "bin", "carte", "cau", "com", "creme", "cum", "dec", "del", "dict", "diem", "doc", "docs", "esp",
    "etc", "faire", "fem", "fer", "gard", "hoc", "koo", "lac", "lak", "laude", "lbs", "marc", "masse", "mer",
    "mil", "mis", "mohr", "mol", "mon", "mor", "nat", "nec", "nom", "noun", "nous", "perl", "pers", "pri", "qui",
    "res", "ried", "seine", "semen", "serv", "sic", "spec", "syn", "til", "tor", "tri", "viz", "whore",
)  # fmt: skip
SHORT_WORDS = (
    "a", "ad", "ah", "am", "an", "as", "at", "ax", "be", "by", "do", "eh", "go", "ha", "he", "hi", "if", "in",
    "is", "it", "lo", "me", "my", "no", "of", "oh", "on", "or", "ow", "ox", "so", "to", "up", "us", "we",
)  # fmt: skip
CONTRACTIONS = ("it's", "he's", "she's", "who's", "what's", "that's", "there's", "here's", "let's")

# One word in two spellings. Each rule turns one spelling into the other.
SPELLINGS = (
    (r"(?<=..)our", "or"), (r"re(?=s?$)", "er"), ("ise", "ize"), ("isa", "iza"), ("isi", "izi"), ("yse", "yze"),
    ("ogue", "og"), ("ae", "e"), ("oe", "e"), ("ence", "ense"), ("ough", "ow"), ("ould", "old"), ("dgem", "dgm"),
    ("ph", "f"), ("xion", "ction"), ("que", "k"), ("ck", "k"), ("isc", "isk"), ("amme", "am"), ("eable", "able"),
    ("ant", "ent"), ("ancy", "ency"), ("er(?=s?$)", "or"), ("oes$", "os"), ("man$", "men"),
)  # fmt: skip
# Pairs that no rule covers.
SAME_WORD = (
    ("aneurism", "aneurysm"), ("ax", "axe"), ("blessed", "blest"), ("blond", "blonde"), ("briar", "brier"),
    ("bur", "burr"), ("check", "cheque"), ("czar", "tsar"), ("dickey", "dickie"), ("dickey", "dicky"),
    ("dickie", "dicky"), ("dike", "dyke"), ("draft", "draught"), ("drafts", "draughts"), ("drier", "dryer"),
    ("gage", "gauge"), ("gray", "grey"), ("guarantee", "guaranty"), ("guarantees", "guaranties"),
    ("guerilla", "guerrilla"), ("moustache", "mustache"), ("occuring", "occurring"), ("peas", "pease"),
    ("pollack", "pollock"), ("rack", "wrack"), ("rhyme", "rime"), ("shew", "shoe"), ("tho", "though"),
    ("tonnes", "tons"), ("vail", "veil"), ("vice", "vise"), ("whiskey", "whisky"), ("wilfully", "willfully"),
    ("woolly", "wooly"),
)  # fmt: skip


def is_word(entry: str) -> bool:
    """Whether a lower-case string is taken for an English word."""
    return entry in SHORT_WORDS if len(entry) <= 2 else entry not in NOT_WORDS


def is_variant(one: str, other: str) -> bool:
    """Whether two words that sound the same may be the same word, so that neither is a mistake for the other.

    They are listed in ``SAME_WORD`` or differ by one rule of ``SPELLINGS``, by a doubled letter or a final e in a long
    word; or one is a possessive, which plurals sound like.
    """
    short, long = sorted((one, other), key=len)
    if (one, other) in SAME_WORD or (other, one) in SAME_WORD:
        return True
    if any(word.endswith("'s") and word not in CONTRACTIONS for word in (one, other)):
        return True
    if len(short) >= 6 and short in (re.sub(r"(.)\1", r"\1", long), long.removesuffix("e")):
        return True
    return any(
        one in _respelled(other, pattern, new) or other in _respelled(one, pattern, new) for pattern, new in SPELLINGS
    )


def _respelled(word: str, pattern: str, new: str) -> set[str]:
    """The word with one match of ``pattern`` written as ``new``."""
    return {word[: match.start()] + new + word[match.end() :] for match in re.finditer(pattern, word)}
