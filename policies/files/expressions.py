"""Regular expressions of files: refused where matching one could take for ever.

Python's matcher tries every way in which a name can be split between repetitions. Where a repetition without an upper
bound repeats something that can itself end at several places, as in ``(a+)+``, there are exponentially many.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, Final

from redelivery.model.errors import ConfigError
from redelivery.policies.checks import expression

# What `re` itself uses: there is no public parser of its expressions.
_parser: Final[Any] = import_module("re._parser")
_compiler: Final[Any] = import_module("re._compiler")
_LONGEST: Final = 500  # characters
_MANY: Final = 32  # repetitions that are as bad as any number
_CHARACTERS: Final = ("LITERAL", "NOT_LITERAL", "ANY", "IN")
_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT")  # a possessive one never tries another way


def bounded_expression(text: str) -> re.Pattern[str]:
    """A compiled regular expression of a file.

    Raises:
        ConfigError: it is not one, or matching it could take for ever.
    """
    if len(text) > _LONGEST:
        raise ConfigError(f"a regular expression of {len(text)} characters: {_LONGEST} are read at most")
    compiled = expression(text)
    try:
        ambiguous = any(map(_is_ambiguous, _repeated(_parser.parse(text, compiled.flags & re.IGNORECASE))))
    except RecursionError as error:
        raise ConfigError(f"{text!r} is not a regular expression: nested too deeply") from error
    if ambiguous:
        raise ConfigError(
            f"{text!r}: matching it could take for ever, as it repeats what can end at several places: "
            "write it without a repetition in a repetition, or end what is repeated with a fixed character"
        )
    return compiled


def _repeated(parsed: Iterable[Any]) -> Iterator[Any]:
    """Iterate over what is repeated without a bound, at any depth."""
    for name, value in parsed:
        if str(name) in _REPEATS and value[1] >= _MANY:
            yield value[2]
        for part in _parts(str(name), value):
            yield from _repeated(part)


def _parts(name: str, value: Any) -> tuple[Any, ...]:
    """The expressions within one."""
    if name in (*_REPEATS, "POSSESSIVE_REPEAT"):
        return (value[2],)
    if name == "SUBPATTERN":
        return (value[3],)
    if name == "BRANCH":
        return tuple(value[1])
    if name in ("ASSERT", "ASSERT_NOT"):
        return (value[1],)
    if name == "ATOMIC_GROUP":
        return (value,)
    if name == "GROUPREF_EXISTS":
        return tuple(each for each in value[1:] if each is not None)
    return ()


def _is_ambiguous(body: Any) -> bool:
    """Say whether what is repeated can end at several places.

    It can where it has a repetition, and no character of its own that this cannot be; or ways that begin alike.
    """
    items = list(_flat(body))
    repeated = [value[2] for name, value in items if name in _REPEATS and value[0] != value[1]]
    if repeated:
        fixed = {value for name, value in items if name == "LITERAL"}
        inner = {repr(leaf): leaf for part in repeated for leaf in _leaves(part)}.values()
        return all(any(_can_be(leaf, character) for leaf in inner) for character in fixed)
    return any(name == "BRANCH" and not _distinct(value[1]) for name, value in items)


def _leaves(parsed: Iterable[Any]) -> Iterator[Any]:
    """Iterate over what stands for one character, at any depth."""
    for item in parsed:
        name = str(item[0])
        if name in _CHARACTERS:
            yield item
        for part in _parts(name, item[1]):
            yield from _leaves(part)


def _can_be(leaf: Any, character: int) -> bool:
    pattern = _parser.SubPattern(_parser.State(), [leaf])
    return _compiler.compile(pattern).match(chr(character)) is not None


def _flat(body: Any) -> Iterator[tuple[str, Any]]:
    """The items of a body, without the groups around them."""
    for name, value in body:
        if str(name) == "SUBPATTERN":
            yield from _flat(value[3])
        else:
            yield str(name), value


def _distinct(ways: Iterable[Any]) -> bool:
    """Say whether the first character says which way it is."""
    firsts = [next(_flat(way), ("", None)) for way in ways]
    characters = [value for name, value in firsts if name == "LITERAL"]
    return len(characters) == len(firsts) == len(set(characters))
