"""The version of this package: the one place that says it. pyproject.toml reads it from here."""

from __future__ import annotations

from typing import Final

VERSION: Final = "0.2.0"
