"""Messages: what the application writes, and what it is handed.

A received message reads from its source when it is looked at and keeps what it read, so that a body or a header
that nobody reads costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, Self

from redelivery.model.content.bodies import KnownBody, RawBody, raw_of
from redelivery.model.content.dead_letters import DeadLetterInfo, read_dead_letter
from redelivery.model.content.errors import IllegalStateError, MessageNotWriteableError
from redelivery.model.content.headers import COPIED, check_header
from redelivery.model.content.shown import shown
from redelivery.model.content.typed.variable import BodyT
from redelivery.model.destinations import Destination
from redelivery.model.values import Body, Value, check_body, check_own, check_properties, from_epoch_ms

HEADERS: Final = (
    "message_id",
    "destination",
    "reply_to",
    "correlation_id",
    "type",
    "timestamp",
    "expiration",
    "delivery_time",
    "priority",
    "persistent",
    "group_id",
    "group_sequence",
)
_PROVIDERS: Final = frozenset(
    (
        *("JMSXGroupID", "JMSXGroupSeq", "JMSXDeliveryCount", "JMSXUserID", "JMSXRcvTimestamp", "JMSXState"),
        *("JMSXProducerTXID", "JMSXConsumerTXID"),
    )
)
_new: Final = object.__new__  # `__init__` is for applications
_UNREAD: Final = object()  # not looked at yet: a body or header may be None
_DEFAULTS: Final[Mapping[str, object]] = {"priority": 4, "persistent": True}


class MessageSource(Protocol):
    """The source of a received message; every method raises MessageFormatError on what it cannot decode."""

    def body(self) -> Body:
        """The body, decoded."""

    def properties(self) -> Mapping[str, Value]:
        """The application's properties and the broker's, read-only."""

    def header(self, name: str) -> object:
        """The value of one of `HEADERS`, None where it is not set."""

    def wire_count(self) -> int:
        """The number of this delivery as far as the wire says, 1 for the first."""


class Receipt(Protocol):
    """The session's part that acknowledges a received message."""

    def acknowledge(self, message: Message) -> None:
        """Acknowledge as the session's mode says."""


class Message(Generic[BodyT]):
    """A JMS message. One that was received is read-only; its `copy` is not.

    ``body`` is ``str`` (text), ``bytes``, ``dict`` (map), ``list`` (stream) or None; of a consumer with ``body_type=T``
    it is a T, the message a ``Message[T]``. Times are aware UTC datetimes; None stands for an unset expiration or
    delivery time. ``properties`` are the application's; ``correlation_id``, ``reply_to``, ``type``, ``group_id`` and
    ``group_sequence`` are JMS's headers.
    """

    __slots__ = ("_receipt", "fields", "local_redeliveries", "source")

    # for the library's own use, and no properties, whose calls every message would pay for:
    fields: dict[str, Any]  # the body and the headers that are set, times perhaps as epoch milliseconds
    source: MessageSource | None  # what a received message is read from
    local_redeliveries: int  # redeliveries that the wire's count does not know
    _receipt: Receipt | None

    def __init__(
        self,
        body: object = None,
        *,
        properties: Mapping[str, object] | None = None,
        correlation_id: str | bytes | None = None,
        reply_to: Destination | str | None = None,
        type: str | None = None,
        group_id: str | None = None,
        group_sequence: int | None = None,
    ) -> None:
        self.source = self._receipt = None
        self.local_redeliveries = 0
        self.fields = {"body": check_body(body)}
        if properties:
            self.properties = check_own(properties)
        if correlation_id is not None:
            self.correlation_id = correlation_id
        if reply_to is not None:
            self.reply_to = reply_to
        if type is not None:
            self.type = type
        if group_id is not None:
            self.group_id = group_id
        if group_sequence is not None:
            self.group_sequence = group_sequence

    @classmethod
    def received(cls, source: MessageSource, redeliveries: int, receipt: Receipt | None) -> Self:
        """For the library: a read-only message; ``redeliveries`` are those that the wire's count does not know."""
        message = _new(cls)
        message.source, message._receipt, message.local_redeliveries, message.fields = source, receipt, redeliveries, {}
        return message

    @classmethod
    def outgoing(cls, fields: dict[str, Any]) -> Message:
        """A writable message of fields that were checked before; for the library's own use."""
        message = _new(cls)
        message.source, message._receipt, message.local_redeliveries, message.fields = None, None, 0, fields
        return message

    @property
    def body(self) -> BodyT:
        """The body. Raises MessageFormatError where it cannot be decoded; the message can still be acknowledged."""
        value = self.fields.get("body", _UNREAD)
        if value is _UNREAD:
            assert self.source is not None, "only a received message reads its body late"
            value = self.fields["body"] = self.source.body()
        elif isinstance(value, RawBody):  # of a copy, which is sent as it came until somebody can have changed it
            value = value.read()
            if isinstance(value, (dict, list)):
                value = self.fields["body"] = deepcopy(value)
        return value  # type: ignore[no-any-return]  # as above

    @body.setter
    def body(self, value: object) -> None:
        self._write("body", check_body(value))

    @property
    def raw_body(self) -> bytes:
        """The body's bytes as they came, also where `body` raises. See Consuming for what they are of a map."""
        return self.carried().data()

    def carried(self) -> RawBody:
        """The body as a copy has it; for the library's own use."""
        if self.source is not None:
            return raw_of(self.source)
        body = self.fields["body"]
        return body if isinstance(body, RawBody) else KnownBody(check_body(body))

    @property
    def properties(self) -> Mapping[str, Value]:
        """The properties, read-only; assign a mapping to replace them all."""
        if "properties" not in self.fields:
            self.fields["properties"] = check_properties(None) if self.source is None else self.source.properties()
        properties: Mapping[str, Value] = self.fields["properties"]
        return properties

    @properties.setter
    def properties(self, value: Mapping[str, object]) -> None:
        own = check_properties(value)
        self._write("properties", own)
        if "JMSX" in "".join(own) and any(name.startswith("JMSX") for name in own):
            # JMS keeps these names: the group's are headers here, the others are the provider's to set
            self.fields["properties"] = check_properties({name: own[name] for name in own if name not in _PROVIDERS})
            if "JMSXGroupID" in own:
                self.group_id = own["JMSXGroupID"]  # type: ignore[assignment]  # checked by the setter
            if "JMSXGroupSeq" in own:
                self.group_sequence = own["JMSXGroupSeq"]  # type: ignore[assignment]  # checked by the setter

    @property
    def message_id(self) -> str | None:
        """JMSMessageID, set by the broker or the library; None where the broker does not say it."""
        value = self.fields.get("message_id", _UNREAD)  # as `_read`, without a call: it is read of most messages
        if value is _UNREAD:
            value = self.fields["message_id"] = None if self.source is None else self.source.header("message_id")
        return value  # type: ignore[no-any-return]  # the fields are typed where they are written

    @property
    def destination(self) -> Destination | None:
        """The destination that it was sent to."""
        return self._read("destination")  # type: ignore[no-any-return]  # as above

    @property
    def timestamp(self) -> datetime | None:
        """The time when it was handed over to be sent."""
        return self._read_time("timestamp")

    @property
    def expiration(self) -> datetime | None:
        """The time when it stops being worth delivering."""
        return self._read_time("expiration")

    @property
    def delivery_time(self) -> datetime | None:
        """Before when it must not be delivered."""
        return self._read_time("delivery_time")

    @property
    def priority(self) -> int:
        """0 to 9; 4 where nothing was said."""
        return self._read("priority")  # type: ignore[no-any-return]  # as above

    @property
    def persistent(self) -> bool:
        """True: the broker keeps it through a restart."""
        return self._read("persistent")  # type: ignore[no-any-return]  # as above

    @property
    def correlation_id(self) -> str | bytes | None:
        """Links a reply to its request."""
        return self._read("correlation_id")  # type: ignore[no-any-return]  # as above

    @correlation_id.setter
    def correlation_id(self, value: str | bytes | None) -> None:
        self._write("correlation_id", check_header("correlation_id", value))

    @property
    def reply_to(self) -> Destination | None:
        """The destination where a reply is expected."""
        return self._read("reply_to")  # type: ignore[no-any-return]  # as above

    @reply_to.setter
    def reply_to(self, value: Destination | str | None) -> None:
        self._write("reply_to", check_header("reply_to", value))

    @property
    def type(self) -> str | None:
        """JMSType, the application's own."""
        return self._read("type")  # type: ignore[no-any-return]  # as above

    @type.setter
    def type(self, value: str | None) -> None:
        self._write("type", check_header("type", value))

    @property
    def group_id(self) -> str | None:
        """JMSXGroupID: messages of one group go to one consumer."""
        return self._read("group_id")  # type: ignore[no-any-return]  # as above

    @group_id.setter
    def group_id(self, value: str | None) -> None:
        self._write("group_id", check_header("group_id", value))

    @property
    def group_sequence(self) -> int | None:
        """JMSXGroupSeq."""
        return self._read("group_sequence")  # type: ignore[no-any-return]  # as above

    @group_sequence.setter
    def group_sequence(self, value: int | None) -> None:
        self._write("group_sequence", check_header("group_sequence", value))

    @property
    def delivery_count(self) -> int:
        """JMSXDeliveryCount, 1 at first; a lower bound where the wire carries only a flag; 0 if never received."""
        return 0 if self.source is None else self.source.wire_count() + self.local_redeliveries

    @property
    def redelivered(self) -> bool:
        """JMSRedelivered: it was probably delivered before."""
        return self.delivery_count > 1

    @property
    def dead_letter(self) -> DeadLetterInfo | None:
        """The facts on a dead letter: origin, cause, count, whichever broker or client made it; else None."""
        if self.source is not None and "dead_letter" not in self.fields:
            self.fields["dead_letter"] = read_dead_letter(self.properties, self.source, lambda: self.destination)
        return self.fields.get("dead_letter")

    def acknowledge(self) -> None:
        """Acknowledge: in CLIENT mode all that the session has delivered (JMS 3.1), in INDIVIDUAL mode this one.

        Ignored in the other modes.

        Raises:
            IllegalStateError: the message was not received, or its session is closed.
        """
        if self._receipt is None:
            raise IllegalStateError("only a received message can be acknowledged")
        self._receipt.acknowledge(self)

    def copy(self) -> Message:
        """A writable message with the same body, properties and application's headers.

        A received body is sent as it came, also one that `body` cannot read. Raises MessageFormatError for the rest.
        """
        copy, carried = Message(), self.carried()
        copy.fields["body"] = carried.read() if isinstance(carried, KnownBody) else carried
        copy.adopt(self.properties)
        for header in COPIED:
            if (value := getattr(self, header)) is not None:
                setattr(copy, header, value)
        return copy

    def adopt(self, properties: Mapping[str, Value]) -> None:
        """Set a received message's properties, which may be lists and maps of AMQP; for the library's own use."""
        nested = {name: value for name, value in properties.items() if isinstance(value, (dict, list))}
        self.properties = {name: value for name, value in properties.items() if name not in nested}
        if nested:
            self.fields["properties"] = MappingProxyType({**self.properties, **nested})

    def stamp(self, **headers: object) -> None:
        """For the library's own use: set what the provider sets at a send, whatever the application wrote there (JMS).

        A time may be given as epoch milliseconds; it becomes a datetime when it is looked at.
        """
        self.fields.update(headers)

    def __repr__(self) -> str:
        return f"<Message {shown(self)}>"

    def _read(self, name: str) -> Any:
        value = self.fields.get(name, _UNREAD)
        if value is _UNREAD:
            value = _DEFAULTS.get(name) if self.source is None else self.source.header(name)
            self.fields[name] = value
        return value

    def _read_time(self, name: str) -> datetime | None:
        value = self._read(name)
        if isinstance(value, int):
            value = self.fields[name] = from_epoch_ms(value)
        return value  # type: ignore[no-any-return]  # as above

    def _write(self, name: str, value: object) -> None:
        if self.source is not None:
            raise MessageNotWriteableError("a received message is read-only; change its copy()")
        self.fields[name] = value
