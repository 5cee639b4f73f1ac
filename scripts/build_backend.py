"""setuptools, with three things more: an editable install shows its packages, a build gives the same bytes again, and
the long description has no links that lead nowhere.

An editable install maps the rooms by an import hook, which ``pkgutil.iter_modules()`` does not see; but that is how
Spark finds ``pyspark_redelivery``. https://peps.python.org/pep-0660/ lets a build put any file into the editable wheel.

Where SOURCE_DATE_EPOCH is set (https://reproducible-builds.org/specs/source-date-epoch/), an archive depends on the
sources and the tools alone: not on the time, the folder, the user or the umask.

A package index shows README.md without the files that its links name. They lead to the source's address where
``project.urls`` has one (``Source``); else a link is its text, and a picture is left out.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import re
import tarfile
import time
import warnings
import zipfile
from pathlib import Path

from setuptools.build_meta import build_editable as _build_editable
from setuptools.build_meta import build_sdist as _build_sdist
from setuptools.build_meta import build_wheel as _build_wheel
from setuptools.build_meta import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
)
from setuptools.build_meta import prepare_metadata_for_build_wheel as _prepare_metadata

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_PATH_FILE = "redelivery_src.pth"
_FILE, _FOLDER = 0o644, 0o755
_FENCED = re.compile(rb"^(```.*?^```)$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(rb"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\((?!https?:|mailto:)([^()\s]*)\)")
_SOURCE = re.compile(rb"^Project-URL: Source, (.*?)/?$", re.MULTILINE)
_VERSION = re.compile(rb"^Version: (.*)$", re.MULTILINE)


def build_editable(
    wheel_directory: str, config_settings: dict[str, str] | None = None, metadata_directory: str | None = None
) -> str:
    """Name of the editable wheel in ``wheel_directory``: setuptools' with ``redelivery_src.pth`` added."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Editable installation")  # folders with the package's name: there is none
        name = _build_editable(wheel_directory, config_settings, metadata_directory)
    path = Path(wheel_directory, name)
    with zipfile.ZipFile(path) as wheel:
        files = {each: wheel.read(each) for each in wheel.namelist()}
    files[_PATH_FILE] = f"{Path('src').resolve()}\n".encode()
    record = next(each for each in files if each.endswith(".dist-info/RECORD"))
    files[record] += f"{_PATH_FILE},,\n".encode()
    with zipfile.ZipFile(path, "w") as wheel:
        for each, content in files.items():
            wheel.writestr(each, content)
    return name


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: dict[str, str] | None = None) -> str:
    """Name of the folder with the metadata that the wheel will have."""
    name = _prepare_metadata(metadata_directory, config_settings)
    file = Path(metadata_directory, name, "METADATA")
    file.write_bytes(for_an_index(file.read_bytes()))
    return name


def build_wheel(
    wheel_directory: str, config_settings: dict[str, str] | None = None, metadata_directory: str | None = None
) -> str:
    """Name of the wheel in ``wheel_directory``."""
    name = _build_wheel(wheel_directory, config_settings, metadata_directory)
    epoch, path = _epoch(), Path(wheel_directory, name)
    with zipfile.ZipFile(path) as wheel:
        files = {each.filename: (each.date_time, wheel.read(each)) for each in wheel.infolist()}
    described = next(each for each in files if each.endswith(".dist-info/METADATA"))
    record = next(each for each in files if each.endswith(".dist-info/RECORD"))
    files[described] = (files[described][0], for_an_index(files[described][1]))
    rows = re.sub(rf"(?m)^{re.escape(described)},.*$", _row(described, files[described][1]), files[record][1].decode())
    files[record] = (files[record][0], rows.encode())
    # a zip archive has no time before 1980
    when = None if epoch is None else time.gmtime(max(epoch, 315532800))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for each, (written, content) in files.items():
            entry = zipfile.ZipInfo(each, when or written)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, also where it is built on Windows: the modes count
            entry.external_attr = (0o100000 | _FILE) << 16
            wheel.writestr(entry, content)
    return name


def build_sdist(sdist_directory: str, config_settings: dict[str, str] | None = None) -> str:
    """Name of the source archive in ``sdist_directory``."""
    name = _build_sdist(sdist_directory, config_settings)
    epoch, path = _epoch(), Path(sdist_directory, name)
    with tarfile.open(path) as sources:
        files = [(each, _content(sources, each)) for each in sources.getmembers()]
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=epoch) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as sources,
    ):
        for each, content in sorted(files, key=lambda file: file[0].name):
            written = for_an_index(content) if each.name.endswith("/PKG-INFO") else content
            entry = tarfile.TarInfo(each.name)
            entry.type, entry.size = each.type, len(written)
            entry.mtime = each.mtime if epoch is None else epoch
            entry.mode = _FOLDER if each.isdir() else _FILE
            sources.addfile(entry, io.BytesIO(written))
    return name


def for_an_index(metadata: bytes) -> bytes:
    """The metadata with a long description whose links lead somewhere from anywhere; what is code stays."""
    head, blank, description = metadata.partition(b"\n\n")
    source, version = _SOURCE.search(head), _VERSION.search(head)

    def rewritten(link: re.Match[bytes]) -> bytes:
        picture, text, path = link.groups()
        if source is None or version is None or path.startswith(b"#"):
            return b"" if picture else text
        kind = b"raw" if picture else b"blob"
        return b"%b[%b](%b/%b/v%b/%b)" % (picture, text, source[1], kind, version[1], path)

    parts = _FENCED.split(description)
    parts[::2] = [_LINK.sub(rewritten, each) for each in parts[::2]]
    return head + blank + b"".join(parts)


def _row(name: str, content: bytes) -> str:
    """A line of RECORD. https://packaging.python.org/en/latest/specifications/recording-installed-packages/"""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}"


def _content(sources: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = sources.extractfile(entry)
    return file.read() if file is not None else b""


def _epoch() -> int | None:
    """Seconds since 1970 that every file shall have; None: as they are."""
    stated = os.environ.get("SOURCE_DATE_EPOCH")
    return int(stated) if stated else None
