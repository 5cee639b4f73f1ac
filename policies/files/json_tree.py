"""JSON as a tree of values that know where they stand."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from json import JSONDecodeError, JSONDecoder, detect_encoding
from json.decoder import JSONArray, JSONObject  # type: ignore[attr-defined]  # as json.scanner calls them; not in its stub
from json.scanner import py_make_scanner  # type: ignore[attr-defined]  # as above
from typing import Any, Final, TypeAlias

from redelivery.policies.files.places import ConfigFileError, Place, problem_at

Scan: TypeAlias = Callable[[str, int], tuple[Any, int]]
_LONGEST_NUMBER: Final = 400  # digits
MOST: Final = 1_000_000  # values of a file
_STRING_OR_MORE: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|([\[{](?=\s*[^\s\]}])|,)', re.DOTALL)
_STRING_OR_COMMENT: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|/\*.*?(?:\*/|\Z)|//[^\n]*+', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Json:
    """``value``: a dict or list of these, or a str, number, bool or None."""

    value: Any
    place: Place

    def get(self, name: str) -> Json | None:
        """Return a member of an object; None where there is none, it is null, or this is not an object."""
        found = self.value.get(name) if isinstance(self.value, dict) else None
        return found if isinstance(found, Json) and found.value is not None else None

    def member(self, name: str, default: str = "") -> str:
        """Return the text of a member, or the default where there is none."""
        found = self.get(name)
        return default if found is None else found.text

    def items(self) -> Iterator[tuple[str, Json]]:
        """Iterate over the members of an object; none where this is not one."""
        return iter(self.value.items()) if isinstance(self.value, dict) else iter(())

    def __iter__(self) -> Iterator[Json]:
        """Iterate over the elements of a list; none where this is not one."""
        return iter(self.value) if isinstance(self.value, list) else iter(())

    @property
    def text(self) -> str:
        """The text of a str as it is, and of a number, ``true`` and ``false`` as JSON writes them."""
        return self.value if isinstance(self.value, str) else str(self.value).lower()


def listed(section: Json | None, name: str, problem: Callable[[str, Place], object]) -> Iterator[Json]:
    """Iterate over the elements of a list that should have objects; what else is there is a problem."""
    if section is not None and not isinstance(section.value, list):
        problem(f"{name} is not a list", section.place)
    for each in section or ():
        if isinstance(each.value, dict):
            yield each
        else:
            problem(f"{name} has an element that is not an object", each.place)


def inside(value: Json, name: str, problem: Callable[[str, Place], object]) -> Json | None:
    """Return the document that a str holds; None where it holds none, which is a problem then."""
    try:
        return parse_json(value.value.encode(), value.place.file, problem, value.place)
    except ConfigFileError as error:
        problem(f"{name}: {error.problems[0].text}", value.place)
        return None


def parse_json(content: bytes, file: str, problem: Callable[[str, Place], object], within: Place | None = None) -> Json:
    """Return the value of a document in UTF-8, -16 or -32; comments as in Java, which Broker-J's own files have, are
    allowed.

        ``problem``: notified of each name that stands twice in an object: of these the brokers take the last one.
        ``within``: where it stands, if it is itself a str of another document: all its places are this one then. Raises
        ConfigFileError: it is not JSON, nested too deeply, or has more than MOST values.
    """
    try:
        text = _STRING_OR_COMMENT.sub(_blank, decoded(content))
    except UnicodeDecodeError as error:
        what = f"not readable as JSON: {error.reason} at byte {error.start}"
        raise problem_at(within or Place(file), what) from error
    more = (found for found in _STRING_OR_MORE.finditer(text) if found[1])  # each is one value more
    if next(islice(more, MOST - 1, None), None) is not None:
        raise problem_at(within or Place(file), f"more than {MOST} values")
    places = _Places(text, file, within)
    try:
        return _decoder(places, problem).decode(text)  # type: ignore[no-any-return]  # a Json, as the decoder makes them
    except JSONDecodeError as error:
        raise problem_at(places.at(error.pos), f"not JSON: {error.msg}") from error
    except (RecursionError, ValueError) as error:
        what = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise problem_at(within or Place(file), f"not readable as JSON: {what}") from error


def decoded(content: bytes) -> str:
    """Return the text of a document without a byte order mark.

    Raises:
        UnicodeDecodeError: it is not text in UTF-8, -16 or -32.
    """
    return content.decode(detect_encoding(content)).removeprefix("\ufeff")


def _blank(found: re.Match[str]) -> str:
    """A str as it is, and a comment as blanks, so that lines and columns stay."""
    return found[0] if found[0].startswith('"') else re.sub(r"[^\n]", " ", found[0])


class _Places:
    """Line and column of positions that only grow."""

    def __init__(self, text: str, file: str, within: Place | None) -> None:
        self._text = text
        self._file = file
        self._within = within
        self._starts = [0]
        for at, character in enumerate(text):
            if character == "\n":
                self._starts.append(at + 1)

    def at(self, position: int) -> Place:
        if self._within is not None:
            return self._within
        from bisect import bisect_right

        line = bisect_right(self._starts, position)
        return Place(self._file, line, position - self._starts[line - 1] + 1)


def _decoder(places: _Places, problem: Callable[[str, Place], object]) -> JSONDecoder:
    """A decoder of the standard library whose every value is a Json: it scans what is in lists and objects by ours."""
    decoder: Any = JSONDecoder(parse_int=_integer)
    inner: Scan

    def scan(text: str, at: int) -> tuple[Json, int]:
        value, end = inner(text, at)
        return Json(value, places.at(at)), end

    def members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        found: dict[str, Json] = {}
        for name, value in pairs:
            if name in found:
                first = found[name].place
                problem(f"{name!r} stands twice: here, and in line {first.line} ({first}); leave one out", value.place)
            found[name] = value
        return found

    def parse_object(start: Any, strict: Any, _scan: Any, _hook: Any, _pairs_hook: Any, *rest: Any) -> Any:
        return JSONObject(start, strict, scan, None, members, *rest)

    def parse_array(start: Any, _scan: Any, *rest: Any) -> Any:
        return JSONArray(start, scan, *rest)

    decoder.parse_object = parse_object
    decoder.parse_array = parse_array
    inner = py_make_scanner(decoder)
    decoder.scan_once = scan
    return decoder  # type: ignore[no-any-return]  # Any, since the stub lacks the three attributes


def _integer(digits: str) -> int:
    if len(digits) > _LONGEST_NUMBER:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)
