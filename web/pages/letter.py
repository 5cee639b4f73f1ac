"""One letter: why it is here, when it was tried, and all that it says."""

from __future__ import annotations

from itertools import islice
from typing import Final

from redelivery.client.entry.sync import Connection
from redelivery.model.messages import Message
from redelivery.operate.letters.records import to_record
from redelivery.operate.letters.selection import Selection
from redelivery.operate.views.reading import find
from redelivery.operate.views.timeline import timeline
from redelivery.web.asked import MOST, Asked, Templated
from redelivery.web.bodies import body_of
from redelivery.web.drawing import spans

_HEADERS: Final = (
    *("message_id", "destination", "timestamp", "type", "correlation_id", "reply_to", "group_id", "group_sequence"),
    *("priority", "persistent", "expiration", "delivery_count"),
)


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
