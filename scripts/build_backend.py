"""setuptools, with two things more: an editable install shows its packages, and a build gives the same bytes again.

An editable install maps the rooms by an import hook, which ``pkgutil.iter_modules()`` does not see; but that is how
Spark finds ``pyspark_redelivery``. https://peps.python.org/pep-0660/ lets a build put any file into the editable wheel.

Where SOURCE_DATE_EPOCH is set (https://reproducible-builds.org/specs/source-date-epoch/), an archive depends on the
sources and the tools alone: not on the time, the folder, the user or the umask.
"""

from __future__ import annotations

import gzip
import io
import os
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
    prepare_metadata_for_build_wheel,
)

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


def build_wheel(
    wheel_directory: str, config_settings: dict[str, str] | None = None, metadata_directory: str | None = None
) -> str:
    """Name of the wheel in ``wheel_directory``."""
    name = _build_wheel(wheel_directory, config_settings, metadata_directory)
    if (epoch := _epoch()) is not None:
        path = Path(wheel_directory, name)
        with zipfile.ZipFile(path) as wheel:
            files = [(each, wheel.read(each)) for each in wheel.namelist()]
        when = time.gmtime(max(epoch, 315532800))[:6]  # a zip archive has no time before 1980
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
            for each, content in files:
                entry = zipfile.ZipInfo(each, when)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.create_system = 3  # Unix, also where it is built on Windows: the modes count
                entry.external_attr = (0o100000 | _FILE) << 16
                wheel.writestr(entry, content)
    return name


def build_sdist(sdist_directory: str, config_settings: dict[str, str] | None = None) -> str:
    """Name of the source archive in ``sdist_directory``."""
    name = _build_sdist(sdist_directory, config_settings)
    if (epoch := _epoch()) is not None:
        path = Path(sdist_directory, name)
        with tarfile.open(path) as sources:
            files = [(each, _content(sources, each)) for each in sources.getmembers()]
        with (
            path.open("wb") as raw,
            gzip.GzipFile("", "wb", fileobj=raw, mtime=epoch) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as sources,
        ):
            for each, content in sorted(files, key=lambda file: file[0].name):
                entry = tarfile.TarInfo(each.name)
                entry.type, entry.size, entry.mtime = each.type, len(content), epoch
                entry.mode = _FOLDER if each.isdir() else _FILE
                sources.addfile(entry, io.BytesIO(content))
    return name


def _content(sources: tarfile.TarFile, entry: tarfile.TarInfo) -> bytes:
    file = sources.extractfile(entry)
    return file.read() if file is not None else b""


def _epoch() -> int | None:
    """Seconds since 1970 that every file shall have; None: as they are."""
    stated = os.environ.get("SOURCE_DATE_EPOCH")
    return int(stated) if stated else None
