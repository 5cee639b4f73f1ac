"""The broker's form of a message: a value, independent of the sender's and every receiver's objects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final, Protocol, TypeAlias

from redelivery.model.content.bodies import RawBody, body_bytes, decoded, is_nested
from redelivery.model.content.dead_letters import ORIGINAL_DESTINATION
from redelivery.model.destinations import Destination, Queue
from redelivery.model.errors import IllegalStateError, InvalidDestinationError, MessageFormatError
from redelivery.model.messages import Message
from redelivery.model.values import Body, Long, Value, to_epoch_ms

_NO_PROPERTIES: Final[Mapping[str, Value]] = MappingProxyType({})
_OVERHEAD: Final = 256  # bytes charged for a message without body and properties


class WireBody(Protocol):
    """A body as it came over a wire, read only when asked for."""

    def read(self) -> Body:
        """The body, the caller's own copy. Raises MessageFormatError where JMS has none for it."""

    def carried(self) -> RawBody:
        """The same for a copy."""

    def __len__(self) -> int:
        """About how many bytes it takes."""


class EncodedBody(ABC):
    """A large `WireBody` whose bytes are in parts, so that it can be written without a copy of the whole.

    ``protocol``: how they are read: text or bytes; of one in a store, whatever that has (see `Encoded` there).
    """

    __slots__ = ("__weakref__", "protocol")

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol

    @abstractmethod
    def parts(self) -> Sequence[bytes | bytearray]:
        """The body's bytes. Raises MessageFormatError where they cannot be read any more."""

    @abstractmethod
    def read(self) -> Body:
        """See `WireBody`."""

    def carried(self) -> RawBody:
        """See `WireBody`."""
        return StoredRaw(self)

    @abstractmethod
    def __len__(self) -> int:
        """See `WireBody`."""


StoredBody: TypeAlias = Body | WireBody


class StoredRaw(RawBody):
    """A body that the broker has, as a copy of its message has it."""

    __slots__ = ("_body",)

    def __init__(self, body: StoredBody) -> None:
        self._body = body

    def data(self) -> bytes:
        """See `body_bytes`; none of what the store cannot read any more."""
        try:
            return body_bytes(self.read())
        except MessageFormatError:
            return b""

    def read(self) -> Body:
        """See `RawBody`."""
        return detached(self._body)


def carried(body: StoredBody) -> RawBody:
    """The body as a copy of its message has it."""
    return StoredRaw(body) if body is None or isinstance(body, (str, bytes, dict, list)) else body.carried()


class WireMessage(Protocol):
    """A message as it came over a wire."""

    @property
    def raw(self) -> bytes | bytearray:
        """All of its bytes."""


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message. Times are milliseconds since 1970, 0 for "not set"; `size` is what the memory limit counts.

    ``identity`` is the broker's own id where `message_id` is the sender's, which need not be unique. ``wire`` is what
    the server that received it keeps for sending it by the same protocol: the message as it was then. ``resends``: how
    often the broker itself has sent it again after a client gave it up. ``own_expiration``: the sender's, where the
    rules of its queue gave it another one; None: they did not.
    """

    message_id: str
    destination: Destination
    body: StoredBody = None
    properties: Mapping[str, Value] = field(default_factory=lambda: _NO_PROPERTIES)
    timestamp: int = 0
    expiration: int = 0
    delivery_time: int = 0
    priority: int = 4
    persistent: bool = True
    correlation_id: str | bytes | None = None
    reply_to: Destination | None = None
    type: str | None = None
    group_id: str | None = None
    group_sequence: int | None = None
    original_destination: Destination | None = None
    origin: str = ""
    size: int = 0
    identity: str = ""
    resends: int = 0
    own_expiration: int | None = None
    wire: WireMessage | None = None

    @classmethod
    def of(cls, message: Message, message_id: str, *, now: int, origin: str = "") -> StoredMessage:
        """The value of a stamped message; ``origin`` names the connection that sends it (for no_local).

        Raises:
            InvalidDestinationError: the message has no destination, or a pattern.
            IllegalStateError: the message was received.
        """
        if message.source is not None:
            raise IllegalStateError("a received message cannot be sent; send its copy()")
        fields = message.fields
        target = fields.get("destination")
        if target is None or target.is_pattern:
            raise InvalidDestinationError(f"a message cannot be sent to {target}: pass the name of one queue or topic")
        body, properties = fields["body"], fields.get("properties", _NO_PROPERTIES)
        if isinstance(body, RawBody):
            body = decoded(body)
        return cls(
            message_id=message_id,
            destination=target,
            body=detached(body),
            properties=properties,
            timestamp=_epoch_ms(fields.get("timestamp")) or now,
            expiration=_epoch_ms(fields.get("expiration")),
            delivery_time=_epoch_ms(fields.get("delivery_time")),
            priority=fields.get("priority", 4),
            persistent=fields.get("persistent", True),
            correlation_id=fields.get("correlation_id"),
            reply_to=fields.get("reply_to"),
            type=fields.get("type"),
            group_id=fields.get("group_id"),
            group_sequence=fields.get("group_sequence"),
            origin=origin,
            size=size_of(body, properties),
        )

    def value_of(self, name: str) -> Value:
        """The value of a name in a selector, at the first delivery; None where it is not set (JMS 3.1 §3.8.1.1)."""
        read = _SELECTABLE.get(name)
        if read is not None:
            return read(self)
        value = self.properties.get(name)
        return None if isinstance(value, (dict, list)) else value  # lists and maps of AMQP

    def parts(self) -> tuple[StoredMessage, ...]:
        """One for each part of a composite destination; of any other, itself. Raises as `Destination.parts`.

        As on Classic they share the message id; what the dead letters' audit looks at is each one's own.
        """
        to = self.destination.parts
        if len(to) == 1:
            return (self,)
        known = self.identity or self.message_id
        return tuple(replace(self, destination=each, identity=f"{known}:{each}") for each in to)

    def expired(self, now: int) -> bool:
        """Check whether it is no longer worth delivering."""
        return 0 < self.expiration <= now


_SELECTABLE: Final[Mapping[str, Callable[[StoredMessage], Value]]] = {
    "JMSDeliveryMode": lambda stored: "PERSISTENT" if stored.persistent else "NON_PERSISTENT",
    "JMSPriority": lambda stored: stored.priority,
    "JMSMessageID": lambda stored: stored.message_id,
    "JMSTimestamp": lambda stored: Long(stored.timestamp),
    "JMSCorrelationID": lambda stored: stored.correlation_id,
    "JMSType": lambda stored: stored.type,
    "JMSXDeliveryCount": lambda _: 1,
    "JMSXGroupID": lambda stored: stored.group_id,
    "JMSXGroupSeq": lambda stored: stored.group_sequence,
    ORIGINAL_DESTINATION: lambda stored: (
        stored.properties.get(ORIGINAL_DESTINATION)
        if stored.original_destination is None
        else str(stored.original_destination)
    ),
}
END_OF_QUEUE: Final = StoredMessage(message_id="0", destination=Queue("end-of-queue"))  # a browser's last dispatch


def detached(body: StoredBody) -> Body:
    """The body itself where it is immutable, else a copy. Raises MessageFormatError, see `WireBody`."""
    if body is None or isinstance(body, (str, bytes)):
        return body
    if isinstance(body, (dict, list)):
        return deepcopy(body) if is_nested(body) else copy(body)
    return body.read()


def size_of(body: StoredBody, properties: Mapping[str, Value]) -> int:
    """About how many bytes a message takes."""
    size = _OVERHEAD + sum(len(name) + _length(value) for name, value in properties.items())
    if isinstance(body, dict):
        return size + sum(len(name) + _length(value) for name, value in body.items())
    if isinstance(body, list):
        return size + sum(_length(value) for value in body)
    return size + (8 if body is None else len(body))


def _length(value: Value) -> int:
    return len(value) if isinstance(value, (str, bytes)) else 8


def _epoch_ms(value: datetime | int | None) -> int:
    return value if isinstance(value, int) else to_epoch_ms(value)
