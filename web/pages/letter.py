"""One letter: why it is here, when it was tried, and all that it says."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import islice
from typing import Final

from redelivery.client.entry.sync import Connection
from redelivery.model.messages import Message
from redelivery.operate.letters.records import to_record
from redelivery.operate.letters.selection import Selection
from redelivery.operate.shown import as_json
from redelivery.operate.views.reading import find
from redelivery.operate.views.timeline import timeline
from redelivery.web.asked import MOST, Asked, Templated
from redelivery.web.drawing import spans

LONGEST: Final = 64 << 10
"""Characters, or bytes, that are shown."""
_ROW: Final = 16  # bytes
_PRINTABLE: Final = range(0x20, 0x7F)
_HEADERS: Final = (
    *("message_id", "destination", "timestamp", "type", "correlation_id", "reply_to", "group_id", "group_sequence"),
    *("priority", "persistent", "expiration", "delivery_count"),
)


@dataclass(frozen=True, slots=True)
class BodyView:
    """One way to show a body: its name, its text, and whether there is more of it than the text has."""

    name: str
    text: str
    cut: bool = False


@dataclass(frozen=True, slots=True)
class Body:
    """``views``: the best one first. ``kind``: of JMS, such as ``text``. ``size``: bytes on the wire."""

    views: tuple[BodyView, ...]
    kind: str
    size: int
    unreadable: str | None = None


def body_of(letter: Message) -> Body:
    """The body in all the ways that fit it; bytes always do."""
    record, raw = to_record(letter), letter.raw_body
    views: list[BodyView] = []
    kind, body = record["body_type"], record["body"]
    if kind == "text":
        pretty = _pretty(body)
        if pretty is not None:
            views.append(_cut("JSON", pretty))
        views.append(_cut("text", body))
    elif kind == "bytes":
        text = _as_text(raw)
        views += [] if text is None else [_cut("text", text)]
    elif body is not None:
        views.append(_cut("JSON", as_json(body, 2)))
    views.append(BodyView("hex", hex_of(raw[:LONGEST]), len(raw) > LONGEST))
    return Body(tuple(views), kind, len(raw), record.get("unreadable"))


def hex_of(data: bytes) -> str:
    """Rows of 16 bytes: the place of the first, all of them, and what is ASCII."""
    rows = []
    for at in range(0, len(data), _ROW):
        row = data[at : at + _ROW]
        ascii_ = "".join(chr(each) if each in _PRINTABLE else "." for each in row)
        rows.append(f"{at:08x}  {row.hex(' '):<{_ROW * 3 - 1}}  {ascii_}")
    return "\n".join(rows)


def _pretty(text: str) -> str | None:
    """JSON with its lines broken; None: it is none, or too long to be read for a page."""
    if text.lstrip()[:1] not in ("{", "[") or len(text) > LONGEST:
        return None
    try:
        return as_json(json.loads(text), 2)
    except (ValueError, RecursionError):
        return None


def _as_text(raw: bytes) -> str | None:
    try:
        text = raw[:LONGEST].decode()
    except UnicodeDecodeError as error:
        if error.start < min(len(raw), LONGEST) - 3 or len(raw) <= LONGEST:
            return None
        text = raw[: error.start].decode()
    return None if "\0" in text else text


def _cut(name: str, text: str) -> BodyView:
    return BodyView(name, text[:LONGEST], len(text) > LONGEST)


def letter(asked: Asked, connection: Connection) -> Templated:
    """Show a letter, by its id, or by its place where it has none."""
    queue, name = asked.queue, asked.optional("id")
    if name is not None:
        found = find(connection, queue, name, MOST)
    else:
        place = asked.number("place", 1, MOST)
        found = next(islice(Selection(queue, limit=place).browse(connection), place - 1, None), None)
    if found is None:
        return Templated("gone.html", {"queue": queue, "id": name, "most": MOST}, 404)
    return Templated("letter.html", {"queue": queue, "place": asked.optional("place"), **_values(asked, found)})


def _values(asked: Asked, found: Message) -> dict[str, object]:
    said, record, body = found.dead_letter, to_record(found), body_of(found)
    tried = timeline(found, asked.settings.config)
    chosen = asked.optional("view")
    return {
        "letter": found,
        "said": said,
        "passport": None if said is None else said.passport,
        "headers": [(name, record[name]) for name in _HEADERS if record[name] is not None],
        "properties": sorted(record["properties"].items()),
        "unreadable": record.get("unreadable_properties", ()),
        "body": body,
        "view": next((each for each in body.views if each.name == chosen), body.views[0]),
        "timeline": tried,
        "spans": () if tried is None else spans(tried),
    }
