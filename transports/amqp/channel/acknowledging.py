"""Acknowledging: one delivery or several, with the credit that this allows."""

from __future__ import annotations

from collections.abc import Sequence

from redelivery.model.errors import JMSError
from redelivery.transports.amqp.connection.protocol import AmqpProtocol
from redelivery.transports.amqp.links.dispositions import ACCEPTED
from redelivery.transports.amqp.links.receivers import AmqpDelivery


def accept_all(protocol: AmqpProtocol, deliveries: Sequence[AmqpDelivery], *, batched: bool, done: list[None]) -> None:
    """`Channel.accept`, ``done`` gets its entry."""
    with protocol.lock:
        protocol.check()
        written = protocol.written
        try:
            for delivery in deliveries:
                receiver = delivery.receiver
                receiver.settle(delivery, ACCEPTED)
                if not delivery.credited:
                    receiver.make_room(delivery)
                receiver.batched += 1
        except JMSError:
            protocol.write()  # those before it are acknowledged
            raise
        if not batched or receiver.batched >= receiver.ahead.step:
            receiver.batched = 0
            protocol.write()
            batched = False
    if protocol.blocked and not batched:
        protocol.raise_refused(written)
    done.append(None)
    if batched:
        protocol.flush_soon()
    elif protocol.blocked:
        protocol.drain()
