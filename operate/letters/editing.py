"""Edits letters: each is shown as a JSON object, changed by a person or a program, and sent as what it has become.

The object has what its sender wrote, and nothing that a broker or its failure has added. JSON is shown
as such (``body_type`` is ``json``), and is written again with the spaces that it had.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from decimal import Decimal
from difflib import unified_diff
from typing import Any, Final, TypeAlias

from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError, MessageFormatError
from redelivery.model.messages import Message
from redelivery.operate.letters.receipts.receipt import PlannedLetter, content_of
from redelivery.operate.letters.records import from_record, to_record
from redelivery.operate.letters.routes import MARKS, Leaving, NoWayError, back
from redelivery.policies.dead_letter_headers import is_broker_owned

EDITED: Final = (
    *("body_type", "body", "properties", "correlation_id", "reply_to", "type"),
    *("group_id", "group_sequence", "priority", "persistent"),
)
"""The names of what can be edited."""
Change: TypeAlias = Callable[[dict[str, Any]], dict[str, Any] | None]
"""Returns the changed object; None: the letter stays. Raises ConfigError: it cannot be changed so."""
_STYLES: Final[tuple[dict[str, Any], ...]] = tuple(
    {"separators": separators, "indent": indent, "ensure_ascii": ascii}
    for separators, indent in (((",", ":"), None), ((", ", ": "), None), ((",", ": "), 2), ((",", ": "), 4))
    for ascii in (False, True)
)
_STEP: Final = re.compile(r"\.?([^.\[\]\"]+)|\.?\"([^\"]*)\"|\[(\d+)\]")
_TEXTS: Final = ("correlation_id", "reply_to", "type", "group_id")
_TYPED: Final = ("$byte", "$short", "$long", "$float", "$double")


def editable(letter: Message) -> dict[str, Any]:
    """Return the object that is edited.

    Raises:
        MessageFormatError: the letter's body or a property cannot be read, and would be lost.
    """
    record = to_record(letter)
    if "unreadable" in record or "unreadable_properties" in record:
        what = record.get("unreadable") or f"properties that cannot be read: {record['unreadable_properties']}"
        raise MessageFormatError(f"letter {letter.message_id} cannot be edited: {what}")
    found = {name: record[name] for name in EDITED}
    properties = record["properties"].items()
    found["properties"] = {name: value for name, value in properties if not is_broker_owned(name) and name not in MARKS}
    if found["body_type"] == "text" and (parsed := _parsed(found["body"])) is not None:
        found["body_type"], found["body"] = "json", parsed
    return found


class Edited:
    """The route of a letter that is changed, and goes back as `routes.back` says.

    A letter that is not changed stays. Calling it raises ConfigError where the result is no message.

    Attributes:
        changed: what the letters become, in the order in which it was asked for.
    """

    def __init__(self, change: Change, to: Destination | None, run: str) -> None:
        self._change = change
        self._returning = back(to, run)
        self.changed: list[PlannedLetter] = []

    def __call__(self, letter: Message) -> Leaving | None:
        """See `routes.Route`."""
        leaving = self._returning(letter)
        before = editable(letter)
        after = self._change(deepcopy(before))
        if leaving is None or after is None or after == before:
            raise NoWayError(f"letter {letter.message_id} was not changed")
        record = _record(before, after, letter)
        message = from_record(record)
        marks = {name: leaving.message.properties[name] for name in MARKS}
        message.properties = {**message.properties, **marks}
        self.changed.append(PlannedLetter(letter.message_id, content_of(letter), after))
        return Leaving(message, leaving.destination, _priority(record), _persistent(record))


def difference(letter: Message, change: Change) -> Iterator[str]:
    """The lines of a unified diff between a letter and what a change makes of it; none where it stays."""
    before = editable(letter)
    after = change(deepcopy(before))
    if after is None or after == before:
        return
    was, will = (json.dumps(each, indent=2, ensure_ascii=False).split("\n") for each in (before, after))
    name = str(letter.message_id)
    yield from unified_diff(was, will, f"{name} as it failed", f"{name} edited", lineterm="")


def assigning(assignments: Iterable[str]) -> Change:
    """The change by ``name=value``, such as ``body.price=5``, ``body.items[0].sku=A7`` or ``properties.tenant=eu``.

    A value is JSON, or else a string; a name with a full stop in it stands in double quotes. A property that is a
    string, as all are over STOMP, stays one; a number keeps its type of AMQP. Raises ConfigError: one is not written
    so.
    """
    parsed = [_assignment(each) for each in assignments]

    def change(record: dict[str, Any]) -> dict[str, Any]:
        for path, value, text in parsed:
            if path == ["body"] and record["body_type"] in ("text", "json"):
                json_ = isinstance(value, dict | list)
                record["body_type"] = "json" if json_ else "text"
                record["body"] = value if json_ or isinstance(value, str) else text
            elif path[0] in _TEXTS and value is not None:
                record[str(path[0])] = value if isinstance(value, str) else text
            else:
                _assign(record, path, value, text)
        return record

    return change


def replacing(before: dict[str, Any], after: dict[str, Any], queue: Destination) -> Change:
    """The change of one letter to what somebody has made of it. It raises ConfigError where that is another by now."""

    def change(record: dict[str, Any]) -> dict[str, Any]:
        if json.loads(json.dumps(record)) != before:
            raise ConfigError(f"{queue} has changed meanwhile: the letter is not what was edited; nothing was sent")
        return after

    return change


def program(source: str, file: str) -> Change:
    """The change by the function ``fix(letter)`` of a Python program, which returns the object, or None to leave it.

    Raises:
        ConfigError: it is not Python, cannot be run, or has no such function.
    """
    names: dict[str, Any] = {"__name__": "fix", "__file__": file}
    try:
        exec(compile(source, file, "exec"), names)  # noqa: S102  # it is the operator's own
    except Exception as error:  # whatever the program does
        raise ConfigError(f"--with {file}: {type(error).__name__}: {error}") from error
    fix = names.get("fix")
    if not callable(fix):
        raise ConfigError(f"--with {file}: it has no function fix(letter) that returns the changed letter")

    def change(record: dict[str, Any]) -> dict[str, Any] | None:
        try:
            found = fix(record)
        except Exception as error:  # whatever the program does
            raise ConfigError(f"--with {file}: fix() raised {type(error).__name__}: {error}") from error
        if found is not None and not isinstance(found, dict):
            raise ConfigError(f"--with {file}: fix() returned a {type(found).__name__}, not the letter or None")
        return found

    return change


def _parsed(text: str) -> Any:
    """The value of a JSON object or array whose text can be written again without a loss; None: it is no such text."""
    if text[:1] not in ("{", "["):
        return None
    try:
        found = json.loads(text, parse_float=_float, parse_int=_int, parse_constant=_refused, object_pairs_hook=_once)
    except (ValueError, RecursionError):
        return None
    return found


def _float(text: str) -> float:
    if Decimal(text) != Decimal(repr(float(text))):
        raise ValueError(text)
    return float(text)


def _int(text: str) -> int:
    if text == "-0":
        raise ValueError(text)
    return int(text)


def _refused(text: str) -> Any:
    raise ValueError(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def _record(before: Mapping[str, Any], after: dict[str, Any], letter: Message) -> dict[str, Any]:
    """Return what `from_record` reads. Raises ConfigError: a name is unknown, or missing."""
    unknown, missing = set(after) - set(EDITED), set(EDITED) - set(after)
    if unknown or missing:
        what = f"unknown: {', '.join(sorted(unknown))}" if unknown else f"missing: {', '.join(sorted(missing))}"
        raise ConfigError(f"an edited letter has the names {', '.join(EDITED)}; {what}")
    owned = [name for name in after["properties"] or {} if is_broker_owned(name)]
    if owned:
        raise ConfigError(f"the property {owned[0]} is a broker's own: it cannot be set")
    if after["body_type"] != "json":
        return after
    if after["body"] == before["body"]:
        return {**after, "body_type": "text", "body": letter.body}
    if not isinstance(after["body"], dict | list):
        raise ConfigError("the body of body_type json must be an object or an array; another text has body_type text")
    return {**after, "body_type": "text", "body": json.dumps(after["body"], **_style(letter.body))}


def _style(text: object) -> dict[str, Any]:
    """Return the style in which JSON was written, as far as `json.dumps` can write so; else with one space."""
    if isinstance(text, str):
        value = json.loads(text) if text[:1] in ("{", "[") else None
        for style in _STYLES:
            if json.dumps(value, **style) == text:
                return style
    return _STYLES[2]


def _assignment(text: str) -> tuple[list[str | int], Any, str]:
    name, equals, value = text.partition("=")
    path: list[str | int] = []
    at = 0
    while at < len(name) and (found := _STEP.match(name, at)):
        path.append(int(found[3]) if found[3] is not None else found[1] if found[1] is not None else found[2])
        at = found.end()
    if not equals or at < len(name) or not path or path[0] not in EDITED or path[0] == "body_type":
        known = ", ".join(each for each in EDITED if each != "body_type")
        raise ConfigError(f"--set {text}: write NAME=VALUE, such as body.price=5; NAME begins with one of {known}")
    try:
        return path, json.loads(value), value
    except ValueError:
        return path, value, value


def _assign(record: dict[str, Any], path: list[str | int], value: Any, text: str) -> None:
    at: Any = record
    for number, step in enumerate(path):
        last = number == len(path) - 1
        if not _has(at, step, new=last):
            said = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path[: number + 1])[1:]
            raise ConfigError(f"--set: the letter has no {said}")
        if last:
            before = at.get(step) if isinstance(at, dict) else at[step]
            property_ = path[0] == "properties"
            at[step] = (
                text if property_ and isinstance(before, str) and not isinstance(value, str) else _typed(before, value)
            )
        else:
            at = at[step]


def _has(value: Any, step: str | int, *, new: bool) -> bool:
    """Check whether there is such an item; or, of an object, can be."""
    if isinstance(step, int):
        return isinstance(value, list) and step < len(value)
    return isinstance(value, dict) and (new or step in value)


def _typed(before: Any, value: Any) -> Any:
    """The value with the type of AMQP that the one before had."""
    if isinstance(before, dict) and len(before) == 1 and isinstance(value, int | float) and not isinstance(value, bool):
        (name,) = before
        return {name: value} if name in _TYPED else value
    return value


def _priority(record: Mapping[str, Any]) -> int:
    priority = record["priority"]
    if not isinstance(priority, int) or isinstance(priority, bool) or not 0 <= priority <= 9:
        raise ConfigError(f"priority={priority!r}: must be an integer from 0 to 9")
    return priority


def _persistent(record: Mapping[str, Any]) -> bool:
    if not isinstance(record["persistent"], bool):
        raise ConfigError(f"persistent={record['persistent']!r}: must be true or false")
    return record["persistent"]
