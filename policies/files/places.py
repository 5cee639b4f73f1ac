"""The places of a file where something stands, and what is wrong there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from redelivery.model.errors import ConfigError


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """``line`` and ``column`` count from 1; 0 where there are none, as in a URL. ``str()``: ``broker.xml:12:7``."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


Places = Mapping[str, Place]
"""Name of a field -> where it was set."""

NOWHERE: Final = Place("")
_SHOWN: Final = 100  # problems of a file


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting that counts for a destination.

    ``name``, ``value``: as the broker's file spells them. ``source``: the part of the file that sets it, or
    ``default``. ``place``: None for a default.
    """

    name: str
    value: str
    source: str
    place: Place | None = field(default=None, compare=False)

    def __str__(self) -> str:
        where = f" ({self.place})" if self.place else ""
        return f"{self.name} = {self.value}, from {self.source}{where}" if self.place else f"{self.name} = {self.value}"


@dataclass(frozen=True, slots=True)
class Unread:
    """A part of a file that was skipped.

    ``why``: how it decides about redelivery, expiry or dead letters, which is not modelled here; empty where it says
    nothing about them. ``part``: the place of the part that it belongs to, where it counts only with that;
    ``names``: the queues or addresses that it is about, where it is about some only.
    """

    name: str
    place: Place
    why: str = ""
    part: Place | None = None
    names: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.name} ({self.place})"

    @property
    def line(self) -> str:
        """The line that says so at the foot of what is said of the file."""
        return f"not read: {self}: {self.why}"

    def as_dict(self) -> dict[str, str]:
        """For JSON."""
        return {"name": self.name, "place": str(self.place), "why": self.why}


@dataclass(frozen=True, slots=True)
class Decisive:
    """A setting that decides about redelivery, expiry or dead letters, and is not modelled.

    ``why``: how. ``values``: those with which it does, as a whole and in lower case; its default is none of them.
    """

    why: str
    values: re.Pattern[str]

    def why_of(self, text: str) -> str:
        """Return how it decides with this value; empty where it does not."""
        return self.why if self.values.fullmatch(text.lower()) else ""


def decisive(why: str, values: str = ".*") -> Decisive:
    """Return a `Decisive` of these values, a regular expression."""
    return Decisive(why, re.compile(values, re.DOTALL))


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was not understood, and where."""

    text: str
    place: Place

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


class ConfigFileError(ConfigError):
    """A broker's file could not be read, or says things about redelivery or dead letters that were not understood.

    ``problems``: all of them, in the order of the file; the text has one line for each of the first 100.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        lines = [*map(str, problems[:_SHOWN]), *([f"and {len(problems) - _SHOWN} more"] * (len(problems) > _SHOWN))]
        super().__init__("\n".join(lines))
        self.problems = problems


def problem_at(place: Place, text: str) -> ConfigFileError:
    """Return the error of a file with one problem."""
    return ConfigFileError((Problem(text, place),))
