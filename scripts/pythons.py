"""The interpreters of the supported Pythons that this machine has."""

from __future__ import annotations

import shutil
from pathlib import Path

PYTHONS = ("3.11", "3.12", "3.13", "3.14")
_PLACES = (  # below the home folder: pyenv's, uv's, and a Debian package that was unpacked beside its own libraries
    ".pyenv/versions/{0}.*/bin/python",
    ".local/share/uv/python/cpython-{0}.*/bin/python{0}",
    ".cache/redelivery/python{0}-of-*/usr/bin/python{0}",
)


def interpreter(version: str) -> str | None:
    """Where that Python is; None: nowhere."""
    found = [path for place in _PLACES for path in sorted(Path.home().glob(place.format(version)))]
    return str(found[-1]) if found else shutil.which(f"python{version}")
