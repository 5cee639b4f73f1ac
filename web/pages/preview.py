"""Says what a run would do before it is done: which letters, where they go, and what will become of them there."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination, destination
from redelivery.model.errors import ConfigError, MessageFormatError
from redelivery.model.messages import Message
from redelivery.operate.letters.editing import assigning, difference, editable, replacing
from redelivery.operate.letters.receipts.receipt import content_of
from redelivery.operate.letters.replaying.forecast import forecast, lines
from redelivery.operate.letters.replaying.planned import PlannedReplays
from redelivery.operate.letters.routes import NoWayError, Route, new_run
from redelivery.operate.letters.selection import Selection
from redelivery.operate.shown import as_json
from redelivery.operate.views.reading import find, read
from redelivery.operate.views.runs import COMMANDS, RunOrder
from redelivery.web.asked import MOST, Asked, Templated

_SHOWN: Final = 3  # letters
_TARGETS: Final = 20
_DIFFERENCE: Final = 400  # lines


@dataclass(slots=True)
class _Counted:
    """Letters by what would become of them."""

    ids: list[str] = field(default_factory=list)
    targets: Counter[Destination | None] = field(default_factory=Counter)
    first: list[Message] = field(default_factory=list)
    contents: list[str] = field(default_factory=list)
    replays: PlannedReplays = field(default_factory=PlannedReplays)
    stay: int = 0
    why: str = ""

    @property
    def letters(self) -> int:
        """The number of letters that would leave: with ids, and without."""
        return len(self.ids) + len(self.contents)


def preview(asked: Asked, connection: Connection) -> Templated:
    """Show what a run would do; the form below it names the letters that were seen here, and means no others."""
    command = asked.text("command")
    if command not in COMMANDS or command == "edit":
        raise ConfigError(f"there is no such command: {command}")
    to = target(asked)
    found, cut = _letters(asked, connection)
    if not found and asked.optional("id") is not None:
        return _gone(asked)
    values: dict[str, Any] = {
        "queue": asked.queue,
        "command": command,
        "to_shown": to,
        "fields": {name: asked.optional(name) for name in ("group", "where", "id")},
        "cut": cut,
        "most": MOST,
    }
    if command == "move" and to is None:
        return Templated("preview.html", {**values, "counted": None})
    order = RunOrder(command, asked.queue, frozenset(), to)
    counted = _count(found, order.route(new_run()))
    fates = _fates(asked, connection, counted, to) if command == "replay" else []
    return Templated("preview.html", {**values, **_counts(counted), "fates": fates})


def edit(asked: Asked, connection: Connection) -> Templated:
    """Show the letter that is to be edited, or the form by which those of a group are."""
    values: dict[str, Any] = {
        "queue": asked.queue,
        "id": asked.optional("id"),
        "fields": {name: asked.optional(name) for name in ("group", "where", "id")},
    }
    if values["id"] is None:
        found, cut = _letters(asked, connection)
        return Templated("edit.html", {**values, "letters": found, "record": _example(found), "cut": cut, "most": MOST})
    letter = find(connection, asked.queue, values["id"], MOST)
    if letter is None:
        return _gone(asked)
    record = as_json(_editable(letter), 2)
    return Templated("edit.html", {**values, "letters": [letter], "record": record, "cut": False})


def edited(asked: Asked, connection: Connection) -> Templated:
    """Show the difference that an edit makes, and the form that does it."""
    to = target(asked)
    found, cut = _letters(asked, connection)
    if not found and asked.optional("id") is not None:
        return _gone(asked)
    order = RunOrder("edit", asked.queue, frozenset(), to, change=change(asked))
    counted = _count(found, order.route(new_run()))
    lines: list[str] = []
    for each in counted.first:
        assert order.change is not None, "as given"
        lines += difference(each, order.change)
    return Templated(
        "preview.html",
        {
            "queue": asked.queue,
            "command": "edit",
            "to_shown": to,
            "fields": {name: asked.optional(name) for name in ("group", "where", "id", "record", "before", "set")},
            "cut": cut,
            "most": MOST,
            "lines": lines[:_DIFFERENCE],
            **_counts(counted),
            "fates": _fates(asked, connection, counted, to),
        },
    )


def change(asked: Asked) -> Any:
    """The change of an edit: to what a person has written, or by assignments. Raises ConfigError: it is none."""
    assignments = [each.strip() for each in asked.fields.get("set", "").splitlines() if each.strip()]
    if assignments:
        return assigning(assignments)
    try:
        after, before = json.loads(asked.text("record")), json.loads(asked.text("before"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"this is no letter: {error}; go back and correct it") from error
    if not isinstance(after, dict):
        raise ConfigError("this is no letter: it must be an object in braces; go back and correct it")
    return replacing(before, after, asked.queue)


def target(asked: Asked) -> Destination | None:
    """The queue that the letters are to go to, where one is named."""
    name = asked.optional("to")
    return None if name is None else destination(name.strip())


def _gone(asked: Asked) -> Templated:
    """The page that says that the letter that was named is not here."""
    return Templated("gone.html", {"queue": asked.queue, "id": asked.optional("id"), "most": MOST}, 404)


def _letters(asked: Asked, connection: Connection) -> tuple[list[Message], bool]:
    """The letters that are meant, and whether there may be more of them behind the first ones."""
    name = asked.optional("id")
    if name is not None:
        found = find(connection, asked.queue, name, MOST)
        return ([] if found is None else [found]), False
    seen = read(connection, Selection(asked.queue, asked.optional("where"), asked.optional("group")), MOST)
    return list(seen.letters), seen.cut


def _count(letters: list[Message], route: Route) -> _Counted:
    found = _Counted()
    for each in letters:
        try:
            leaving = route(each)
        except (NoWayError, MessageFormatError) as error:
            found.stay += 1
            found.why = found.why or str(error)
            continue
        if each.message_id is None:
            found.contents.append(content_of(each))
        else:
            found.ids.append(each.message_id)
        found.replays.note(each, leaving)
        found.targets[None if leaving is None else leaving.destination] += 1
        if len(found.first) < _SHOWN:
            found.first.append(each)
    return found


def _counts(found: _Counted) -> dict[str, Any]:
    return {
        "counted": found,
        "ids": json.dumps(found.ids),
        "contents": json.dumps(found.contents),
        "targets": found.targets.most_common(_TARGETS),
        "more_targets": max(0, len(found.targets) - _TARGETS),
    }


def _fates(asked: Asked, connection: Connection, found: _Counted, to: Destination | None) -> list[str]:
    """The fate of the letters at their targets if they fail again; nothing where no rules are known."""
    fates = forecast(connection, asked.queue, found.replays, to=to, broker=asked.settings.config)
    return lines(tuple(each for each in fates if each.by is not None)) if found.replays else []


def _editable(letter: Message) -> dict[str, Any]:
    try:
        return editable(letter)
    except MessageFormatError as error:
        raise ConfigError(str(error)) from error


def _example(letters: list[Message]) -> str:
    """The first letter as it is edited, so that one sees which names there are."""
    for each in letters:
        try:
            return as_json(editable(each), 2)
        except MessageFormatError:
            continue
    return ""
