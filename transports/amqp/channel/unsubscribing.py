"""The end of a durable subscription: found by a link, which is then closed and not merely detached."""

from __future__ import annotations

from redelivery.model.destinations import SubscriptionName
from redelivery.model.errors import InvalidDestinationError, UnsupportedError
from redelivery.transports.amqp.channel.context import answer
from redelivery.transports.amqp.connection.protocol import AmqpProtocol
from redelivery.transports.amqp.links.receivers import Receiver
from redelivery.transports.amqp.links.sessions import AmqpSession
from redelivery.transports.amqp.links.subscriptions import SubscriptionFinder, subscription_name
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.seam import Flow, Link, Pending, Waiter


def unsubscribe(
    protocol: AmqpProtocol, dialect: AmqpDialect, name: str, known: Link | None, waiter: Waiter
) -> Flow[None]:
    """See `Transport.unsubscribe`; its link is in a session of its own."""
    client_id = protocol.table.client_id
    named = SubscriptionName(name, durable=True, shared=not client_id)
    by_name = client_id or dialect.finds_global
    if not by_name and known is None:
        if named.kind not in dialect.capabilities.subscriptions:
            raise InvalidDestinationError(f"there is no {named.kind} subscription {name!r} without a client id")
        raise UnsupportedError(
            f"unsubscribe({name!r}): over AMQP a shared subscription that belongs to no client id is not found by its "
            "name alone: make a shared_durable_consumer of it in this connection, close that, and unsubscribe then"
        )
    yield from free_name(protocol, named, waiter)
    opened, closed, ended = (Pending(waiter) for _ in range(3))
    with protocol.writing():
        session = AmqpSession(protocol.table)
        session.open(None)
        link = subscription_name(named, (), client_id=client_id)
        finder = SubscriptionFinder(session, link, None if by_name else known, dialect)
        finder.open(opened)
    try:
        yield from answer(opened)
        with protocol.writing():
            finder.close(closed)
        yield from answer(closed)
    finally:
        with protocol.writing():
            session.close(ended)
    yield from answer(ended)


def free_name(protocol: AmqpProtocol, named: SubscriptionName, waiter: Waiter) -> Flow[None]:
    """Wait until the peer agrees to the end of a link of that name that nobody waits for: a cancelled call left it.

    Shared ones have a name for each link.

    Raises:
        RequestTimeoutError, ConnectionLostError: there is no answer.
    """
    if named.shared:
        return
    asked = Pending(waiter)
    with protocol.lock:
        for endpoint in protocol.table.endpoints.values():
            if (
                isinstance(endpoint, (Receiver, SubscriptionFinder))
                and endpoint.name == named.name
                and endpoint.ended is not None
            ):
                endpoint.follow_end(asked)
                break
        else:
            return
    yield from answer(asked)
