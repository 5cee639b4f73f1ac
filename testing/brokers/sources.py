"""Fetches a broker's own distribution: by Maven, into a cache of this user, or from the system's packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Protocol

from redelivery.testing.brokers.ports import NotStartedError

FETCH_SECONDS = 600
_PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"


class Source(Protocol):
    """A distribution that is there, or can be fetched."""

    @property
    def portable(self) -> bool:
        """True where the folder is all of the broker, so that it also runs where the folder is mounted."""

    def missing(self, *, to_run: bool = True) -> str | None:
        """The tools that this machine lacks to fetch the broker, and to run it here; None: nothing."""

    def fetch(self) -> Path:
        """Fetch the broker and return its folder; the first time this may take minutes. Raises NotStartedError."""


@dataclass(frozen=True, slots=True)
class MavenArchive:
    """A tar.gz with Maven coordinates. ``folder``: the one in it that is the broker's home, and names the version."""

    coordinates: str
    folder: str
    portable: bool = True

    def missing(self, *, to_run: bool = True) -> str | None:
        """Java, and Maven as long as it is not in the cache."""
        return _lacking(("java",) if to_run else (), self.folder)

    def fetch(self) -> Path:
        """The folder in the cache."""
        home = cache_folder() / self.folder
        if home.is_dir():
            return home
        with scratch_folder() as scratch:
            _maven(scratch, self.coordinates, f"{_PLUGIN}:copy", f"-Dartifact={self.coordinates}")
            (archive,) = Path(scratch).glob("*.tar.gz")
            with tarfile.open(archive) as packed:
                packed.extractall(scratch, filter="data")
            return move_into_cache(Path(scratch) / self.folder, home)


@dataclass(frozen=True, slots=True)
class MavenJars:
    """Jars, and all that they need, in one folder of that name. ``tools``: what it takes to run them."""

    folder: str
    coordinates: Sequence[str]
    tools: Sequence[str] = ("java",)
    portable: bool = True

    def missing(self, *, to_run: bool = True) -> str | None:
        """The tools that are lacking, and Maven as long as the jars are not in the cache."""
        return _lacking(self.tools if to_run else (), self.folder)

    def fetch(self) -> Path:
        """The folder in the cache."""
        home = cache_folder() / self.folder
        if home.is_dir():
            return home
        with scratch_folder() as scratch:
            (Path(scratch) / "pom.xml").write_text(self._pom(), encoding="utf-8")
            _maven(scratch, self.coordinates[0], f"{_PLUGIN}:copy-dependencies", "-DincludeScope=runtime")
            (Path(scratch) / "pom.xml").unlink()
            jars = Path(scratch) / self.folder
            jars.mkdir()
            for jar in Path(scratch).glob("*.jar"):
                jar.rename(jars / jar.name)
            return move_into_cache(jars, home)

    def _pom(self) -> str:
        wanted = [
            dict(zip(("groupId", "artifactId", "version"), each.split(":"), strict=True)) for each in self.coordinates
        ]
        dependencies = "".join(
            f"<dependency>{''.join(f'<{tag}>{text}</{tag}>' for tag, text in each.items())}</dependency>"
            for each in wanted
        )
        return (
            '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
            "<groupId>redelivery.testing</groupId><artifactId>broker</artifactId><version>1</version>"
            f"<dependencies>{dependencies}</dependencies></project>"
        )


@dataclass(frozen=True, slots=True)
class SystemPackage:
    """Installed by the system's package manager.

    ``programs``: where it may be, or its names on the PATH. ``version``: how its number begins, which a folder of the
    package names, as ``folders`` says; empty: any.
    """

    programs: Sequence[str]
    package: str
    portable: bool = False
    version: str = ""
    folders: str = ""

    def missing(self, *, to_run: bool = True) -> str | None:
        """The package, or its version; nothing where it runs elsewhere, where the image has it."""
        if not to_run or self._found():
            return None
        if self._installed():
            return f"the package {self.package} is here in another version than {self.version}"
        return f"{Path(self.programs[0]).name} not found (package {self.package})"

    def fetch(self) -> Path:
        """The folder of its program."""
        found = self._found()
        if found is None:
            raise NotStartedError(str(self.missing()))
        return Path(found).parent

    def _found(self) -> str | None:
        if self.version and not glob(self.folders + self.version + "*"):
            return None
        return self._installed()

    def _installed(self) -> str | None:
        return next((found for each in self.programs if (found := shutil.which(each)) is not None), None)


def _lacking(tools: Sequence[str], folder: str) -> str | None:
    if not (cache_folder() / folder).is_dir():
        tools = [*tools, "mvn"]
    lacking = [tool for tool in tools if shutil.which(tool) is None]
    return f"{' and '.join(lacking)} not found" if lacking else None


def cache_folder() -> Path:
    """The folder of this user that keeps what was fetched."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "redelivery"


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder beside those of the cache, deleted in the end."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=cache_folder(), prefix="fetching-")


def _maven(scratch: str, what: str, *goal: str) -> None:
    try:
        subprocess.run(  # noqa: S603  # a fixed command
            ["mvn", "-q", "-B", *goal, f"-DoutputDirectory={scratch}"],  # noqa: S607  # found on the user's PATH on purpose
            check=True,
            capture_output=True,
            text=True,
            timeout=FETCH_SECONDS,
            cwd=scratch,
        )
    except subprocess.CalledProcessError as error:
        last = (error.stdout or error.stderr).strip().splitlines()[:1]
        raise NotStartedError(f"Maven could not fetch {what}: {' '.join(last)}") from error
    except subprocess.TimeoutExpired as error:
        raise NotStartedError(f"Maven did not fetch {what} within {FETCH_SECONDS} s") from error


def move_into_cache(unpacked: Path, home: Path) -> Path:
    """At once, so that another test run sees all of it or nothing."""
    home.parent.mkdir(parents=True, exist_ok=True)
    try:
        unpacked.rename(home)
    except OSError:
        if not home.is_dir():
            raise
    return home
