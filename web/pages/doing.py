"""Does what a page has shown before: starts a run, and goes to its receipt."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final

from starlette.responses import Response, StreamingResponse

from redelivery.client.entry.sync import Connection
from redelivery.model.errors import ConfigError
from redelivery.operate.letters.receipts.receipt import RunReceipt
from redelivery.operate.letters.records import to_record
from redelivery.operate.letters.selection import Selection
from redelivery.operate.shown import as_json
from redelivery.operate.views import runs
from redelivery.operate.views.reading import find, read
from redelivery.operate.views.runs import LetterRun, RunOrder, perform
from redelivery.web.asked import MOST, Answer, Asked, Redirected
from redelivery.web.pages.preview import change, target
from redelivery.web.pages.receipts import opened
from redelivery.web.prices import question

_LONGEST: Final = 86_400  # seconds that are waited for canaries


def run(asked: Asked) -> Redirected:
    """Start the run of a preview, over the letters that it has shown."""
    command = asked.text("command")
    ids, contents = _named(asked.text("ids")), _named(asked.fields.get("contents") or "[]")
    if not ids and not contents:
        raise ConfigError("no letters are meant")
    order = RunOrder(
        command,
        asked.queue,
        frozenset(ids),
        target(asked),
        keep=asked.optional("keep") is not None,
        change=change(asked) if command == "edit" else None,
        canary=_canary(asked, "canary", MOST) if command == "replay" else None,
        canary_wait=_canary(asked, "canary_wait", _LONGEST),
        contents=frozenset(contents),
        most=len(ids) + len(contents),
    )
    said = {name: asked.optional(name) for name in ("where", "group")}
    started = asked.runs.start(asked.site, LetterRun(command), perform(order, asked.settings.receipts, said))
    return _to_receipt(started)


def undo(asked: Asked) -> Answer:
    """Put back what a receipt says."""
    return _again(asked, "undo", runs.undo)


def resume(asked: Asked) -> Answer:
    """Go on with the run of a receipt."""
    return _again(asked, "resume", runs.resume)


def _again(asked: Asked, name: str, act: Callable[[RunReceipt], Callable[[Connection, LetterRun], None]]) -> Answer:
    found = opened(asked)
    if not found.unseen:  # else nobody looks
        with asked.site.connect() as connection:
            dear = question(asked, connection, found.places)
        if dear is not None:
            return dear
    return _to_receipt(asked.runs.start(asked.site, LetterRun(name, found.path), act(found)))


def export(asked: Asked, connection: Connection) -> Response:
    """Hand out letters as lines of JSON, as ``redelivery dlq export`` writes them; `MOST` at most."""
    name = asked.optional("id")
    if name is not None:
        one = find(connection, asked.queue, name, MOST)
        letters = [] if one is None else [one]
    else:
        selection = Selection(asked.queue, asked.optional("where"), asked.optional("group"))
        letters = list(read(connection, selection, MOST).letters)
    if not letters:
        raise ConfigError(f"{asked.queue} has no such letters: nothing to export")
    lines = (f"{as_json(to_record(each))}\n" for each in letters)
    headers = {"content-disposition": 'attachment; filename="letters.jsonl"'}
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=headers)


def _named(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found) or len(found) > MOST:
        raise ConfigError("the form does not say which letters are meant: go back to the letters")
    return found


def _canary(asked: Asked, name: str, most: int) -> int | None:
    return None if asked.optional(name) is None else asked.number(name, 1, most)


def _to_receipt(started: LetterRun) -> Redirected:
    if started.receipt is None:
        raise ConfigError("the run has not begun yet: look at the receipts in a moment")
    return Redirected("receipt", {"name": started.receipt.name})
