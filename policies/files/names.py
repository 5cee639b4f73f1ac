"""How files spell values: kinds of values, and tables of a file's names with the fields that they set."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from redelivery.model.errors import ConfigError
from redelivery.policies.checks import INT_MAX, LONG_MAX, read_flag, read_number, read_whole, to_ms


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value: ``read`` makes it of a setting's name and text, ``spell`` writes it as text."""

    read: Callable[[str, str], Any]
    spell: Callable[[Any], str] = str


Names: TypeAlias = Mapping[str, tuple[str, Kind]]
"""Name in a file -> the field here, and the kind of its value."""


def whole(minimum: int, maximum: int = INT_MAX) -> Kind:
    """Return the kind of integers between two bounds, both included."""
    return Kind(lambda name, text: read_whole(name, text, minimum, maximum))


def number(minimum: float, maximum: float = math.inf) -> Kind:
    """Return the kind of finite numbers between two bounds, both included."""
    return Kind(lambda name, text: read_number(name, text, minimum, maximum))


def one_of(*choices: str) -> Kind:
    """Return the kind of these words."""

    def read(name: str, text: str) -> str:
        if text not in choices:
            raise ConfigError(f"{name}={text!r}: use one of {', '.join(choices)}")
        return text

    return Kind(read)


TEXT: Final = Kind(lambda _, text: text)
FLAG: Final = Kind(read_flag, lambda value: str(value).lower())
SIZE: Final = whole(0, LONG_MAX)
MILLISECONDS: Final = Kind(
    lambda name, text: read_whole(name, text, 0, LONG_MAX) / 1000, lambda seconds: str(to_ms(seconds))
)


def changed(names: Names, value: object, usual: object) -> dict[str, str]:
    """Spell the fields that differ from those of the usual value, by their names in the file."""
    pairs = ((name, kind, getattr(value, field), getattr(usual, field)) for name, (field, kind) in names.items())
    return {name: kind.spell(given) for name, kind, given, default in pairs if given != default}
