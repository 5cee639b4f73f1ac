"""Temporary destinations over AMQP: dynamic nodes."""

from __future__ import annotations

from redelivery.model.destinations import Destination, Topic
from redelivery.model.errors import ProtocolError, UnsupportedError
from redelivery.transports.amqp.channel.context import answer
from redelivery.transports.amqp.connection.protocol import AmqpProtocol
from redelivery.transports.amqp.links.management import ManagementNode
from redelivery.transports.amqp.links.senders import Maker
from redelivery.transports.amqp.links.sessions import AmqpSession
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.seam import Flow, Pending, Waiter


def make_temporary(
    protocol: AmqpProtocol, dialect: AmqpDialect, kind: type[Destination], waiter: Waiter
) -> Flow[Destination]:
    """See `Transport.temporary`; its link is in a session of its own, which lives as long as the connection."""
    topic = issubclass(kind, Topic)
    if isinstance(protocol.nodes, ManagementNode) and not topic:
        return kind((yield from protocol.nodes.temporary(protocol.writing, waiter)))
    named = dialect.temporary_topic_capability if topic else dialect.temporary_queue_capability
    if named is None:
        raise UnsupportedError(f"this broker makes no {kind.__name__} over AMQP")
    asked = Pending(waiter)
    with protocol.writing():
        session = AmqpSession(protocol.table)
        session.open(None)
        maker = Maker(session, named)
        maker.open(asked)
    yield from answer(asked)
    if not maker.address:
        raise ProtocolError(f"{maker.what}: the broker gave it no name")
    return kind(maker.address)
