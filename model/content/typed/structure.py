"""Values of types that annotations say everything about: dataclasses, TypedDicts, lists of such, unions, dates.

What is built is what JSON (RFC 8259) or a map has: an object becomes a dataclass, NamedTuple or TypedDict by the names
of its fields, and may have more; an array a list, tuple or set; a string also an enum, a date or time of ISO 8601, a
Decimal or a UUID. Nothing is guessed: a string is not taken for a number, nor true for 1.
"""

from __future__ import annotations

import json
from collections import abc
from collections.abc import Callable, Mapping
from dataclasses import InitVar, is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NewType,
    NotRequired,
    Required,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from redelivery.model.callables import name_of
from redelivery.model.content.typed.libraries import Build, Misfit, from_library
from redelivery.model.content.typed.scalars import SCALARS, ExactFloat, called, expected
from redelivery.model.errors import ConfigError

_SHOWN: Final = 60  # characters of a name in the body
_UNIONS: Final = (Union, UnionType)
_WRAPPERS: Final = (Annotated, Required, NotRequired, Final)
_ARRAYS: Final[Mapping[Any, Callable[[list[Any]], Any]]] = {
    list: list,
    abc.Sequence: list,
    abc.Iterable: list,
    abc.Collection: list,
    abc.MutableSequence: list,
    set: set,
    abc.Set: frozenset,
    abc.MutableSet: set,
    frozenset: frozenset,
}
_OBJECTS: Final = (dict, abc.Mapping, abc.MutableMapping)
_WHOLE: Final = (date, datetime, time, bool)


class Structure:
    """The builder of one type."""

    def __init__(self, kind: object) -> None:
        types = _Types(kind)
        self._build = types.builder(kind, "")
        self._exact = types.exact
        self._from_text = _is_scalar(kind) or get_origin(kind) in _UNIONS

    @classmethod
    def of(cls, kind: Any) -> Structure | None:
        """For a type that is built here; None: it is none. Raises ConfigError: its annotations say too little."""
        kind = _unwrapped(kind)
        known = get_origin(kind) is not None or _is_scalar(kind) or _has_fields(kind)
        return cls(kind) if known else None

    def of_body(self, body: object) -> Any:
        """The value that a message's body is: of a text or bytes by its JSON; an enum, date, … by the text itself too.

        Raises:
            Misfit, ValueError: it is not of this type, or no JSON.
        """
        if not isinstance(body, str | bytes):
            return self._build(body, "")
        try:
            return self._build(json.loads(body, parse_float=ExactFloat if self._exact else None), "")
        except (Misfit, ValueError):
            if not self._from_text:
                raise
            try:
                return self._build(body if isinstance(body, str) else body.decode(), "")
            except (Misfit, ValueError):
                pass
            raise


class _Types:
    """Builders of the types that one type is made of; ``exact``: one of them is a Decimal."""

    def __init__(self, root: object) -> None:
        self._root = type_name(root)
        self._known: dict[Any, Build] = {}
        self.exact = False

    def builder(self, kind: Any, place: str) -> Build:
        """The builder of a type. Raises ConfigError: there is none; ``place``: of its field."""
        try:
            if kind in self._known:
                return self._known[kind]
        except TypeError:  # a type with what cannot be hashed, as Annotated may have
            return self._new(kind, place)
        # a type may contain itself: until it is known, what contains it asks for it late
        self._known[kind] = lambda value, where: self._known[kind](value, where)
        self._known[kind] = self._new(kind, place)
        return self._known[kind]

    def _new(self, kind: Any, place: str) -> Build:
        library = from_library(kind)
        if library is not None:
            return library
        origin, arguments = get_origin(kind), get_args(kind)
        if _unwrapped(kind) is not kind:
            return self.builder(_unwrapped(kind), place)
        if origin is not None or kind in (*_ARRAYS, *_OBJECTS, tuple):
            return self._of_parts(kind, origin or kind, arguments, place)
        if _has_fields(kind):
            return self._object(kind, place)
        return self._scalar(kind, place)

    def _of_parts(self, kind: Any, origin: Any, arguments: tuple[Any, ...], place: str) -> Build:
        if origin in _UNIONS:
            return self._union(arguments, place)
        if origin is Literal:
            return lambda value, where: _literal(arguments, value, where)
        if origin in _ARRAYS:
            return self._array(_ARRAYS[origin], arguments[0] if arguments else Any, place)
        if origin is tuple:
            return self._tuple(arguments or (Any, ...), place)
        if origin in _OBJECTS:
            key, value = arguments or (str, Any)
            return self._mapping(key, value, place)
        raise self._unknown(kind, place)

    def _scalar(self, kind: Any, place: str) -> Build:
        if kind in (Any, object):
            return lambda value, _where: value
        if isinstance(kind, type):
            if issubclass(kind, Enum):
                return lambda value, where: called(kind, value, where, f"is none of the values of {kind.__name__}")
            if kind is Decimal:
                self.exact = True
            if kind in SCALARS:
                return SCALARS[kind]
        if kind is None:
            return SCALARS[NoneType]
        raise self._unknown(kind, place)

    def _unknown(self, kind: object, place: str) -> ConfigError:
        at = f": the field {place}" if place else ""
        kind = "a type variable" if isinstance(kind, TypeVar) else type_name(kind)
        return ConfigError(
            f"body_type={self._root}{at} has the type {kind}, which JSON has nothing for: use a dataclass, TypedDict, "
            "list, dict, str, int, float, bool, None, an enum, date, datetime, time, Decimal, UUID, or a model of "
            "pydantic or msgspec; or pass a function that takes the body"
        )

    def _hints(self, kind: Any, place: str) -> dict[str, Any]:
        try:
            return get_type_hints(kind, localns={kind.__name__: kind}, include_extras=True)
        except (NameError, TypeError, AttributeError, SyntaxError) as error:
            at = f" (the field {place})" if place else ""
            raise ConfigError(
                f"body_type={self._root}{at}: an annotation of {kind.__name__} cannot be read: {error}; what it names "
                "must be known in the module of the class, and not in a function or for type checkers only"
            ) from error

    def _object(self, kind: Any, place: str) -> Build:
        hints = self._hints(kind, place)
        if is_typeddict(kind):
            fields = dict.fromkeys(hints)
            said = {
                name: get_origin(hint) for name, hint in hints.items()
            }  # which a str of an annotation hides from it
            always = kind.__required_keys__
            required = {
                name for name, how in said.items() if how is Required or (name in always and how is not NotRequired)
            }
        else:
            parameters = signature(kind).parameters.values()
            fields = {each.name: None for each in parameters if each.kind is not Parameter.VAR_KEYWORD}
            required = {each.name for each in parameters if each.default is Parameter.empty}
        builders = {name: self.builder(hints.get(name, Any), f"{place}.{name}".removeprefix(".")) for name in fields}

        def build(value: object, where: str) -> Any:
            given = expected(value, Mapping, "an object", where)
            missing = [name for name in builders if name not in given and name in required]
            if missing:
                raise Misfit(_at(where, missing[0]), "it is missing")
            found = {name: each(given[name], _at(where, name)) for name, each in builders.items() if name in given}
            try:
                return kind(**found)
            except (TypeError, ValueError) as error:  # of a class's own checks
                raise Misfit(where, f"{kind.__name__}: {error}") from error

        return build

    def _array(self, make: Callable[[list[Any]], Any], item: Any, place: str) -> Build:
        each = self.builder(item, f"{place}[]")

        def build(value: object, where: str) -> Any:
            items = expected(value, list, "an array", where)
            return make([each(one, f"{where}[{at}]") for at, one in enumerate(items)])

        return build

    def _tuple(self, kinds: tuple[Any, ...], place: str) -> Build:
        if kinds[-1] is Ellipsis:
            return self._array(tuple, kinds[0], place)
        builders = [self.builder(kind, f"{place}[{at}]") for at, kind in enumerate(kinds) if kind != ()]

        def build(value: object, where: str) -> Any:
            items = expected(value, list, "an array", where)
            if len(items) != len(builders):
                raise Misfit(where, f"it has {len(items)} values, not {len(builders)}")
            return tuple(
                each(one, f"{where}[{at}]") for at, (each, one) in enumerate(zip(builders, items, strict=True))
            )

        return build

    def _mapping(self, key: Any, value: Any, place: str) -> Build:
        names, values = self.builder(key, f"{place} (a key)"), self.builder(value, f"{place}[]")
        whole = isinstance(key, type) and issubclass(key, int) and not issubclass(key, bool | Enum)

        def build(found: object, where: str) -> Any:
            given = expected(found, Mapping, "an object", where)
            return {
                names(_integer(name) if whole else name, f"{where} (a key)"): values(each, _at(where, name))
                for name, each in given.items()
            }

        return build

    def _union(self, kinds: tuple[Any, ...], place: str) -> Build:
        builders = [(kind, self.builder(kind, place)) for kind in kinds]

        def build(value: object, where: str) -> Any:
            faults = []
            for kind, each in builders:
                try:
                    return each(value, where)
                except Misfit as error:
                    faults.append((kind, str(error)))
            serious = [each for each in faults if each[0] is not NoneType] or faults
            if len(serious) == 1:
                raise Misfit("", serious[0][1])
            raise Misfit(where, "it fits none of " + "; ".join(f"{type_name(kind)} ({why})" for kind, why in serious))

        return build


def _unwrapped(kind: Any) -> Any:
    """Without what says nothing about JSON: Annotated, Required, NewType, ``type X = …`` of Python 3.12, InitVar."""
    while True:
        if get_origin(kind) in _WRAPPERS:
            kind = get_args(kind)[0]
        elif isinstance(kind, NewType):
            kind = kind.__supertype__
        elif type(kind).__name__ == "TypeAliasType":
            kind = kind.__value__
        elif isinstance(kind, InitVar):
            kind = kind.type
        else:
            return kind


def _is_scalar(kind: Any) -> bool:
    """True: a plain type that is not called with a body, as bool("false") is true."""
    return kind in _WHOLE or (isinstance(kind, type) and issubclass(kind, Enum))


def _has_fields(kind: Any) -> bool:
    if not isinstance(kind, type):
        return False
    named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return is_dataclass(kind) or is_typeddict(kind) or named or hasattr(kind, "__attrs_attrs__")


def type_name(kind: object) -> str:
    """The name of a type in an error."""
    return name_of(kind) if isinstance(kind, type) and get_origin(kind) is None else str(kind).replace("typing.", "")


def _at(place: str, name: object) -> str:
    return f"{place}.{str(name)[:_SHOWN]}".removeprefix(".")


def _literal(choices: tuple[Any, ...], value: object, place: str) -> Any:
    for each in choices:
        if each.__class__ is value.__class__ and each == value:
            return each
        if isinstance(each, Enum) and each.value == value:
            return each
    raise Misfit(place, f"it is none of {', '.join(map(repr, choices))}")


def _integer(name: str) -> object:
    return int(name) if name.removeprefix("-").isdecimal() else name
