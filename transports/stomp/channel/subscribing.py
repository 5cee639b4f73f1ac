"""Makes the headers of a SUBSCRIBE, and what an UNSUBSCRIBE needs after it."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from itertools import count
from typing import Final

from redelivery.model.destinations import Queue, SubscriptionName
from redelivery.model.errors import (
    ConnectionLostError,
    JMSError,
    RequestTimeoutError,
    SecurityError,
    UnsupportedError,
)
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.finding import found, supposed_limit, warn_of_stream
from redelivery.transports.seam import Flow, Link
from redelivery.transports.stomp.channel.browsing import browse_headers
from redelivery.transports.stomp.channel.commits import empty
from redelivery.transports.stomp.channel.context import StompChannelContext
from redelivery.transports.stomp.channel.windows import window_size
from redelivery.transports.stomp.codec.control import ControlFrames
from redelivery.transports.stomp.codec.formats import SENDER
from redelivery.transports.stomp.codec.frames import encode_head
from redelivery.transports.stomp.codec.names import to_wire
from redelivery.transports.stomp.connection.subscriptions import PLAIN, StompSubscription

log = logging.getLogger(__name__)
_literal_or_word = re.compile(r"'(?:[^']|'')*'|\w+")
_LONGEST: Final = 60  # of a selector in an error
_identifiers: Final = count(1)


def new_identifier() -> str:
    """Never the same twice in a process: a subscription belongs to one connection."""
    return str(next(_identifiers))


def subscribe_headers(link: Link, context: StompChannelContext, window: int | None) -> dict[str, str]:
    """The headers of one subscription beside its destination; ``window``: None for none at all.

    Raises:
        UnsupportedError: the broker cannot do it.
    """
    dialect = context.dialect
    queue = isinstance(link.destination, Queue)
    if queue and link.destination.is_pattern and not dialect.capabilities.queue_patterns:
        raise UnsupportedError(
            f"{link.destination}: on this broker a consumer over STOMP takes from one queue; "
            "a pattern would be one more queue, of that name"
        )
    _check_length("destination", to_wire(link.destination, dialect), dialect)
    headers = dict(dialect.consume_queue if queue else dialect.consume_topic)
    headers |= _serving_headers(link, dialect, window)
    if dialect.acks_topics_itself and not queue:
        headers["ack"] = "auto"
    conditions = [] if link.spec.selector is None else [link.spec.selector]
    if link.spec.no_local:
        if dialect.no_local_header is None:
            raise UnsupportedError("this broker has no no_local over STOMP")
        headers[dialect.no_local_header] = "true"
        if dialect.sessions_per_wire and not queue:  # the header means this socket, JMS the connection
            conditions.append(f"{SENDER} IS NULL OR {SENDER} <> '{context.token}'")
    headers |= subscription_headers(link.spec.subscription, context)
    if conditions:
        both = " AND ".join(f"({each})" for each in conditions)
        headers["selector"] = written = _selector(conditions[0] if len(conditions) == 1 else both, dialect)
        _check_length("selector", written, dialect)
    if dialect.map_transformation is not None:
        headers["transformation"] = dialect.map_transformation
    return headers | (browse_headers(dialect) if link.spec.browse else {})


def _serving_headers(link: Link, dialect: StompDialect, window: int | None) -> dict[str, str]:
    """The headers for how much of the queue it gets. Raises UnsupportedError where it cannot be the only one."""
    headers = {}
    if dialect.prefetch_header is not None:
        if window is not None:
            headers[dialect.prefetch_header] = str(window)
        elif dialect.unlimited_window is not None:
            headers[dialect.prefetch_header] = dialect.unlimited_window
    if link.spec.exclusive:
        if dialect.exclusive_header is None:
            raise UnsupportedError("this broker has no exclusive consumers over STOMP")
        headers[dialect.exclusive_header] = "true"
    return headers


def subscription_headers(named: SubscriptionName | None, context: StompChannelContext) -> dict[str, str]:
    """The headers of a named subscription. Raises UnsupportedError where there are none."""
    dialect = context.dialect
    if named is None:
        return {}
    if named.kind not in dialect.capabilities.subscriptions:
        raise UnsupportedError(f"this broker has no {named.kind} subscriptions over STOMP")
    if named.shared and dialect.shared_needs_client_id and context.client_id is None:
        raise UnsupportedError(
            f"{named}: over STOMP this broker keeps one for a client id only: connect(…, client_id='…'), or use amqp://"
        )
    _check_length(dialect.subscription_header, named.name, dialect)
    headers = {dialect.subscription_header: named.name}
    if named.shared:
        headers |= dict(dialect.shared_headers)
    if not named.durable:
        headers |= dict(dialect.volatile_headers)
    return headers


def remove_frame(name: str, control: ControlFrames, dialect: StompDialect, receipt: bytes) -> bytes:
    """UNSUBSCRIBE that removes a durable subscription, answered. Raises UnsupportedError: the name is too long."""
    _check_length(dialect.subscription_header, name, dialect)
    return control.unsubscribe(new_identifier(), receipt.decode(), {dialect.subscription_header: name})


def prepare(context: StompChannelContext, link: Link, *, deferred: bool) -> Flow[tuple[int | None, dict[str, str]]]:
    """Find its queue; remove the durable subscription that it makes anew where the broker would keep the old one.

    Returns:
        Its window (`window_size`) and headers; `Link.prefetch` and `Link.limit` are filled in.

    Raises:
        UnsupportedError: the broker cannot do it; nothing was done.
    """
    dialect, wished = context.dialect, link.prefetch
    size = window_size(link, dialect, deferred=deferred)
    headers = subscribe_headers(link, context, size)
    queue = context.meaning.of(link.destination)
    try:
        yield from found(context.finder, queue)
    except SecurityError:
        if not isinstance(queue, Queue) or queue.declare or dialect.addresses is not None:
            raise
        # it may not be looked for by who may not make it; the SUBSCRIBE says whether it is there
    _check_selects(context, link, headers)
    refusal = "" if context.finder is None else context.finder.others.get(link.destination.name, "")
    if dialect.stream and any(f"{word} '{dialect.stream}'" in refusal for word in ("is", "value")):
        warn_of_stream(link.destination)
    if dialect.limits is not None and type(link.destination) is Queue:
        link.limit = supposed_limit(dialect.limits, refusal)
        if wished is None and dialect.counted_prefetch and any(each in refusal for each in dialect.limits.said):
            link.prefetch = wished = link.spec.ahead(dialect.counted_prefetch)
            size = window_size(link, dialect, deferred=deferred)
            headers = subscribe_headers(link, context, size)
    link.prefetch = 1 if link.spec.pulls else link.spec.ahead(dialect.default_prefetch) if wished is None else wished
    named = link.spec.subscription
    if named is not None and link.changed and not dialect.subscription_changes:
        pending, receipt = context.ask()
        context.outbox.write(remove_frame(named.name, context.control, dialect, receipt))
        yield from context.answer(pending, receipt)
    return size, headers


def _check_selects(context: StompChannelContext, link: Link, headers: dict[str, str]) -> None:
    route = context.route(link.destination)
    if route is None or route.selects or "selector" not in headers:
        return
    selector = headers["selector"].removeprefix(context.dialect.selector_prefix)[:_LONGEST]
    if route.selects is None:
        log.warning(
            "%s: this user cannot see whether it is a MULTICAST queue, of which the broker heeds no selector over "
            "STOMP: it may deliver what is not selected by %r",
            link.destination,
            selector,
        )
        return
    raise UnsupportedError(
        f"{link.destination}: it is a MULTICAST queue, of which this broker heeds no selector over STOMP: it would "
        f"deliver what is not selected by {selector!r}. Use amqp://, or an ANYCAST queue"
    )


def subscribe_frame(
    context: StompChannelContext, link: Link, headers: dict[str, str], receipt: bytes, *, silent: bool
) -> bytes:
    """SUBSCRIBE, answered; ``silent``: an empty transaction is answered instead."""
    destination, headers = context.name(link.destination), _of_its_kind(context, link, headers)
    if "transformation" in headers:
        context.router.asks_for_maps()
    if silent:
        return context.control.subscribe(destination, link.id, headers) + empty(receipt)
    return context.control.subscribe(destination, link.id, {**headers, "receipt": receipt.decode()})


def _of_its_kind(context: StompChannelContext, link: Link, headers: dict[str, str]) -> dict[str, str]:
    route = context.route(link.destination)
    return headers if route is None else {**headers, **dict(route.consume)}


def give_up(context: StompChannelContext, link: Link, receipt: bytes, error: JMSError) -> Flow[None]:
    """The SUBSCRIBE has failed.

    Raises:
        UnsupportedError: the connection was lost because the broker closes it at every SUBSCRIBE that asks for maps.
            One that does not would get a map of OpenWire's as an empty text, which is no way out.
    """
    if isinstance(error, RequestTimeoutError):  # it may exist, and nobody would take its messages
        context.outbox.write(context.control.unsubscribe(link.id, receipt.decode()))
    lacking = context.dialect.maps_lacking
    if not lacking or not isinstance(error, ConnectionLostError):
        return
    if (yield from context.closes_at_maps()):
        raise UnsupportedError(f"{link.destination}: no consumer over STOMP: {lacking}") from error


def further(context: StompChannelContext, link: Link, window: int) -> tuple[StompSubscription, bytes]:
    """Another subscription of a consumer's, and its SUBSCRIBE, which is not answered."""
    identifier = new_identifier()
    headers = _of_its_kind(context, link, subscribe_headers(link, context, window))
    frame = context.control.subscribe(context.name(link.destination), identifier, headers)
    return StompSubscription(link, context.events, context.dialect, context.version, identifier), frame


def supersede(context: StompChannelContext, subscription: StompSubscription, receipt: bytes | None = None) -> bytes:
    """UNSUBSCRIBE, and SUBSCRIBE with the same id where nothing comes: what came before can be settled all the same.

    In one write: what is still on its way to the id finds one, or the broker would drop it unseen and unsettled.
    """
    identifier = subscription.identifier.decode()
    subscription.superseded = True
    headers = {} if receipt is None else {"receipt": receipt.decode()}
    nowhere = f"{context.dialect.unsubscribe_keeps}.{identifier}"
    return context.control.unsubscribe(identifier) + context.control.subscribe(nowhere, identifier, headers)


def release_unsettled(context: StompChannelContext, subscriptions: Sequence[StompSubscription]) -> Flow[None]:
    """End them where UNSUBSCRIBE releases nothing: NACK what is not settled, to be delivered to others.

    A NACK needs a living subscription, and releases to any consumer, itself included: so they are superseded before.
    The oldest is released first: a quorum queue delivers them again in the order in which they came back.

    Raises:
        JMSError: it was refused; the messages go back to the broker when the connection ends.
    """
    consuming = [each for each in subscriptions if not each.superseded]
    if consuming:
        pending, receipt = context.ask()
        last = supersede(context, consuming[-1], receipt)
        context.outbox.write(b"".join([supersede(context, each) for each in consuming[:-1]]) + last)
        yield from context.answer(pending, receipt)
        pending, receipt = context.ask()  # once more: what was on its way comes after that answer
        context.outbox.write(empty(receipt))
        yield from context.answer(pending, receipt)
    nacks = [
        b"N" + subscription.ack(delivery, PLAIN)
        for subscription in subscriptions
        for delivery in tuple(subscription.unsettled or ())
    ]
    yield from end(context, subscriptions, b"".join(nacks))


def end(context: StompChannelContext, subscriptions: Sequence[StompSubscription], before: bytes = b"") -> Flow[None]:
    """UNSUBSCRIBE, answered, after ``before``; the newest first, since each releases to the queue's head."""
    asked = [context.ask() for _ in subscriptions]
    frames = [
        context.control.unsubscribe(each.identifier.decode(), receipt.decode())
        for each, (_, receipt) in zip(reversed(subscriptions), asked, strict=True)
    ]
    if before or frames:
        context.outbox.write(before + b"".join(frames))
    for pending, receipt in asked:
        yield from context.answer(pending, receipt)


def _check_length(name: str, value: str, dialect: StompDialect) -> None:
    length = len(encode_head("SUBSCRIBE", {name: value})) - len("SUBSCRIBE\n\n")
    if 0 < dialect.max_header < length:
        raise UnsupportedError(
            f"the {name} takes {length} bytes: over STOMP this broker ends the connection at a header of more than "
            f"{dialect.max_header}"
        )


def _selector(selector: str, dialect: StompDialect) -> str:
    if not dialect.capabilities.selectors:
        raise UnsupportedError(f"this broker has no selectors over STOMP: {selector[:_LONGEST]!r}")
    names = dict(dialect.selector_names)
    if names:
        selector = _literal_or_word.sub(lambda match: names.get(match.group(), match.group()), selector)
    return dialect.selector_prefix + selector
