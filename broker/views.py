"""A stored message as the model's messages read it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from redelivery.broker.engine.stored import StoredMessage, carried, detached
from redelivery.model.content.bodies import RawBody
from redelivery.model.content.dead_letters import ORIGINAL_DESTINATION
from redelivery.model.destinations import Destination
from redelivery.model.values import Body, Value, from_epoch_ms
from redelivery.transports.dialects.artemis import ORIGINAL_ADDRESS

# A property that a server adds where a message could not be translated whole, as ActiveMQ Classic does over STOMP.
TRANSFORMATION_ERROR: Final = "transformation-error"
_TIMES = frozenset(("timestamp", "expiration", "delivery_time"))


class StoredSource:
    """A `redelivery.model.messages.MessageSource` over a stored message."""

    __slots__ = ("_count", "_stored")

    def __init__(self, stored: StoredMessage, count: int) -> None:
        self._stored = stored
        self._count = count

    def body(self) -> Body:
        """The body; a map or stream is the caller's own copy."""
        return detached(self._stored.body)

    def raw_body(self) -> RawBody:
        """See `redelivery.model.content.bodies.Carrying`."""
        return carried(self._stored.body)

    def readable(self) -> tuple[Mapping[str, Value], list[str]]:
        """See `redelivery.model.content.bodies.Carrying`."""
        return properties_of(self._stored), []

    def properties(self) -> Mapping[str, Value]:
        """The properties."""
        return properties_of(self._stored)

    def header(self, name: str) -> object:
        """One header."""
        return header_of(self._stored, name)

    def wire_count(self) -> int:
        """The count of this delivery."""
        return self._count


def is_letter(stored: StoredMessage) -> bool:
    """True for a dead letter of Artemis or HornetQ, or what expired there."""
    return not ORIGINAL_ADDRESS.isdisjoint(stored.properties)


def shown(stored: StoredMessage) -> Destination:
    """The destination as a server writes it: of such a letter the address, whatever queue of that it is in."""
    address, qualified, _ = stored.destination.name.partition("::")
    return type(stored.destination)(address) if qualified and is_letter(stored) else stored.destination


def properties_of(stored: StoredMessage) -> Mapping[str, Value]:
    """The properties, on a dead letter with its origin."""
    if stored.original_destination is None:
        return stored.properties
    return MappingProxyType({**stored.properties, ORIGINAL_DESTINATION: str(stored.original_destination)})


def header_of(stored: StoredMessage, name: str) -> object:
    """One of `redelivery.model.messages.HEADERS`; times as aware datetimes."""
    value = getattr(stored, name)
    return from_epoch_ms(value) if name in _TIMES else value
