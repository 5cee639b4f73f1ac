"""What a SUBSCRIBE says, and what an UNSUBSCRIBE needs after it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from redelivery.model.destinations import Queue
from redelivery.model.errors import UnsupportedError
from redelivery.transports.base import Flow, Link
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.stomp.commits import empty
from redelivery.transports.stomp.conversation import Conversation
from redelivery.transports.stomp.subscriptions import PLAIN, Subscription

_literal_or_word = re.compile(r"'(?:[^']|'')*'|\w+")
_LONGEST: Final = 60  # of a selector in an error


def subscribe_headers(link: Link, dialect: StompDialect, window: int | None) -> dict[str, str]:
    """The headers of one subscription beside its destination; ``window``: None for none at all.

    Raises:
        UnsupportedError: the broker cannot do it.
    """
    queue = isinstance(link.destination, Queue)
    if queue and link.destination.is_pattern and not dialect.capabilities.queue_patterns:
        raise UnsupportedError(
            f"{link.destination}: on this broker a consumer over STOMP takes from one queue; "
            "a pattern would be one more queue, of that name"
        )
    headers = dict(dialect.consume_queue if queue else dialect.consume_topic)
    if dialect.prefetch_header is not None:
        if window is not None:
            headers[dialect.prefetch_header] = str(window)
        elif dialect.unlimited_window is not None:
            headers[dialect.prefetch_header] = dialect.unlimited_window
    if link.selector is not None:
        headers["selector"] = _selector(link.selector, dialect)
    if link.no_local:
        if dialect.no_local_header is None:
            raise UnsupportedError("this broker has no no_local over STOMP")
        headers[dialect.no_local_header] = "true"
    if dialect.map_transformation is not None:
        headers["transformation"] = dialect.map_transformation
    return headers


def move_aside(talk: Conversation, subscription: Subscription, receipt: bytes | None = None) -> bytes:
    """UNSUBSCRIBE, and SUBSCRIBE with the same id where nothing comes: what came before can be settled all the same.

    In one write: what is still on its way to the id finds one, or the broker would drop it unseen and unsettled.
    """
    identifier = subscription.identifier.decode()
    subscription.aside = True
    headers = {} if receipt is None else {"receipt": receipt.decode()}
    nowhere = f"{talk.dialect.unsubscribe_keeps}.{identifier}"
    return talk.control.unsubscribe(identifier) + talk.control.subscribe(nowhere, identifier, headers)


def give_back(talk: Conversation, subscriptions: Sequence[Subscription]) -> Flow[None]:
    """End them where UNSUBSCRIBE gives nothing back: NACK what is not settled, to be delivered to others.

    A NACK needs a living subscription, and gives back to whoever consumes, itself included: so they move aside before.
    The newest is given back first, which costs the broker least.

    Raises:
        JMSError: it was refused; the messages are the broker's again when the connection ends.
    """
    consuming = [each for each in subscriptions if not each.aside]
    if consuming:
        pending, receipt = talk.ask()
        last = move_aside(talk, consuming[-1], receipt)
        talk.outbox.write(b"".join([move_aside(talk, each) for each in consuming[:-1]]) + last)
        yield from talk.answer(pending, receipt)
        pending, receipt = talk.ask()  # once more: what was on its way comes after that answer
        talk.outbox.write(empty(receipt))
        yield from talk.answer(pending, receipt)
    nacks = [
        b"N" + subscription.ack(delivery, PLAIN)
        for subscription in reversed(subscriptions)
        for delivery in reversed(tuple(subscription.unsettled or ()))
    ]
    yield from end(talk, subscriptions, b"".join(nacks))


def end(talk: Conversation, subscriptions: Sequence[Subscription], before: bytes = b"") -> Flow[None]:
    """UNSUBSCRIBE, answered, after ``before``; the newest first, since each gives back to the queue's head."""
    asked = [talk.ask() for _ in subscriptions]
    frames = [
        talk.control.unsubscribe(each.identifier.decode(), receipt.decode())
        for each, (_, receipt) in zip(reversed(subscriptions), asked, strict=True)
    ]
    if before or frames:
        talk.outbox.write(before + b"".join(frames))
    for pending, receipt in asked:
        yield from talk.answer(pending, receipt)


def _selector(selector: str, dialect: StompDialect) -> str:
    if not dialect.capabilities.selectors:
        raise UnsupportedError(f"this broker has no selectors over STOMP: {selector[:_LONGEST]!r}")
    names = dict(dialect.selector_names)
    if names:
        selector = _literal_or_word.sub(lambda match: names.get(match.group(), match.group()), selector)
    return dialect.selector_prefix + selector
