"""Kinds of values, read from text and spelled as text, and tables of names with the fields that they set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from redelivery.model.errors import ConfigError
from redelivery.policies.checks import INT_MAX, LONG_MAX, read_flag, read_number, read_whole, to_ms


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: ``read`` makes it of a setting's name and text, or value; ``spell`` writes it as text."""

    read: Callable[[str, Any], Any]
    spell: Callable[[Any], str] = str


Names: TypeAlias = Mapping[str, tuple[str, Kind]]
"""Name in a file or URL -> the field here, and the kind of its value."""


def whole(minimum: int, maximum: int = INT_MAX) -> Kind:
    """Return the kind of integers between two bounds, both included."""
    return Kind(lambda name, value: read_whole(name, value, minimum, maximum))


def number(minimum: float, maximum: float = math.inf) -> Kind:
    """Return the kind of finite numbers between two bounds, both included."""
    return Kind(lambda name, value: read_number(name, value, minimum, maximum))


def one_of(*choices: str) -> Kind:
    """Return the kind of these words."""

    def read(name: str, text: str) -> str:
        if text not in choices:
            raise ConfigError(f"{name}={text!r}: use one of {', '.join(choices)}")
        return text

    return Kind(read)


def spell_ms(seconds: float) -> str:
    """Spell a duration in milliseconds."""
    return str(to_ms(seconds))


TEXT: Final = Kind(lambda _, text: text)
FLAG: Final = Kind(read_flag, lambda value: str(value).lower())
SIZE: Final = whole(0, LONG_MAX)
MILLISECONDS: Final = Kind(lambda name, value: read_whole(name, value, 0, LONG_MAX) / 1000, spell_ms)


def read_all(names: Names, options: Mapping[str, object], prefix: str = "") -> dict[str, Any]:
    """Read options whose names are known, by their fields. Raises ConfigError that names a bad one with its prefix."""
    return {names[name][0]: names[name][1].read(prefix + name, value) for name, value in options.items()}


def changed(names: Names, value: object, usual: object) -> dict[str, str]:
    """Spell the fields that differ from those of the usual value, by their names in the file."""
    pairs = ((name, kind, getattr(value, field), getattr(usual, field)) for name, (field, kind) in names.items())
    return {name: kind.spell(given) for name, kind, given, default in pairs if given != default}
