"""Acknowledging the long way: several deliveries, credit to give, or a peer that does not take all at once."""

from __future__ import annotations

from collections.abc import Sequence

from redelivery.model.errors import ConnectionLostError, JMSError
from redelivery.transports.amqp.connection.protocol import AmqpProtocol
from redelivery.transports.amqp.links.dispositions import ACCEPTED
from redelivery.transports.amqp.links.receivers import AmqpDelivery


def accept_all(protocol: AmqpProtocol, deliveries: Sequence[AmqpDelivery], *, batched: bool, done: list[None]) -> None:
    """`Channel.accept`, for any number of them; ``done`` gets its entry. Where an interrupt may come, sheltered."""
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
        if not batched or receiver.batched >= receiver.step:
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


def write_rest(protocol: AmqpProtocol, done: list[None], *, refused: bool) -> bool:
    """Write what a row has left; whether all has left, or this thread has waited until it had.

    ``refused``: the row has written nothing, so that ``done`` is cleared where nothing leaves now either.

    Raises:
        ConnectionLostError: it is gone.
    """
    with protocol.lock:
        protocol.check()
        written = protocol.written
        protocol.write()
    if protocol.blocked and refused:
        try:
            protocol.raise_refused(written)
        except ConnectionLostError:
            done.clear()
            raise
    return not protocol.blocked or protocol.drain()
