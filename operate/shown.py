"""Shows what others have written (bodies, names, causes, a broker's words) so that nothing acts on who reads it.

Neither a terminal nor a browser is to obey it: controls, and what turns the direction of writing, are shown by their
numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final
from unicodedata import category

# Without these some languages cannot be written, nor emoji of several parts; beside what is ASCII they only hide.
_JOINERS: Final = "\u200c\u200d"
# Controls, what turns the direction of a text or cannot be seen, ends of lines and paragraphs, halves of characters.
_HIDDEN: Final = frozenset(("Cc", "Cf", "Zl", "Zp", "Cs"))
_BLANK: Final = "\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # letters without a form
_MARKS: Final = frozenset(("Mn", "Me"))
_MOST_MARKS: Final = 4  # on one character; more of them reach into the lines above and below
_ASSIGNED: Final = (range(0x20000), range(0xE0000, 0xE1000))  # where there are any of these


def number_of(number: int, one: str, many: str = "") -> str:
    """``1 letter``, ``2 letters``."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def visible(text: object, limit: int | None = None, *, lines: bool = False) -> str:
    r"""A value as a str in which nothing acts on its reader: ESC is shown as ``\x1b``, U+202E as ``\u202e``.

    Args:
        limit: characters of the text, at most; ``…`` stands for the rest.
        lines: ends of lines and tabs are as they are.
    """
    said = str(text)
    if limit is not None and len(said) > limit:
        said = said[:limit] + "…"
    if said.isascii() and said.isprintable():
        return said
    return _escape(said, _escaped, "\n\t" if lines else "")


def as_json(value: Any, indent: int | None = None) -> str:
    """JSON in which all that `visible` escapes is escaped as JSON does it."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if text.isascii() and text.isprintable():
        return text
    return _escape(text, lambda character: json.dumps(character)[1:-1], "\n")


def _escape(text: str, escaped: Callable[[str], str], kept: str) -> str:
    """The text with what acts on its reader, or hides in it, escaped."""

    def run(found: re.Match[str]) -> str:
        """The same of characters in a row that may have to be."""
        marks, whole = 0, []
        for at, each in enumerate(found[0], found.start()):
            if each in _BLANK:
                shown = False
            elif category(each) in _MARKS:
                marks += 1
                shown = marks <= _MOST_MARKS
            else:
                shown = each in kept or (each in _JOINERS and _joins(text, at))
            whole.append(each if shown else escaped(each))
        return "".join(whole)

    return _suspicious().sub(run, text)


def _joins(text: str, at: int) -> bool:
    """Check whether the joiner there stands between characters that it can join."""
    beside = text[max(0, at - 1) : at] + text[at + 1 : at + 2]
    return len(beside) == 2 and not any(each.isascii() or each in _JOINERS for each in beside)


@cache
def _suspicious() -> re.Pattern[str]:
    """Characters that are to be escaped, or may have to be."""
    kinds = _HIDDEN | _MARKS
    found = [code for part in _ASSIGNED for code in part if category(chr(code)) in kinds]
    return re.compile(f"{_class([*found, *map(ord, _BLANK)])}+")


def _class(codes: Iterable[int]) -> str:
    """The characters of these codes as a regular expression has them, in ranges."""
    found: list[list[int]] = []
    for code in sorted(codes):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in found) + "]"


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
