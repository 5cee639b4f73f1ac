"""setuptools, and for an editable install one line more on ``sys.path``: the folder ``src``.

An editable install maps the rooms by an import hook, which ``pkgutil.iter_modules()`` does not see; but that is how
Spark finds ``pyspark_redelivery``. https://peps.python.org/pep-0660/ lets a build put any file into the editable wheel.
"""

from __future__ import annotations

import warnings
import zipfile
from pathlib import Path

from setuptools.build_meta import build_editable as _build_editable
from setuptools.build_meta import (
    build_sdist,
    build_wheel,
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
