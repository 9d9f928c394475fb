"""Each reader on a tiny module of its own format, built here."""

import gzip
import json
import struct
import zlib

from lexmem.data.sources import dictd, plain, restructured, sword, webpages, wordnet

_BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def _base64(value: int) -> str:
    return _BASE64[value // 4096] + _BASE64[value // 64 % 64] + _BASE64[value % 64]


def _write_dictionary(root, name, body, about="00-database-info\n   A note.\n\nNot an entry.\n"):
    data = about.encode() + body
    (root / f"{name}.dict.dz").write_bytes(gzip.compress(data))
    size = len(about.encode())
    (root / f"{name}.index").write_text(f"00-database-info\t{_base64(0)}\t{_base64(size)}\nzebra\tB\tC\n")


def test_gcide_drops_pronunciation_etymology_and_source_tags(tmp_path):
    body = """
Alley \\Al"ley\\, n.; pl. {Alleys}. [OE. aley, OF. al['e]e [F.
   all['e]e], fr. L. ambulare.]
   1. A narrow passage; pre["e]minently one in a
      city. [Obs.]
      [1913 Webster]

            Who calls?                            --Shak.
      [1913 Webster] Berserk Berserker

Haematoin \\H[ae]m"a*to*in\\ (h[e^]m`[.a]*t[=o]"[i^]n), n. (Chem.)
   Same as {H[ae]matin}.
   [WordNet 1.5]
"""
    _write_dictionary(tmp_path, "gcide", body.encode())
    assert list(dictd.read_gcide(tmp_path)) == [
        "Alley, n.; pl. Alleys. 1. A narrow passage; preëminently one in a city.\n"
        "Who calls? --Shak.\n\n"
        "Haematoin, n. (Chem.) Same as Hæmatin."
    ]


def test_dictionary_with_stray_bytes_of_a_code_page(tmp_path):
    _write_dictionary(tmp_path, "jargon", "\ncafé\n n.\n\n    The market".encode() + b"\x92s drop.\n")
    assert list(dictd.read_jargon(tmp_path)) == ["café, n.\nThe market\u2019s drop."]


def test_foldoc_drops_dates_links_tags_and_listings(tmp_path):
    body = b"""
Application Binary Interface
ABI

   <programming> /ay-bee-eye/ (ABI) The interface by which an {application
   program} gains access.

    listing = 1

   {(http://example.org/)}.

   (1994-11-08)

empty

   (1994-11-08)
"""
    _write_dictionary(tmp_path, "foldoc", body)
    assert list(dictd.read_foldoc(tmp_path)) == [
        "Application Binary Interface, ABI\n(ABI) The interface by which an application program gains access."
    ]


def test_devil_keeps_verse_lines(tmp_path):
    body = b"\nPreface.\n\nAPPLAUSE, n.  The echo of a\nplatitude.\n\n    If I were jolly,\n    On Fridays.\n"
    body += b"\nARDOR, n.  Love.\n"
    _write_dictionary(tmp_path, "devil", body)
    assert list(dictd.read_devil(tmp_path)) == [
        "APPLAUSE, n.  The echo of a\nplatitude.\n\nIf I were jolly,\nOn Fridays.\n\nARDOR, n.  Love."
    ]


def test_wordnet_gives_words_part_of_speech_and_gloss(tmp_path):
    line = '00002137 03 n 02 abstraction 0 abstract_entity 0 001 @ 00001740 n 0000 | a general concept; "the  good"  \n'
    adjective = "00355611 00 s 01 same(p) 0 001 & 00355258 a 0000 | unchanged  \n"
    for suffix, text in {"noun": "  1 a licence line\n" + line, "verb": "", "adj": adjective, "adv": ""}.items():
        (tmp_path / f"data.{suffix}").write_text(text)
    assert list(wordnet.read_wordnet(tmp_path)) == [
        'abstraction, abstract entity (noun): a general concept; "the good"\n\nsame (adjective): unchanged'
    ]


def _write_sword(root, stem, blocks):
    index = data = b""
    for block in blocks:
        packed = zlib.compress(block.encode())
        index += struct.pack("<III", len(data), len(packed), len(block.encode()))
        data += packed
    (root / f"{stem}.bzs").write_bytes(index)
    (root / f"{stem}.bzz").write_bytes(data)


def test_sword_gives_chapters_old_testament_first(tmp_path):
    old = (
        '<title>Psalms</title><chapter n="1" osisID="Ps.1" sID="Ps.1"/><l level="1" sID="a"/><w lemma="x">Blessed</w> '
        'is<note placement="foot">or, happy</note> , he<l eID="a"/> <l level="1" sID="b"/>who waits.<l eID="b"/>'
        '<chapter eID="Ps.1"/><chapter n="2" osisID="Ps.2" sID="Ps.2"/><div sID="g" type="x-p"/>Why &amp; how?'
        '<div eID="g" type="x-p"/><div sID="h" type="x-p"/><hi>Verses 1-17</hi><div eID="h" type="x-p"/>'
    )
    new = '<chapter osisID="Matt.1" sID="Matt.1"/>the <w>Word</w>(<w>and</w> life)'
    _write_sword(tmp_path, "nt", ["", new])
    _write_sword(tmp_path, "ot", ["", old])
    assert list(sword.read_sword(tmp_path)) == ["Blessed is, he\nwho waits.", "Why & how?", "the Word (and life)"]


def test_html_keeps_running_text_only():
    page = b"""<html><head><title>T</title></head><body><div class="navheader">Prev</div>
      <h1>Title<a class="headerlink">#</a></h1><p>Some <b>bold</b>
      text<br/>and more.</p><pre>code()</pre><ul><li>an item</li></ul><table><tr><td>1</td></tr></table>
      <blockquote><p>A quote\xe2\x80\x99s end.</p></blockquote></body></html>"""
    assert (
        webpages.running_text(page, "//body")
        == "Title\n\nSome bold text\n\nand more.\n\nan item\n\nA quote\u2019s end."
    )


def test_html_sections_in_order_of_names(tmp_path):
    (tmp_path / "html").mkdir()
    for name in ("secB1", "secA1", "links"):
        (tmp_path / "html" / f"{name}.html").write_text(f"<html><body><p>page {name}</p></body></html>")
    assert list(webpages.read_anarchism(tmp_path)) == ["page secA1", "page secB1"]


def test_restructured_text_keeps_paragraphs_and_items():
    text = """.. _label:

=======
A title of words
=======
:Author: Someone

See :ref:`the other page <other>` for ``cgroup.type`` and *more*::

  # echo threaded > cgroup.type

.. note::

   inside a directive there is text

- The first item of the list has
  two lines
- the second item is also here

====== ======
a      b
====== ======
"""
    assert restructured.prose(text).split("\n\n") == [
        "A title of words",
        "See the other page for cgroup.type and more:",
        "The first item of the list has two lines",
        "the second item is also here",
    ]


def test_linux_docs_leave_translations_out(tmp_path):
    for name in ("Documentation/a.rst.gz", "Documentation/translations/it/a.rst.gz"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(f"one two three four {path.parent.name}".encode()))
    assert list(restructured.read_linux_docs(tmp_path)) == ["one two three four Documentation"]


def test_speeches_in_order_of_years(tmp_path):
    data = tmp_path / "package" / "data"
    data.mkdir(parents=True)
    (data / "1791_x.txt").write_text("Second &quot;speech&quot;.\n")
    (data / "1790_x.txt").write_text("First.")
    assert list(plain.read_sotu(tmp_path)) == ["First.", 'Second "speech".']


_LEADS = {"Hat": "A hat  is worn .\n\n Often.", "Void": " "}


def test_wikipedia_leads_have_titles_and_closed_holes(tmp_path):
    articles = {
        "Hat": {"title": "Hat", "extract": "A hat  is worn .\n\n Often."},
        "Void": {"title": "Void", "extract": " "},
    }
    (tmp_path / "summaries_en-us.json").write_text(json.dumps(articles))
    assert list(plain.read_wikipedia_leads(tmp_path)) == ["Hat\nA hat is worn.\nOften."]
