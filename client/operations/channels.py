"""A session's channel to the broker: the first one, another one on the next connection, or instead.

The place at which the session's waiter reads is the transport's mark on it, which goes with the channel: a channel that
is to have a socket of its own gets it where the waiter has no place yet.
"""

from __future__ import annotations

from typing import cast

from redelivery.client.ledger import ConsumerState, Detach
from redelivery.client.observing.near_limits import NearLimits
from redelivery.client.observing.traced import session_tracer
from redelivery.client.session.inbox import WeakSessionEvents
from redelivery.client.session.state import SessionState
from redelivery.model.destinations import Queue
from redelivery.model.errors import IllegalStateError, JMSError, RequestTimeoutError
from redelivery.transports.management.over_http import limit_over_http
from redelivery.transports.seam import Flow, Link, LinkSpec, SessionEvents, Transport


def open_first(s: SessionState) -> Flow[None]:
    """Open the session's first channel. Raises as `Transport.channel`."""
    yield from _open(s, s.epoch.transport, client_id=False)
    s.tracer = session_tracer(s.observed, s.number, s.epoch.transport)


def open_next(s: SessionState, transport: Transport, *, client_id: bool) -> Flow[None]:
    """A new one, instead of the one that the session has, which is gone with its connection. Raises as `open_first`."""
    s.waiter.place = None
    yield from _open(s, transport, client_id=client_id)
    if s.tracer is not None:
        s.tracer.connected(transport)


def take_client_id(s: SessionState) -> Flow[None]:
    """Another one, of the connection's own client id, where the broker takes that once and for one session only.

    Raises:
        IllegalStateError: the session uses the channel that it has.
        JMSError: as `open_first`; the session has its channel still.
    """
    if s.ledger.consumers or s.sent or s.browsing:
        raise IllegalStateError(
            "with this broker and protocol durable subscriptions belong to one session, which must make its first one "
            "before its other consumers, browsers and sends of a transaction; do so, or use a session of its own for it"
        )
    old, place = s.epoch.channel, s.waiter.place
    try:
        yield from open_next(s, s.epoch.transport, client_id=True)
    except JMSError:
        s.waiter.place = place
        raise
    s.waiter.place, place = place, s.waiter.place  # while the old one is closed, its answers are awaited there
    try:
        yield from old.close()
    finally:
        s.waiter.place = place


def begins_late(spec: LinkSpec) -> bool:
    """A consumer of window 0, over a protocol that only pushes, begins at its first receive; a named one when made."""
    return spec.window == 0 and spec.subscription is None and not spec.pulls


def attach_link(s: SessionState, link: Link[ConsumerState]) -> Flow[None]:
    """See `Channel.attach`; a loss right after it may be of what comes then."""
    s.suspects.subscribing(link.destination, s.now())
    yield from s.epoch.channel.attach(link)
    if link.limit is None:
        return
    address, queue = s.options.management, link.destination
    if address is not None and isinstance(queue, Queue):
        link.limit = yield from limit_over_http(link.limit, s.epoch.transport.peer.dialect, address, queue, s.waiter)
    if link.limit is not None:
        s.near = s.near or NearLimits(s.number, s.lines, s.observed)
        s.near.attached(link)
        s.near.arrived(link.consumer.ready)  # while the limit was asked for


def attach_anew(s: SessionState, consumer: ConsumerState) -> Flow[None]:
    """Attach a consumer that is not attached; where that has no answer, or is interrupted, its next link is another.

    What has come by the one that is given up goes back to the broker. Raises as `attach_link`.
    """
    try:
        yield from attach_link(s, consumer.link)
    except (RequestTimeoutError, GeneratorExit):
        s.ledger.orders.append(Detach(consumer.link))
        consumer.renew()
        raise
    consumer.attached = True


def _open(s: SessionState, transport: Transport, *, client_id: bool) -> Flow[None]:
    events = cast(SessionEvents, s)  # what comes up is of links that came down: the session's own
    channel = yield from transport.channel(s.mode, WeakSessionEvents(events), client_id=client_id)
    s.epoch.transport, s.epoch.channel = transport, channel
