"""YAML as a tree of values that know where they stand, read as Kubernetes reads it: YAML, then JSON.

PyYAML's safe loader scans and parses; no tag makes an object. What a plain scalar is (`resolved`), Go's YAML library
says, which Kubernetes, Helm and the operators use: ``010`` and ``0o10`` are 8, ``on`` and ``y`` are true, ``1e3`` is a
number, ``1:30`` is a str.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from typing import Any, Final, NoReturn

from redelivery.model.errors import ConfigError
from redelivery.policies.files.json_tree import Json, decoded
from redelivery.policies.files.places import ConfigFileError, Place, problem_at

MOST: Final = 200_000  # values of a file, those that aliases repeat included
DEEPEST: Final = 100
TEMPLATE: Final = "a template that Helm has not rendered: run `helm template` and pass what it prints"
_HELM: Final = re.compile(r"\{\{.*?(?:\}\}|$)", re.MULTILINE)
_TAG: Final = "tag:yaml.org,2002:"
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER: Final = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_BASES: Final = (16, 2, 8, 10)
_SHOWN: Final = 100  # characters of a name that an error shows
_LONGEST_NUMBER: Final = 400  # digits
_WORDS: Final = {
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}
_PLAIN: Final = ("null", "bool", "int", "float")  # tags of what is read as if it were not quoted
_TEXT: Final = ("str", "binary", "timestamp")


def parse_yaml(content: bytes, file: str) -> Json:
    """Return the documents of a file, as a list; those that are empty are left out.

    Raises:
        ConfigFileError: it is not YAML, has a key twice, a tag of a program's own, an alias within what it names, is
            nested too deeply, or has more than MOST values.
        ConfigError: PyYAML is not installed.
    """
    try:
        import yaml
    except ImportError as error:
        raise ConfigError(f"{file}: reading YAML needs PyYAML: pip install 'redelivery[yaml]'") from error
    try:
        text = decoded(content)
    except UnicodeDecodeError as error:
        what = f"not readable as YAML: {error.reason} at byte {error.start}"
        raise problem_at(Place(file), what) from error
    try:
        documents = list(_YamlTree(yaml, text, file).documents())
    except yaml.YAMLError as error:
        if rendered := _template(text, file):
            raise rendered from error
        mark = getattr(error, "problem_mark", None)
        place = Place(file, mark.line + 1, mark.column + 1) if mark else Place(file)
        what = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise problem_at(place, f"not YAML: {what}") from error
    except ConfigFileError as error:
        if rendered := _template(text, file):
            raise rendered from error
        raise
    return Json([each for each in documents if each.value is not None], Place(file, 1, 1))


def is_template(text: str) -> bool:
    """Say whether a str has an action of a template in it."""
    return "{{" in text


def resolved(text: str) -> Any:
    """Return the value of a scalar that is not quoted: None, a bool, an int, a float, or the str itself."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    plain = text if text[0] == "." else text.replace("_", "")
    if (found := _INTEGER.fullmatch(plain)) and len(plain) <= _LONGEST_NUMBER:
        base, digits = next((base, each) for base, each in zip(_BASES, found.groups()[1:], strict=True) if each)
        return int(found[1] + digits, base)
    if not _FLOAT.fullmatch(plain):
        return text
    number = float(plain)
    if math.isinf(number):
        return text
    return int(number) if number.is_integer() and abs(number) < 1e21 else number  # as JSON then writes it


def _template(text: str, file: str) -> ConfigFileError | None:
    for number, line in enumerate(text.splitlines(), 1):
        found = _HELM.search(line)
        if found and not line.lstrip().startswith("#"):
            return problem_at(Place(file, number, found.start() + 1), TEMPLATE)
    return None


class _YamlTree:
    """Makes values of the events of a parser. Each has its size: the values in it, those behind aliases included."""

    def __init__(self, yaml: Any, text: str, file: str) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._yaml = yaml
        self._events: Iterator[Any] = yaml.parse(text, Loader=loader)
        self._file = file
        self._left = MOST
        self._anchors: dict[str, tuple[Json, int] | None] = {}

    def documents(self) -> Iterator[Json]:
        for event in self._events:
            if isinstance(event, self._yaml.DocumentStartEvent):
                self._anchors = {}
                yield self._value(next(self._events), 0)[0]

    def _value(self, event: Any, depth: int) -> tuple[Json, int]:
        place = Place(self._file, event.start_mark.line + 1, event.start_mark.column + 1)
        if isinstance(event, self._yaml.AliasEvent):
            known = self._anchors.get(event.anchor, self)
            if not isinstance(known, tuple):
                self._refuse(place, f"*{event.anchor}: {'it is not known here' if known else 'it is within itself'}")
            self._count(known[1], place)
            return known
        if depth > DEEPEST:
            self._refuse(place, f"more than {DEEPEST} values within each other")
        self._count(1, place)
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        if isinstance(event, self._yaml.ScalarEvent):
            found = Json(self._scalar(event, place), place), 1
        elif isinstance(event, self._yaml.SequenceStartEvent):
            self._check_tag(event.tag, ("seq",), place)
            found = self._list(place, depth)
        else:
            self._check_tag(event.tag, ("map",), place)
            found = self._mapping(place, depth)
        if event.anchor is not None:
            self._anchors[event.anchor] = found
        return found

    def _list(self, place: Place, depth: int) -> tuple[Json, int]:
        found, size = [], 1
        while not isinstance(event := next(self._events), self._yaml.SequenceEndEvent):
            value, own = self._value(event, depth + 1)
            found.append(value)
            size += own
        return Json(found, place), size

    def _mapping(self, place: Place, depth: int) -> tuple[Json, int]:
        found: dict[str, Json] = {}
        merged: dict[str, Json] = {}
        size = 1
        while not isinstance(event := next(self._events), self._yaml.MappingEndEvent):
            key, of_key = self._value(event, depth + 1)
            value, of_value = self._value(next(self._events), depth + 1)
            size += of_key + of_value
            if isinstance(key.value, (dict, list)):
                self._refuse(key.place, "a key that is not a scalar")
            if key.value == "<<" and isinstance(event, self._yaml.ScalarEvent) and event.implicit[0]:
                for each in self._merged(value):
                    merged = {**each, **merged}
                if found:  # what is before it: Go's and Java's libraries do not agree which one counts
                    self._refuse(key.place, "'<<' after other keys: write it first")
            elif key.text in found:
                self._refuse(
                    key.place,
                    f"the key {key.text[:_SHOWN]!r} twice in one mapping (the first: {found[key.text].place})",
                )
            else:
                found[key.text] = value
        return Json({**merged, **found}, place), size

    def _merged(self, value: Json) -> Iterator[dict[str, Json]]:
        for each in value if isinstance(value.value, list) else (value,):
            if not isinstance(each.value, dict):
                self._refuse(each.place, "'<<' needs a mapping, or a list of them")
            yield each.value

    def _scalar(self, event: Any, place: Place) -> Any:
        if event.tag in (None, "!"):
            return resolved(event.value) if event.implicit[0] else event.value
        is_plain = self._check_tag(event.tag, (*_PLAIN, *_TEXT), place) in _PLAIN
        return resolved(event.value) if is_plain else event.value

    def _check_tag(self, tag: str | None, known: Collection[str], place: Place) -> str:
        name = (tag or "").removeprefix(_TAG)
        if tag not in (None, "!") and (name == tag or name not in known):
            self._refuse(place, f"the tag {(tag or '')[:_SHOWN]!r} is refused: no file makes an object of a program")
        return name

    def _count(self, number: int, place: Place) -> None:
        self._left -= number
        if self._left < 0:
            self._refuse(place, f"more than {MOST} values, those that aliases repeat included")

    def _refuse(self, place: Place, what: str) -> NoReturn:
        raise problem_at(place, what)
