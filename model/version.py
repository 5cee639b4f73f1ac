"""The version of this installation."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from typing import Final

_SOURCE: Final = "0.1.0"  # as in pyproject.toml; for a source that is not installed, such as in a zip


@cache
def version() -> str:
    """The version of the installed package; of the source where it is not installed."""
    try:
        return installed_version("redelivery")
    except PackageNotFoundError:
        return _SOURCE
