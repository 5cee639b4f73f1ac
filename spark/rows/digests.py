"""A message's digest: it distinguishes a redelivered message from another one with the same id, or without one.

It is made of what no broker changes between two deliveries: body, properties and the sender's timestamp. The flag
"redelivered" is no part of it: a broker that was killed redelivers without it, and a lost connection sets it for
messages that nobody has seen. It decides only where there is neither id nor timestamp (`Columns.new`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from hashlib import blake2b
from typing import Final, TypeAlias

from redelivery.model.values import Value
from redelivery.transports.dialects.detect import counted_properties

Key: TypeAlias = tuple[str | None, bytes | None]
"""A message's id and digest; without a digest where a release before this one has written it down."""

SIZE: Final = 16
# What JMS 3.1 (3.5.9) lets a provider set at a delivery, STOMP's flag, and what a broker counts besides.
_CHANGING: Final = counted_properties() | {
    "JMSXDeliveryCount",
    "JMSXConsumerTXID",
    "JMSXProducerTXID",
    "JMSXRcvTimestamp",
    "redelivered",
}


def apart(found: bytes, destination: str) -> bytes:
    """The digest of a message on one of several destinations: a copy of it on another one is another message."""
    return blake2b(destination.encode("utf-8", "surrogatepass"), key=found, digest_size=SIZE).digest()


@lru_cache(maxsize=256)
def _form(names: tuple[str, ...], types: tuple[type, ...]) -> tuple[str, tuple[int, ...]]:
    """The ``repr`` of kind, length, time, and name, type and value of each property, with a hole for each but two.

    The sender's properties have the same names and types in most of its messages. With it the places of the values.
    """
    places = sorted((place for place, name in enumerate(names) if name not in _CHANGING), key=names.__getitem__)
    typed = [f"({names[place]!r}, {types[place].__name__!r}, ".replace("%", "%%") + "%r)" for place in places]
    return f"(%r, %r, %r, [{', '.join(typed)}])", tuple(places)


def digest(kind: str | None, body: bytes | None, properties: Mapping[str, Value], timestamp: int | None) -> bytes:
    """`SIZE` bytes, equal exactly for equal messages.

    ``kind``: of the body: ``text``, ``bytes``, ``map``, ``stream`` or ``none``. ``body``: as its column has it, before
    any converter. ``properties``: a value counts with its JMS type. ``timestamp``: when it was sent, in any unit.
    """
    values = properties.values()
    form, places = _form(tuple(properties), tuple(map(type, values)))
    own = tuple(values)
    head = form % (kind, None if body is None else len(body), timestamp, *[own[place] for place in places])
    made = blake2b(head.encode("utf-8", "surrogatepass"), digest_size=SIZE)
    if body:
        made.update(body)
    return made.digest()
