"""The router alone: what other threads do while it is at work."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import pytest

from redelivery.model.destinations import Queue
from redelivery.model.errors import JMSError
from redelivery.transports.dialects import activemq
from redelivery.transports.seam import Delivery, Link, LinkSpec, Pending, Waiter
from redelivery.transports.stomp.codec.frames import encode
from redelivery.transports.stomp.codec.reader import FrameReader, RawFrame
from redelivery.transports.stomp.connection.router import Router
from redelivery.transports.stomp.connection.subscriptions import StompSubscription


class Events:
    """A session that does something when it is woken."""

    def __init__(self) -> None:
        self.inbox: deque[Delivery] = deque()
        self.waiter: Waiter = self
        self.place, self.awaits = None, False
        self.then: Callable[[], None] = lambda: None

    def wake(self) -> None:
        self.then()

    def on_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        self.inbox.extend(deliveries)
        self.wake()

    def on_link_closed(self, link: Link, error: JMSError) -> None:
        raise AssertionError((link, error))


def subscription(identifier: str, events: Events) -> StompSubscription:
    link = Link(LinkSpec(Queue("q")))
    link.id = identifier
    return StompSubscription(link, events, activemq.STOMP, "1.2")


def frames(*wanted: tuple[str, dict[str, str]]) -> list[RawFrame]:
    return FrameReader().feed(b"".join(encode(command, headers) for command, headers in wanted))


def test_messages_of_a_consumer_that_ends_in_the_middle_of_a_read_are_dropped() -> None:
    events, router = Events(), Router(activemq.STOMP, "1.2", lambda _: None)
    ours = subscription("1", events)
    router.add(ours)
    events.then = lambda: router.remove(ours)
    message = ("MESSAGE", {"subscription": "1", "ack": "a"})
    router.route(frames(message, ("RECEIPT", {"receipt-id": "x"}), message))
    router.route(frames(message))
    assert len(events.inbox) == 1


def test_messages_and_answers_keep_their_order() -> None:
    events, router = Events(), Router(activemq.STOMP, "1.2", lambda _: None)
    router.add(subscription("1", events))
    router.add(subscription("11", events))  # a prefix is not the same
    order: list[str] = []

    def take_all() -> None:
        order.extend(each.link.id for each in events.inbox)
        events.inbox.clear()

    events.then = take_all
    receipt = router.expect(Pending(on_done=lambda _: order.append("answer"))).decode()
    message = {
        identifier: ("MESSAGE", {"a": "subscription:9", "subscription": identifier}) for identifier in ("1", "11")
    }
    router.route(frames(message["1"], message["11"], ("RECEIPT", {"receipt-id": receipt}), message["1"], message["1"]))
    assert order == ["1", "11", "answer", "1", "1"]


def test_an_answer_to_somebody_who_gave_up_is_no_error() -> None:
    reported: list[JMSError] = []
    router = Router(activemq.STOMP, "1.2", reported.append)
    receipt = router.expect(Pending())
    router.forget(receipt)
    router.route(frames(("RECEIPT", {"receipt-id": receipt.decode()})))
    assert reported == []
    router.route(frames(("ERROR", {"receipt-id": receipt.decode(), "message": "late"})))
    assert "late" in str(reported[0])


def test_an_error_that_names_a_subscription_is_that_ones_end() -> None:
    """RabbitMQ, when a queue is deleted: its consumer is notified, and nobody else; its messages are dropped."""
    reported: list[tuple[Link, str]] = []

    class Reported(Events):
        def on_link_closed(self, link: Link, error: JMSError) -> None:
            reported.append((link, str(error)))

    events, router = Reported(), Router(activemq.STOMP, "1.2", lambda error: pytest.fail(str(error)))
    ours, other = subscription("1", events), subscription("2", Events())
    router.add(ours)
    router.add(other)
    router.route(frames(("ERROR", {"subscription": "1", "message": "Server cancelled subscription"})))
    router.route(frames(("MESSAGE", {"subscription": "1", "ack": "a"})))
    assert [(link, "Server cancelled subscription" in text) for link, text in reported] == [(ours.link, True)]
    assert not events.inbox
    assert (router.cancelled(ours), router.cancelled(other)) == (True, False)
