"""The way in which the messages of one subscription are read, and what is the same for most of them."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from redelivery.model.destinations import Destination, TemporaryQueue, TemporaryTopic
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.stomp.codec.alike import HeadReader
from redelivery.transports.stomp.codec.names import from_wire, reply_to_from_wire

__all__ = ["KIND", "MODE", "OURS", "SENDER", "StompFormat", "number"]

# Our own properties: the kind of a body where the broker would lose it ("none", "text", "bytes"), that a message is not
# persistent ("NON_PERSISTENT") where it would lose that, and which connection sent it where that has several sockets.
KIND: Final = "JMS_redelivery_kind"
MODE: Final = "JMS_redelivery_mode"
SENDER: Final = "JMS_redelivery_sender"
OURS: Final = frozenset((KIND, MODE, SENDER))
_ALIKE: Final = 256  # what most messages of a subscription have in common, in so many ways


class StompFormat:
    """The way in which the messages of one subscription are read.

    ``destination`` is where they are consumed from, ``version`` that of STOMP. ``bodies``: "text" or "bytes", which all
    are taken for; "auto": as their senders say.
    """

    __slots__ = (
        *("alike", "binary_key", "bodies", "count_key", "destination", "dialect", "heads", "sent_to", "stable_key"),
        *("usual_bodies", "usual_ids", "version"),
    )

    def __init__(self, dialect: StompDialect, version: str, destination: Destination, bodies: str = "auto") -> None:
        self.bodies = bodies
        self.dialect = dialect
        self.version = version
        self.destination = destination
        made = dialect.message_id_header if dialect.makes_message_ids else None
        # of the sender's id, where the broker has none that stays; empty: it has
        self.stable_key = b"" if made is None else b"\n%b:" % made.encode()
        self.usual_ids = dialect.message_id_header is None and not dialect.message_id_separator
        self.usual_bodies = dialect.length_is_bytes and dialect.kind_header is None and bodies == "auto"
        self.heads = HeadReader(version, dialect, OURS, MODE)
        self.alike: dict[tuple[str | None, ...], tuple[Destination, Destination | None, int, bool]] = {}
        self.binary_key = dialect.binary_headers and b"\n" + dialect.binary_headers
        self.count_key = None if dialect.count_header is None else b"\n%b:" % dialect.count_header.encode()
        self.sent_to = lru_cache(maxsize=256)(lambda value: _sent_to(value, dialect, destination))

    def read_alike(self, headers: tuple[str | None, ...]) -> tuple[Destination, Destination | None, int, bool]:
        """The destination, where to reply, priority and persistence, of such headers, and keep them for the next ones.

        Raises:
            MessageFormatError: it cannot be read.
        """
        to, reply_to, priority, persistent, mode = headers
        said = self.dialect.says_persistent or persistent is not None
        found = (
            self.sent_to(to),
            None if reply_to is None else reply_to_from_wire(reply_to, self.dialect),
            min(9, number(priority or "4")),
            persistent == "true" if said else mode is None,
        )
        if len(self.alike) >= _ALIKE:
            self.alike.clear()
        self.alike[headers] = found
        return found


def number(value: bytes | str | None) -> int:
    """A number of the peer's, 0 for what is none; bounded, for int() takes quadratic time."""
    return int(value) if value and len(value) <= 18 and value.isdigit() and value.isascii() else 0


def _sent_to(value: str | None, dialect: StompDialect, target: Destination) -> Destination:
    if isinstance(target, (TemporaryQueue, TemporaryTopic)):
        return target  # whatever its maker's connection calls it
    found = None if value is None else from_wire(value, dialect, type(target))
    return found or target
