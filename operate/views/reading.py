"""Reads a bounded part of a queue: never more letters from its head than a page may take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from redelivery.client.entry.sync import Connection
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import InvalidSelectorError
from redelivery.model.messages import Message
from redelivery.operate.letters.fingerprints import Fingerprints, traits
from redelivery.operate.letters.selection import Selection
from redelivery.operate.management.browsing import browsed, looked_into_by
from redelivery.operate.management.interface import Cost


@dataclass(frozen=True, slots=True)
class ReadLetters:
    """``letters``: those that are meant, of the ``seen`` ones at the head; ``cut``: behind these there may be more."""

    letters: Sequence[Message]
    seen: int
    cut: bool


def read(connection: Connection, selection: Selection, most: int) -> ReadLetters:
    """Look at so many letters at most, and return those that are meant; a limit of the selection counts these.

    Raises:
        JMSError: as `Selection.browse`.
    """
    asked = replace(selection, group=None, limit=None, ids=None).on(connection)
    seen = list(islice(browsed(connection, asked.queue, asked.where, most), most))
    letters: Iterable[Message] = filter(asked.accepts, seen)
    if selection.group is not None:
        letters = members(list(letters), selection.group)
    if selection.ids is not None:
        ids = selection.ids
        letters = (each for each in letters if each.message_id in ids)
    return ReadLetters(list(islice(letters, selection.limit)), len(seen), len(seen) == most)


def members(letters: Sequence[Message], group: str) -> list[Message]:
    """The letters of a group, found among these."""
    said = [traits(each) for each in letters]
    meant = Fingerprints(said).members(group)
    return [letter for letter, found in zip(letters, said, strict=True) if found in meant]


def find(connection: Connection, queue: Destination, message_id: str, most: int) -> Message | None:
    """The letter of this id: asked for by a selector where the broker has them, else among so many at the head.

    Raises:
        JMSError: as `Selection.browse`.
    """
    if connection.metadata.capabilities.selectors and connection.metadata.capabilities.browse:
        quoted = message_id.replace("'", "''")
        try:
            found = next(browsed(connection, queue, f"JMSMessageID = '{quoted}'", 1), None)
        except InvalidSelectorError:  # it has characters that this protocol's selectors cannot
            found = None
        if found is not None and found.message_id == message_id:
            return found
    seen = islice(browsed(connection, queue, None, most), most)
    return next((each for each in seen if each.message_id == message_id), None)


def price(connection: Connection, queue: Destination) -> Cost:
    """The price of a look into this queue. Raises UnsupportedError: it cannot be looked into."""
    management = looked_into_by(connection)
    if management is None or not isinstance(queue, Queue):
        return Cost()
    found = management.queue(queue.name)
    return Cost() if found is None else management.cost(found)
