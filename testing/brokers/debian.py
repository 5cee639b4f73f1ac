"""A program of a newer Debian, unpacked beside this one's: nothing is installed, and no root is needed.

apt fetches the packages into a folder of its own, from the mirror that this machine's apt is set up with. They bring
their C library: each program is started by that one's loader, and so sees its libraries and not the system's.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from redelivery.testing.brokers.ports import NotStartedError
from redelivery.testing.brokers.sources import FETCH_SECONDS, cache_folder, move_into_cache, scratch_folder

_TOOLS: Final = ("apt-get", "dpkg-deb")
_KEYS: Final = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_ELF: Final = b"\x7fELF"
_LOADER: Final = "ld-linux-x86-64.so.2"
_STARTER: Final = """\
#!/bin/sh
exec '{libraries}/{loader}' --library-path '{libraries}' --argv0 "$0" '{program}' "$@"
"""


@dataclass(frozen=True, slots=True)
class DebianPackages:
    """Packages of ``suite``, unpacked into one folder of the cache. They run on Linux, on x86-64.

    ``programs``: the folders, below it, whose programs are started. ``moved``: scripts in which ``prefix``, where they
    look for what belongs to them, becomes the folder's.
    """

    folder: str
    suite: str
    packages: Sequence[str]
    programs: Sequence[str]
    scripts: Sequence[str]
    prefix: str
    portable: bool = False

    @property
    def fetched(self) -> bool:
        """Tell if it is in the cache."""
        return (cache_folder() / self.folder).is_dir()

    def missing(self, *, to_run: bool = True) -> str | None:
        """apt and its keys as long as it is not in the cache; nothing where it runs elsewhere."""
        if not to_run or self.fetched:
            return None
        lacking = [tool for tool in _TOOLS if shutil.which(tool) is None]
        if lacking:
            return f"{' and '.join(lacking)} not found"
        return None if _KEYS.exists() else f"{_KEYS} not found (package debian-archive-keyring)"

    def fetch(self) -> Path:
        """The folder in the cache, with ``usr`` in it."""
        home = cache_folder() / self.folder
        if home.is_dir():
            return home
        with scratch_folder() as place:
            root = Path(place) / "root"
            for package in self._download(Path(place)):
                _run(["dpkg-deb", "-x", str(package), str(root)], root.parent)
            self._arrange(root, home)
            return move_into_cache(root, home)

    def _download(self, place: Path) -> Sequence[Path]:
        for each in ("lists/partial", "cache/archives/partial", "packages"):
            (place / each).mkdir(parents=True)
        (place / "status").touch()
        source = f"deb [signed-by={_KEYS}] {_mirror(place)} {self.suite} main\n"
        (place / "sources.list").write_text(source, encoding="utf-8")
        settings = {
            "Dir::Etc::sourcelist": place / "sources.list",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::State::lists": place / "lists",
            "Dir::State::status": place / "status",
            "Dir::Cache": place / "cache",
            "APT::Sandbox::User": "root",  # where it is root: another user may not write here
        }
        options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
        _run(["apt-get", "-qq", *options, "update"], place)
        _run(["apt-get", "-qq", *options, "download", *self.packages], place / "packages")
        return sorted((place / "packages").glob("*.deb"))

    def _arrange(self, root: Path, home: Path) -> None:
        """Set each program's loader and each script's paths for where the folder will be."""
        (loader,) = {each.parent for each in root.rglob(_LOADER) if not each.is_symlink()}
        libraries = home / loader.relative_to(root)
        for folder in self.programs:
            for program in [each for found in root.glob(folder) for each in found.iterdir()]:
                if program.is_symlink() or not _is_elf(program):
                    continue
                itself = program.with_name(f"{program.name}.elf")
                program.rename(itself)
                place = home / itself.relative_to(root)
                program.write_text(_STARTER.format(libraries=libraries, loader=_LOADER, program=place), "utf-8")
                program.chmod(0o755)
        for pattern in self.scripts:
            for script in root.glob(pattern):
                text = script.read_text(encoding="utf-8").replace(self.prefix, f"{home}{self.prefix}")
                script.write_text(text, encoding="utf-8")


def _mirror(place: Path) -> str:
    """The address from which this machine's apt has Debian's packages."""
    fields = "$(ORIGIN) $(COMPONENT) $(SITE)"
    said = _run(["apt-get", "indextargets", "--format", fields, "Created-By: Packages"], place)
    found = [line.split()[2] for line in said.splitlines() if line.startswith("Debian main ")]
    if not found:
        raise NotStartedError("apt knows no mirror of Debian yet: run 'apt-get update' once, on Debian")
    return found[0]


def _is_elf(program: Path) -> bool:
    with program.open("rb") as opened:
        return opened.read(len(_ELF)) == _ELF


def _run(command: Sequence[str], place: Path) -> str:
    what = " ".join([command[0], next((each for each in command[1:] if each.isalpha()), command[-1])])
    try:
        run = subprocess.run(  # noqa: S603  # fixed commands
            command, check=True, capture_output=True, text=True, timeout=FETCH_SECONDS, cwd=place
        )
    except subprocess.CalledProcessError as error:
        last = (error.stderr or error.stdout).strip().splitlines()[-1:]
        raise NotStartedError(f"{what} failed: {' '.join(last)}") from error
    except subprocess.TimeoutExpired as error:
        raise NotStartedError(f"{what} did not end within {FETCH_SECONDS} s") from error
    return run.stdout
