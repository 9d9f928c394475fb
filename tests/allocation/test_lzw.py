"""The fast parse against a dictionary of tuples walked in plain Python."""

import numpy as np
import pytest

from lexmem.allocation.lzw import Codewords, Parser, parse

LISTINGS = ("fixed", "faithful")


def dumb_listing(ids: list[int], vocab: int, eot: int, listing: str, bound: int) -> dict[tuple[int, ...], int]:
    """Algorithm 1 up to the sort: phrases and counts, in order of discovery."""
    counts = {(token,): 0 for token in range(vocab)}
    lines: list[list[int]] = [[]]
    for token in ids:
        if token == eot:
            lines.append([])
        else:
            lines[-1].append(token)
    for line in lines:
        start = 0
        while start < len(line):
            end = start + 1
            while end < len(line) and tuple(line[start:end]) in counts:
                end += 1
            phrase = tuple(line[start:end])
            known = phrase in counts
            if len(phrase) > 1 and known and listing == "fixed":
                counts[phrase] += 1
            elif len(phrase) > 1:
                counts[phrase[:-1]] += 1
                if known or len(counts) < vocab + bound:
                    counts[phrase] = 1
            start = end
    return counts


def phrases(codewords: Codewords) -> dict[tuple[int, ...], int]:
    found: list[tuple[int, ...]] = []
    for last, prefix in zip(codewords.last.tolist(), codewords.prefix.tolist(), strict=True):
        found.append((*found[prefix], last) if prefix >= 0 else (last,))
    return dict(zip(found, codewords.counts.tolist(), strict=True))


def zipf_stream(seed: int, n: int, vocab: int, line: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    ids = (rng.zipf(1.3, n) - 1) % (vocab - 1)
    ids[rng.random(n) < 1 / line] = vocab - 1
    return ids.astype(np.uint16)


@pytest.mark.parametrize("listing", LISTINGS)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("vocab", "line"), [(2, 3), (5, 20), (40, 7), (40, 1e9), (300, 60)])
def test_equals_the_dumb_listing_on_zipf_streams(listing, seed, vocab, line):
    ids = zipf_stream(seed, 3000, vocab, line)
    expected = dumb_listing(ids.tolist(), vocab, vocab - 1, listing, 10**9)
    codewords = parse(ids, vocab, vocab - 1, listing, 10**6)
    assert phrases(codewords) == expected
    assert list(phrases(codewords)) == list(expected)
    assert not codewords.full
    by_count = sorted(expected, key=lambda phrase: -expected[phrase])  # sorted() is stable
    assert codewords.sorted_last().tolist() == [phrase[-1] for phrase in by_count]


def test_the_same_line_four_times():
    ids = np.array([0, 1, 2] * 4)
    faithful = phrases(parse(ids, 3, 2, "faithful", 100))
    fixed = phrases(parse(ids, 3, 2, "fixed", 100))
    assert faithful == {(0,): 4, (1,): 0, (2,): 0, (0, 1): 1}
    assert fixed == {(0,): 1, (1,): 0, (2,): 0, (0, 1): 4}


@pytest.mark.parametrize("listing", LISTINGS)
def test_one_token_documents_count_nothing(listing):
    codewords = parse(np.array([1, 3] * 100), 4, 3, listing, 100)
    assert codewords.counts.tolist() == [0, 0, 0, 0]
    assert codewords.sorted_last().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("listing", LISTINGS)
def test_empty_lines_and_a_line_that_is_not_closed(listing):
    ids = np.array([9, 9, 0, 1, 0, 1, 9, 9, 0, 1, 0])
    assert phrases(parse(ids, 10, 9, listing, 100)) == dumb_listing(ids.tolist(), 10, 9, listing, 100)
    assert len(parse(np.array([], np.uint16), 10, 9, listing, 100)) == 10


@pytest.mark.parametrize("listing", LISTINGS)
def test_cutting_the_stream_changes_nothing(listing):
    ids = zipf_stream(7, 2000, 30, 15)
    whole = parse(ids, 30, 29, listing, 10**6)
    documents = np.flatnonzero(ids == 29) + 1
    anywhere = np.sort(np.random.default_rng(0).integers(0, len(ids), 40))
    for cuts in (documents, anywhere):
        parser = Parser(30, 29, listing, 1000)
        for chunk in np.split(ids, cuts):
            parser.feed(chunk)
        assert phrases(parser.finish()) == phrases(whole)


@pytest.mark.parametrize("listing", LISTINGS)
@pytest.mark.parametrize("bound", [0, 1, 2, 17, 100])
def test_a_full_dictionary_counts_on_and_adds_nothing(listing, bound):
    ids = zipf_stream(3, 4000, 30, 15)
    codewords = parse(ids, 30, 29, listing, bound)
    assert len(codewords) == 30 + bound and codewords.full
    assert phrases(codewords) == dumb_listing(ids.tolist(), 30, 29, listing, bound)


def test_a_bound_that_is_just_enough_is_not_full():
    ids = zipf_stream(3, 4000, 30, 15)
    n = len(parse(ids, 30, 29, "fixed", 10**6)) - 30
    assert not parse(ids, 30, 29, "fixed", n).full
    assert parse(ids, 30, 29, "fixed", n - 1).full


def test_ids_of_any_width_and_large_vocabularies():
    vocab = 200_000
    ids = np.array([199_998, 70_000, 199_998, 70_000, 5, 199_999], np.uint32)
    assert {p: n for p, n in phrases(parse(ids, vocab, 199_999, "fixed", 10)).items() if n} == {
        (199_998,): 1,
        (199_998, 70_000): 2,
        (199_998, 70_000, 5): 1,
    }


def test_end_of_text_is_in_no_phrase_and_keeps_its_codeword():
    codewords = parse(zipf_stream(1, 3000, 40, 10), 40, 39, "fixed", 10**6)
    assert (codewords.last == 39).sum() == 1 and codewords.counts[39] == 0
