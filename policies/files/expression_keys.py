"""Regular expressions of files as keys of our maps, where they mean the same: ``^orders\\.`` is ``orders.*.>``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final

from redelivery.policies.destinations.patterns import ONE, REST

_parser: Final[Any] = import_module("re._parser")  # see `expressions`
_MOST: Final = 100  # alternatives of one expression
# In the text of an alternative: where a name begins and ends, any characters, at least one, one word, and any one
# character, which is probably meant as a dot.
_BEGIN, _END, _ANYTHING, _SOMETHING, _WORD, _DOT = "\0\1\2\3\4\5"


class _UnnameableError(Exception):
    """An expression has something for which there is no key."""


@dataclass(frozen=True, slots=True)
class ExpressionKeys:
    """``keys``: what they match, the expression matches, too. ``complete``: and it matches nothing else."""

    keys: tuple[str, ...] = ()
    complete: bool = False


def keys_of(expression: str, *, within: bool) -> ExpressionKeys:
    """Return the keys for what a regular expression matches as a whole name, or (``within``) anywhere in it."""
    parsed = _parser.parse(expression)
    if parsed.state.flags & re.IGNORECASE:
        return ExpressionKeys()
    try:
        texts = _texts(parsed, [""])
    except _UnnameableError:
        return ExpressionKeys()
    keys, complete = [], True
    for text in texts:
        key, same = _key(text.replace(_DOT, "."), within)
        keys += [key] if key is not None else []
        complete = complete and same and _DOT not in text
    return ExpressionKeys(tuple(dict.fromkeys(keys)), complete)


def _key(text: str, within: bool) -> tuple[str | None, bool]:
    """The key of one alternative; None: there is none. And whether it is for all that the alternative matches."""
    if within:
        text = text if text.startswith(_BEGIN) else _ANYTHING + text
        text = text if text.endswith(_END) else text + _ANYTHING
    text = text.lstrip(_BEGIN).rstrip(_END)
    begin = text.rstrip(_ANYTHING + _SOMETHING)
    if {_BEGIN, _END, _ANYTHING, _SOMETHING} & set(begin) or text.count(_SOMETHING) > 1:
        return None, False
    words = [ONE if word == _WORD else word for word in begin.split(".")]
    if any(_WORD in word for word in words):
        return None, False
    if begin == text:
        return ".".join(words), "" not in words
    if not begin:
        return REST, True
    if not words[-1]:  # what begins so, and has more words
        return ".".join([*words[:-1], ONE, REST]), True
    more = [ONE] if _SOMETHING in text else []
    return ".".join([*words, *more, REST]), False  # without the dot at its end also what has more characters


def _texts(items: Iterable[Any], before: list[str]) -> list[str]:
    """All alternatives of a sequence, each behind all that stand before it."""
    for item, value in items:
        before = [text + more for text in before for more in _alternatives(str(item), value)]
        if len(before) > _MOST:
            raise _UnnameableError
    return before


def _alternatives(name: str, value: Any) -> list[str]:
    if name == "LITERAL":
        return [chr(value)]
    if name == "ANY":
        return [_DOT]
    if name == "IN" and all(str(kind) == "LITERAL" for kind, _ in value):
        return [chr(character) for _, character in value]
    if name == "AT" and str(value) in ("AT_BEGINNING", "AT_END"):
        return [_BEGIN if str(value) == "AT_BEGINNING" else _END]
    if name == "SUBPATTERN" and not value[1] and not value[2]:  # without flags of its own
        return _texts(value[3], [""])
    if name == "BRANCH":
        return [text for way in value[1] for text in _texts(way, [""])]
    if name == "MAX_REPEAT" and value[1] >= _parser.MAXREPEAT:
        repeated = [(str(kind), of) for kind, of in value[2]]
        if value[0] <= 1 and repeated == [("ANY", None)]:
            return [_SOMETHING if value[0] else _ANYTHING]
        if value[0] == 1 and repeated == [("NOT_LITERAL", ord("."))]:
            return [_WORD]
    raise _UnnameableError
