"""Prepares a message as it leaves, from the producer's options and the send's own: what the provider sets at a send."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Self, Unpack

from redelivery.client.arguments import PRODUCER_DEFAULTS, ProducerKeywords, seconds
from redelivery.model.content.headers import SendKeywords
from redelivery.model.destinations import Destination
from redelivery.model.destinations import destination as parse_destination
from redelivery.model.errors import ConfigError, IllegalStateError, InvalidDestinationError
from redelivery.model.messages import Message
from redelivery.model.values import check_own
from redelivery.policies.checks import warn_if_long
from redelivery.transports.dialects.detect import duplicate_id_properties

_BODY: Final = re.compile(r"[\s{}\x00-\x1f<]")  # what the name of a destination hardly has, and a body often
_SHOWN: Final = 40  # characters of a body in an error
_SIMPLE: Final = frozenset((str, bytes))  # bodies that need no look and no copy
_PROPERTIES: Final = frozenset(("properties",))
_DUPLICATE_IDS: Final = duplicate_id_properties()


@dataclass(frozen=True, slots=True)
class SendOptions:
    """The options of a producer, which count where a send does not say otherwise."""

    destination: Destination | None = None  # None: each send names its own
    persistent: bool = True
    priority: int = 4
    ttl_ms: int = 0  # 0: it never expires
    delivery_delay_ms: int = 0
    # the fields of a message of which only the body, the time, and properties are left to a send; None: more is
    usual: dict[str, Any] | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        usual = None if self.destination is None or self.ttl_ms or self.delivery_delay_ms else self._fields()
        object.__setattr__(self, "usual", usual)

    def _fields(self) -> dict[str, Any]:
        return {
            "body": None,
            "destination": self.destination,
            "persistent": self.persistent,
            "priority": self.priority,
            "timestamp": None,
            "expiration": None,
            "delivery_time": None,
            "message_id": None,
        }

    @classmethod
    def checked(cls, destination: Destination | str | None, **given: Unpack[ProducerKeywords]) -> Self:
        """Raises ConfigError, InvalidDestinationError: an argument does not fit; the text names it."""
        given = {**PRODUCER_DEFAULTS, **given}
        return cls(
            None if destination is None else _sendable(parse_destination(destination)),
            _boolean("persistent", given["persistent"]),
            _priority(given["priority"]),
            _milliseconds("ttl", given["ttl"]),
            _milliseconds("delivery_delay", given["delivery_delay"]),
        )


def prepare(
    options: SendOptions, body: object, destination: Destination | str | None, given: SendKeywords, now: int
) -> Message:
    """The message with its headers as sent; ``now`` in epoch milliseconds.

    Raises:
        MessageFormatError: the message type cannot carry a value.
        InvalidDestinationError: no destination, or one that cannot be sent to.
        ConfigError: an option does not fit; the text names it.
    """
    usual = options.usual
    simple = not given or _PROPERTIES.issuperset(given)
    if usual is not None and destination is None and simple and body.__class__ in _SIMPLE:
        fields = usual.copy()  # most messages, in fewer steps
        fields["body"], fields["timestamp"] = body, now
        message = Message.outgoing(fields)
        if given and (properties := given.get("properties")):
            message.properties = check_own(properties)
        return message
    if isinstance(body, Destination):
        raise InvalidDestinationError(f"send: {body!r} cannot be a body; the body comes first: send(body, destination)")
    message = body if isinstance(body, Message) else Message(body)
    if message.source is not None:
        message = _forwarded(message)
    persistent, priority, ttl, delay = options.persistent, options.priority, options.ttl_ms, options.delivery_delay_ms
    if given:
        _set_headers(message, given)
        if (flag := given.get("persistent")) is not None:
            persistent = _boolean("persistent", flag)
        if (number := given.get("priority")) is not None:
            priority = _priority(number)
        if "ttl" in given:
            ttl = _milliseconds("ttl", given["ttl"])
        if "delivery_delay" in given:
            delay = _milliseconds("delivery_delay", given["delivery_delay"])
    own = options.destination
    message.stamp(
        destination=own if destination is None and own else _target(options, destination),
        persistent=persistent,
        priority=priority,
        timestamp=now,
        expiration=now + delay + ttl if ttl else None,
        delivery_time=now + delay if delay else None,
        message_id=None,
    )
    return message


def _forwarded(received: Message) -> Message:
    """A received one is read-only. Without its duplicate id: the broker would drop it where it has been before."""
    message = received.copy()
    if not _DUPLICATE_IDS.isdisjoint(message.properties):
        message.properties = {name: value for name, value in message.properties.items() if name not in _DUPLICATE_IDS}
    return message


def _set_headers(message: Message, given: SendKeywords) -> None:
    if properties := given.get("properties"):
        check_own(properties)
        message.properties = {**message.properties, **properties} if message.properties else properties
    if (correlation_id := given.get("correlation_id")) is not None:
        message.correlation_id = correlation_id
    if (reply_to := given.get("reply_to")) is not None:
        message.reply_to = parse_destination(reply_to)
    if (type := given.get("type")) is not None:
        message.type = type
    if (group_id := given.get("group_id")) is not None:
        message.group_id = group_id


def _target(options: SendOptions, given: Destination | str | None) -> Destination:
    if given is None:
        raise InvalidDestinationError("this producer has no destination of its own: name one in send()")
    if not isinstance(given, Destination):
        _check_order(given)
    target = _sendable(parse_destination(given))
    if options.destination is not None and target != options.destination:
        raise IllegalStateError(
            f"this producer sends to {options.destination} only, not to {target}: "
            "leave the destination out (the body comes first), or make a producer without one"
        )
    return target


def _check_order(given: object) -> None:
    """Raise where the destination of a send looks like a body."""
    if not isinstance(given, str) or _BODY.search(given):
        shown = repr(given)
        shown = shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
        raise InvalidDestinationError(
            f"send: {shown} cannot be a destination; the body comes first: send(body, destination), "
            "such as send('two chairs', 'orders')"
        )


def _sendable(target: Destination) -> Destination:
    if target.is_pattern:
        raise InvalidDestinationError(f"{target} is a pattern: it can be consumed from, not sent to")
    if "," in target.name:
        _ = target.parts  # checked here; the transport knows whether the broker has composite destinations
    return target


def _boolean(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(f"{name}={value!r} is neither True nor False")
    return value


def _priority(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 9:
        raise ConfigError(f"priority={value!r} must be an integer from 0 to 9")
    return value


def _milliseconds(name: str, value: float | timedelta | None) -> int:
    if value is None:
        return 0
    found = round(seconds(name, value) * 1000)
    warn_if_long(name, value, "it is")
    return found
