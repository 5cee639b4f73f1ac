"""AMQP messages to read: as proton writes them, and section by section."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from redelivery.model.destinations import Destination, Queue
from redelivery.transports.amqp.codec.encoding import write_list, write_map, write_symbol
from redelivery.transports.amqp.codec.messages import AmqpFormat
from redelivery.transports.amqp.links.receivers import AmqpDelivery
from redelivery.transports.dialects import activemq
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.seam import Link, LinkSpec

proton = pytest.importorskip("proton")


def delivery(
    raw: bytes | bytearray, dialect: AmqpDialect = activemq.AMQP, destination: Destination | None = None
) -> AmqpDelivery:
    link = Link(LinkSpec(destination or Queue("orders")))
    receiver: Any = SimpleNamespace(
        link=link,
        dialect=dialect,
        format=AmqpFormat(dialect, link.destination),
        table=SimpleNamespace(broker="broker:5672"),
    )
    return AmqpDelivery(raw, receiver, "handle")


def encoded(body: Any = None, *, inferred: bool = False, **fields: Any) -> bytes:
    """What proton makes of it."""
    annotations = {proton.symbol(name): value for name, value in fields.pop("annotations", {}).items()}
    message = proton.Message(body=body, annotations=annotations or None, **fields)
    message.inferred = inferred
    raw: bytes = message.encode()
    return raw


def received(body: Any = None, **fields: Any) -> AmqpDelivery:
    return delivery(encoded(body, **fields))


def section(code: int, value: str | bytes) -> bytes:
    return bytes((0, 0x53, code)) + (bytes.fromhex(value) if isinstance(value, str) else value)


def listed(fields: str) -> bytes:
    return write_list([bytes.fromhex(field) for field in fields.split()])


# The annotation x-opt-jms-msg-type.
KINDS = [section(0x72, write_map([write_symbol("x-opt-jms-msg-type"), bytes((0x51, number))])) for number in range(6)]


def kind(number: int) -> dict[str, Any]:
    return {"x-opt-jms-msg-type": proton.byte(number)}
