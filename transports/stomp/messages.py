"""A MESSAGE frame as a delivery: nothing of it is read before somebody looks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from redelivery.model.destinations import Destination
from redelivery.model.errors import MessageFormatError, ProtocolError
from redelivery.model.times import from_epoch_ms
from redelivery.model.values import Body, Value
from redelivery.transports.base import Delivery
from redelivery.transports.stomp.frames import parse_headers, raw_value, unescape
from redelivery.transports.stomp.maps import START, read_map
from redelivery.transports.stomp.names import from_wire

if TYPE_CHECKING:
    from redelivery.transports.stomp.subscriptions import Subscription

# Our own property: the kind of a body where the broker would lose it ("none", "text", "bytes").
KIND: Final = "JMS_redelivery_kind"
_ID_KEY: Final = b"\nmessage-id:"
_KIND_KEY: Final = b"\n" + KIND.encode() + b":"


class StompDelivery(Delivery):
    """One MESSAGE. ``subscription`` ties it to one connection: it can be acknowledged there and nowhere else."""

    __slots__ = ("head", "payload", "subscription")

    def __init__(self, head: bytes, payload: bytes, subscription: Subscription) -> None:
        # Not by super(): this is the only thing that is made for every message.
        self.head = head
        self.payload = payload
        self.subscription = subscription
        self.link = subscription.link
        self.redeliveries = 0
        self.state = 0
        self.cause = None

    def wire_count(self) -> int:
        """2 where the broker says ``redelivered:true``: all that STOMP tells."""
        return 2 if b"\nredelivered:true\n" in self.head else 1

    def expires_at(self) -> int:
        """Epoch milliseconds, 0 for never or for what is no number."""
        head = self.head
        at = head.find(b"\nexpires:") + 9
        if at == 8 or head.startswith(b"0\n", at):
            return 0
        return _number(head[at : head.find(b"\n", at)])

    def body(self) -> Body:
        """The body. Raises MessageFormatError where a text is not UTF-8; the message can still be acknowledged."""
        head, payload, dialect = self.head, self.payload, self.subscription.dialect
        kind = raw_value(head, _KIND_KEY) if _KIND_KEY in head else None
        if kind == b"none" and not payload:
            return None
        if kind == b"bytes" or (dialect.length_is_bytes and b"\ncontent-length:" in head):
            return payload
        if kind is None and dialect.map_transformation and payload.startswith(START) and self._is_transformed():
            found = read_map(payload)
            if found is not None:
                return found
        try:
            return payload.decode("utf-8")
        except UnicodeDecodeError as error:
            if kind is None and not dialect.length_is_bytes:
                return payload  # a broker that does not tell the kind
            raise MessageFormatError(
                f"the text of message {self.header('message_id')} is not UTF-8 ({error.reason} at byte {error.start})"
            ) from error

    def properties(self) -> Mapping[str, Value]:
        """All headers but those of STOMP, JMS and the broker; STOMP carries texts only. Raises MessageFormatError."""
        owned = self.subscription.dialect.owned_headers
        return MappingProxyType(
            {name: value for name, value in self._headers().items() if name not in owned and name != KIND}
        )

    def header(self, name: str) -> Any:
        """One of `redelivery.model.messages.HEADERS`. Raises MessageFormatError."""
        if name == "message_id":  # the one that most ask for: `text`, with the usual escape and no further call
            head = self.head
            at = head.find(_ID_KEY) + len(_ID_KEY)
            usual = head[at : head.find(b"\n", at)].replace(b"\\c", b":")
            if at >= len(_ID_KEY) and b"\\" not in usual and usual.isascii():
                return usual.decode("ascii")
            return self.text(_ID_KEY)
        return _HEADERS[name](self)

    def text(self, key: bytes) -> str | None:
        """A header's value, unescaped; the key is ``b"\\nname:"``. Raises MessageFormatError."""
        head = self.head
        at = head.find(key)
        if at < 0:
            return None
        at += len(key)
        try:
            text = head[at : head.find(b"\n", at)].decode("utf-8")
            return unescape(text, self.subscription.version) if "\\" in text else text
        except (UnicodeDecodeError, ProtocolError) as error:
            raise MessageFormatError(f"the header {key[1:-1].decode()} cannot be read: {error}") from error

    def _headers(self) -> dict[str, str]:
        try:
            return parse_headers(self.head, self.subscription.version)
        except ProtocolError as error:
            raise MessageFormatError(str(error)) from error

    def _is_transformed(self) -> bool:
        # The broker puts our wish on every message of the subscription, and an error where it could not fulfil it.
        return b"\ntransformation-error:" not in self.head


def _number(value: bytes | str | None) -> int:
    """A number of the peer's, 0 for what is none; bounded, for int() takes quadratic time."""
    return int(value) if value and len(value) <= 18 and value.isdigit() else 0


def _destination(key: bytes) -> Callable[[StompDelivery], Destination | None]:
    def read(delivery: StompDelivery) -> Destination | None:
        value = delivery.text(key)
        return None if value is None else from_wire(value, delivery.subscription.dialect)

    return read


def _sent_to(delivery: StompDelivery) -> Destination:
    return _destination(b"\ndestination:")(delivery) or delivery.link.destination


def _group_sequence(delivery: StompDelivery) -> int | None:
    value = raw_value(delivery.head, b"\nJMSXGroupSeq:")
    return None if value is None else _number(value)


_HEADERS: Final[Mapping[str, Callable[[StompDelivery], object]]] = {
    "destination": _sent_to,
    "reply_to": _destination(b"\nreply-to:"),
    "correlation_id": lambda delivery: delivery.text(b"\ncorrelation-id:"),
    "type": lambda delivery: delivery.text(b"\ntype:"),
    "timestamp": lambda delivery: from_epoch_ms(_number(raw_value(delivery.head, b"\ntimestamp:"))),
    "expiration": lambda delivery: from_epoch_ms(delivery.expires_at()),
    "delivery_time": lambda _: None,
    "priority": lambda delivery: min(9, _number(raw_value(delivery.head, b"\npriority:") or b"4")),
    "persistent": lambda delivery: b"\npersistent:true\n" in delivery.head,
    "group_id": lambda delivery: delivery.text(b"\nJMSXGroupID:"),
    "group_sequence": _group_sequence,
}
