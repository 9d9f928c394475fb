"""Pinned packages from the machine's registries, by the registries' own clients, cached by name and version.

Everything happens inside the cache folder: apt gets package lists and archives of its own there, so nothing needs
root and the system stays as it is. A package that is in the cache is never asked for again, so a study works with
no network after the first fetch.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal
from urllib.parse import unquote

from filelock import FileLock

from lexmem.spec.errors import UserError
from lexmem.spec.files import replacing

CACHE = Path(".cache/packages")
MOVING = ""


@dataclass(frozen=True)
class Package:
    """A package of one registry; ``version`` is exact, or MOVING for whatever the registry has."""

    client: Literal["apt", "npm", "pip"]
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.client} package {self.name} {self.version or '(newest)'}"

    def folder(self, cache: Path) -> Path:
        """``<cache>/<client>-<name>-<version>``."""
        name = f"{self.client}-{self.name}-{self.version or 'newest'}"
        return cache / name.replace("/", "+").replace(":", "+")


def fetch(package: Package, cache: Path = CACHE) -> Path:
    """The package's archive (.deb, .tgz, .whl) in the cache, downloaded if it is not there yet.

    Raises:
        UserError: one line with the package, the client's reason and the remedy.
    """
    folder = package.folder(cache) / "archive"
    with _locked(package, cache):
        if not folder.is_dir():
            print(f"fetching {package}", file=sys.stderr, flush=True)
            with replacing(folder) as temporary:
                temporary.mkdir()
                _DOWNLOADS[package.client](package, temporary.resolve(), cache.resolve())
                if not any(temporary.iterdir()):
                    raise _failure(package, "the client reported success and left no file")
    return next(path for path in sorted(folder.iterdir()) if path.is_file())


def unpack(package: Package, cache: Path = CACHE) -> Path:
    """The folder of the package's files, fetched and unpacked in the cache if they are not there yet."""
    archive = fetch(package, cache)
    folder = package.folder(cache) / "contents"
    with _locked(package, cache):
        if not folder.is_dir():
            with replacing(folder) as temporary:
                temporary.mkdir()
                _extract(package, archive, temporary)
    return folder


def version_got(package: Package, archive: Path) -> str:
    """The exact version of a fetched package; a MOVING one's is read from its archive's name."""
    if package.version:
        return package.version
    return unquote(archive.name.split("_" if package.client == "apt" else "-")[1])


def _apt(package: Package, folder: Path, cache: Path) -> None:
    state = cache / "apt"
    for part in ("lists/partial", "archives/partial"):
        (state / part).mkdir(parents=True, exist_ok=True)
    apt = ["apt-get", "-q", "-o", f"Dir::State::Lists={state / 'lists'}", "-o", f"Dir::Cache={state}"]
    # Downloads go to a folder that only this user may read: apt's own unprivileged user could not write there.
    apt += ["-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=2", "-o", "Acquire::http::Timeout=30"]
    download = [*apt, "download", package.name + (f"={package.version}" if package.version else "")]
    with FileLock(state / "lock"):
        # Lists of an earlier fetch may be stale, or this may be the first: bring them up to date and ask again.
        # The update's own failure (one dead mirror of several) does not matter if the package then arrives.
        if not _succeeds(download, folder):
            _succeeds([*apt, "update"], folder)
            _run(package, download, folder)


def _npm(package: Package, folder: Path, cache: Path) -> None:
    name = f"{package.name}@{package.version or 'latest'}"
    options = ["--ignore-scripts", "--no-update-notifier", "--loglevel=error", "--fetch-retries=1"]
    _run(package, ["npm", "pack", name, *options, f"--cache={cache / 'npm'}"], folder)


def _pip(package: Package, folder: Path, cache: Path) -> None:
    requirement = package.name + (f"=={package.version}" if package.version else "")
    options = ["--quiet", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--retries=2"]
    _run(package, [*_pip_command(package, folder), "download", *options, "--dest", ".", requirement], folder)


def _pip_command(package: Package, folder: Path) -> list[str]:
    """This environment's pip, or else the machine's: an environment need not have one."""
    candidates = [[sys.executable, "-m", "pip"], ["pip"], ["pip3"], ["python3", "-m", "pip"]]
    for command in candidates:
        if _succeeds([*command, "--version"], folder):
            return command
    raise _failure(package, "no pip found, neither in this environment nor on PATH")


_DOWNLOADS = {"apt": _apt, "npm": _npm, "pip": _pip}
_PROGRAMS = {"apt": "apt-get", "npm": "npm", "pip": "pip"}


def _extract(package: Package, archive: Path, folder: Path) -> None:
    try:
        if package.client == "apt":
            command = ["dpkg-deb", "-x", str(archive.resolve()), str(folder.resolve())]
            subprocess.run(command, check=True, capture_output=True)
        elif package.client == "npm":
            _extract_tar(archive, folder)
        else:
            with zipfile.ZipFile(archive) as wheel:
                wheel.extractall(folder)
    except FileNotFoundError:
        raise UserError(f"{package} could not be unpacked: dpkg-deb is not installed") from None
    except (subprocess.CalledProcessError, tarfile.TarError, zipfile.BadZipFile, EOFError, zlib.error):
        raise UserError(f"{package}: {archive} is damaged; delete {archive.parent.parent}") from None


def _extract_tar(archive: Path, folder: Path) -> None:
    with tarfile.open(archive) as tar:
        for member in tar:
            inside = PurePosixPath(member.name)
            if member.isfile() and not inside.is_absolute() and ".." not in inside.parts:
                target = folder / inside
                target.parent.mkdir(parents=True, exist_ok=True)
                with tar.extractfile(member) as source, target.open("wb") as file:
                    shutil.copyfileobj(source, file)


def _locked(package: Package, cache: Path) -> FileLock:
    folder = package.folder(cache)
    folder.mkdir(parents=True, exist_ok=True)
    return FileLock(folder / "lock")


def _execute(command: list[str], folder: Path) -> subprocess.CompletedProcess:
    environment = os.environ | {"LC_ALL": "C"}
    return subprocess.run(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
    )


def _succeeds(command: list[str], folder: Path) -> bool:
    try:
        return _execute(command, folder).returncode == 0
    except FileNotFoundError:
        return False


def _run(package: Package, command: list[str], folder: Path) -> None:
    try:
        done = _execute(command, folder)
    except FileNotFoundError:
        raise _failure(package, f"{command[0]} is not installed") from None
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        errors = [line for line in lines if line.lower().startswith(("e:", "npm err", "npm error", "error"))]
        raise _failure(package, (errors or lines or [f"exit status {done.returncode}"])[0])


def _failure(package: Package, reason: str) -> UserError:
    return UserError(
        f"{package} could not be fetched: {reason}; check the network and that `{_PROGRAMS[package.client]}` works here"
    )
