"""Targets, reasons and texts of the pages, as `targets.toml` has them."""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

WIDTH: Final = 120
_DATA: Final[Mapping[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
CASES: Final[Mapping[str, str]] = _DATA["cases"]
SPEED: Final[Mapping[str, Mapping[str, float]]] = _DATA["speed"]
PROCESSOR: Final[Mapping[str, Mapping[str, float]]] = _DATA["processor"]
STORED: Final[Mapping[str, float]] = _DATA["stored"]
AT_MOST: Final[Mapping[str, float]] = _DATA["at_most"]
AT_LEAST: Final[Mapping[str, float]] = _DATA["at_least"]
MESSAGE: Final[Mapping[str, Mapping[str, Any]]] = _DATA["message"]
FLOORS: Final[Mapping[str, float]] = _DATA["floors"]
WHY: Final[Mapping[str, str]] = _DATA["why"]
MISSED: Final[Mapping[str, str]] = _DATA["missed"]
TEXT: Final[Mapping[str, Any]] = _DATA["text"]
UNKNOWN: Final = "**no reason is known yet**"


def paragraphs(text: str, **numbers: object) -> list[str]:
    """Return the lines of these paragraphs, with an empty one behind each."""
    lines: list[str] = []
    for each in text.format(**numbers).split("\n\n"):
        lines += [*textwrap.wrap(" ".join(each.split()), WIDTH, break_on_hyphens=False), ""]
    return lines


def item(text: str) -> str:
    """Return an item of a list."""
    return textwrap.fill(f"- {' '.join(text.split())}.", WIDTH, subsequent_indent="  ")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table."""
    return ["| " + " | ".join(row) + " |" for row in (heads, ["---"] * len(heads), *rows)]


def written(machine: Mapping[str, str]) -> str:
    """Return the facts of the machine in a line."""
    return ", ".join(f"{name} {value}" for name, value in machine.items())
