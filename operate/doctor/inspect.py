"""Connects to a broker and looks: at its queues, its settings and its clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from redelivery.client.sync.connection import Connection
from redelivery.model.errors import JMSError, UnsupportedError
from redelivery.operate.doctor.management import (
    artemis_queues,
    artemis_time,
    broker_j_queues,
    broker_j_time,
    managed_as,
)
from redelivery.operate.doctor.observed import QueueState
from redelivery.transports.wire.clock import epoch_ms

_SECONDS: Final = 5.0
_BROWSED: Final = 10_000  # messages that are counted by browsing


def look_at_queues(connection: Connection, names: Iterable[str]) -> dict[str, QueueState]:
    """The queues of the broker where it lists them, else those of these names that can be looked at.

    Raises:
        UnsupportedError: it says nothing about queues over this protocol.
        JMSError: it does not answer, or refuses.
    """
    match managed_as(connection):
        case "artemis":
            return artemis_queues(connection)
        case "qpid":
            return broker_j_queues(connection, names)
    if not connection.metadata.capabilities.browse:
        where = "; use amqp://" if connection.dialect == "artemis" else ""
        raise UnsupportedError(f"this broker reports no queues over this protocol{where}")
    return {name: QueueState(name, _browsed(connection, name)) for name in names}


def clock_skew(connection: Connection) -> float:
    """Seconds by which the broker's clock is ahead of ours.

    Over STOMP it sends a message to a temporary queue, which says when the broker got it. Over AMQP a message says only
    when it was sent: Artemis is asked when it made a consumer, and the answers of Broker-J's management say when.

    Raises:
        UnsupportedError: the broker does not say its time over this protocol.
        JMSError: the broker refuses that, or does not answer.
    """
    protocol = connection.metadata.protocol.lower()
    if protocol == "vm":
        return 0.0  # it is in this process
    managed = managed_as(connection)
    if managed is None and not protocol.startswith("stomp"):
        raise UnsupportedError("the messages of this broker do not say its time over AMQP; use stomp://")
    before = epoch_ms()
    match managed:
        case "artemis":
            broker = artemis_time(connection)
        case "qpid":
            broker = broker_j_time(connection)
        case _:
            broker = _stamped(connection)
    after = epoch_ms()
    if before <= broker <= after:
        return 0.0
    return (broker - (after if broker > after else before)) / 1000


def _stamped(connection: Connection) -> float:
    """The time that the broker puts on a message, in milliseconds since 1970."""
    with connection.session() as session:
        queue = session.temporary_queue()
        with session.consumer(queue) as consumer:
            session.producer(queue).send("what time is it?", persistent=False)
            message = consumer.receive(timeout=_SECONDS)
    if message is None:
        raise JMSError(f"a message that was sent to {queue} did not arrive within {_SECONDS:g} s")
    if message.timestamp is None:
        raise UnsupportedError("the messages of this broker do not say when it got them")
    return message.timestamp.timestamp() * 1000


def _browsed(connection: Connection, name: str) -> int:
    with connection.session() as session, session.browser(name) as browser:
        number = 0
        for _ in browser:
            number += 1
            if number == _BROWSED:
                break
        return number
