"""YAML as text: strings in quotes, so that no reader takes one for a number or a flag."""

from __future__ import annotations

from redelivery.model.errors import ConfigError


def quoted(text: str) -> str:
    """Return a str as a scalar in double quotes, on one line.

    Raises:
        ConfigError: it has half a surrogate pair, which no file can hold.
    """
    if any("\ud800" <= each <= "\udfff" for each in text):
        raise ConfigError(f"{text!r} cannot be written into YAML: it has half a surrogate pair")
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character == " " or character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
