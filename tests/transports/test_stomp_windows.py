"""Batches larger than the window where no ACK may leave: when a further subscription is asked for, and when it ends."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import SimpleNamespace

import pytest

from redelivery.model.destinations import Queue
from redelivery.model.errors import JMSError
from redelivery.transports.dialects import activemq, artemis, hornetq, rabbitmq
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.seam import Link, LinkSpec
from redelivery.transports.stomp.channel.windows import Window, window_size
from redelivery.transports.stomp.connection.router import Router
from redelivery.transports.stomp.connection.subscriptions import StompDelivery, StompSubscription

RABBITMQ = "RabbitMQ/3.10.8"
ARTEMIS = "ActiveMQ-Artemis/2.44.0"


def subscription(dialect: StompDialect = rabbitmq.STOMP, identifier: str = "1") -> StompSubscription:
    return StompSubscription(Link(LinkSpec(Queue("q"))), None, dialect, "1.2", identifier)  # type: ignore[arg-type]  # nobody listens


def deliveries(of: StompSubscription, number: int, size: int = 100) -> list[StompDelivery]:
    made = [StompDelivery(b"MESSAGE\nmessage-id:%d\n" % at, b"x" * size, of) for at in range(number)]
    assert of.unsettled is not None
    of.unsettled.update(dict.fromkeys(made))
    return made


@pytest.mark.parametrize(
    ("dialect", "prefetch", "size"),
    [
        (rabbitmq.STOMP, None, 100),
        (rabbitmq.STOMP, 0, 1),
        (artemis.STOMP, None, 1 << 20),
        (artemis.STOMP, 100, 100 * 1024),
        (artemis.STOMP, 1, 1),
        (artemis.STOMP, 10, 10 * 1024),
        (hornetq.STOMP, 5, 10 * 1024),
    ],
)
def test_a_window_counts_messages_or_bytes(dialect: StompDialect, prefetch: int | None, size: int) -> None:
    assert window_size(Link(LinkSpec(Queue("q"), window=prefetch)), dialect) == size


@pytest.mark.parametrize(
    ("dialect", "most", "size"),
    [
        (rabbitmq.STOMP, None, 10),  # and the next ones by what has come
        (rabbitmq.STOMP, 5, 5),
        (artemis.STOMP, None, 50_000),
        (artemis.STOMP, 20, 20 * 1024),
        (hornetq.STOMP, None, 10 * 1024),
        (activemq.STOMP, None, 100),  # where nothing changes it
        (activemq.STOMP, 1000, 100),
        (activemq.STOMP, 5, 5),
    ],
)
def test_a_window_of_so_many_bytes_is_what_the_broker_allows(
    dialect: StompDialect, most: int | None, size: int
) -> None:
    link = Link(LinkSpec(Queue("q"), window=most, max_bytes=50_000))
    assert window_size(link, dialect, deferred=True) == size


@pytest.mark.parametrize(
    ("body", "counted", "sizes"),
    [(200, 100, [20, 40, 80, 160, 320, 640, 1000]), (10_000, 100, [5, 5]), (1 << 20, 100, [1, 1]), (1, 10, [20, 100])],
    ids=["small", "large", "huge", "counted"],
)
def test_a_broker_that_counts_messages_gets_further_windows_of_so_many_bytes(
    body: int, counted: int, sizes: list[int]
) -> None:
    link = Link(LinkSpec(Queue("q"), max_bytes=300_000 if body == 200 else 50_000))
    link.prefetch = counted
    current = StompSubscription(link, None, rabbitmq.STOMP, "1.2", "1")  # type: ignore[arg-type]  # nobody listens
    window, found = Window(rabbitmq.STOMP, 10, current), [0]
    while found[-1] not in sizes[-1:]:
        needed = 0
        while not needed:
            needed = window.take(*deliveries(current, 1, size=body))
        found.append(needed)
        current = StompSubscription(link, None, rabbitmq.STOMP, "1.2", str(len(found)))  # type: ignore[arg-type]
        window.replace(current, needed)
    assert found[1:2] == sizes[:1]
    assert max(found) == max(sizes)


@pytest.mark.parametrize("dialect", [artemis.STOMP, hornetq.STOMP])
def test_a_further_subscription_is_needed_when_the_bytes_are_used_up(dialect: StompDialect) -> None:
    first = subscription(dialect)
    window = Window(dialect, 1024, first)
    assert [window.take(each) > 0 for each in deliveries(first, 10, size=80)] == [False] * 9 + [True]


def test_a_further_subscription_is_needed_when_the_messages_are_used_up() -> None:
    first = subscription()
    window = Window(rabbitmq.STOMP, 4, first)
    assert [window.take(each) for each in deliveries(first, 4)] == [0, 0, 0, 4]


def test_what_is_dispatched_again_counts_once() -> None:
    first = subscription()
    window = Window(rabbitmq.STOMP, 10, first)
    few = deliveries(first, 4)
    assert [window.take(each) for each in few * 3] == [0] * 12
    for each in few:
        window.settle(each)
    assert [window.take(each) for each in deliveries(first, 10)] == [0] * 9 + [10]


def test_a_further_window_is_as_large_as_what_is_held_within_a_bound() -> None:
    first = subscription()
    window = Window(rabbitmq.STOMP, 10, first)
    sizes = []
    current = first
    for number in range(6):
        needed = 0
        while not needed:
            (each,) = deliveries(current, 1)
            needed = window.take(each)
        sizes.append(needed)
        current = subscription(identifier=str(number + 2))
        window.replace(current, needed)
    assert sizes == [10, 20, 40, 80, 100, 100]


def test_one_large_message_uses_up_its_own_subscription_only() -> None:
    first, second = subscription(artemis.STOMP), subscription(artemis.STOMP, "2")
    window = Window(artemis.STOMP, 1024, first)
    assert window.take(*deliveries(first, 1, size=1 << 20)) > 0
    window.grow(second, 10_000)
    assert window.take(*deliveries(second, 1)) == 0


def test_further_subscriptions_end_when_the_queue_has_nothing_though_it_could_send() -> None:
    first, second = subscription(artemis.STOMP), subscription(artemis.STOMP, "2")
    window = Window(artemis.STOMP, 200, first)
    held = deliveries(first, 2)
    for each in held:
        window.take(each)
    window.grow(second, 1000)
    (unseen,) = deliveries(second, 1)
    assert not window.idle(held)
    assert window.further() == []
    assert window.idle([*held, unseen])
    for each in (*held, unseen):
        window.settle(each)
    assert window.further() == [second]
    window.drop([second])
    assert window.further() == []
    assert [window.take(each) > 0 for each in deliveries(first, 2)] == [False, True]


def test_a_window_without_room_is_not_idle() -> None:
    """What it could not send may be there."""
    first, second = subscription(artemis.STOMP), subscription(artemis.STOMP, "2")
    window = Window(artemis.STOMP, 200, first)
    window.grow(second, 10)
    held = [*deliveries(first, 2), *deliveries(second, 1)]
    for each in held:
        window.take(each)
    assert not window.idle(held)


def test_those_that_were_replaced_are_over_when_they_are_settled() -> None:
    first, second = subscription(), subscription(identifier="2")
    window = Window(rabbitmq.STOMP, 2, first)
    held = deliveries(first, 2)
    for each in held:
        window.take(each)
    first.superseded = True
    window.replace(second, 2)
    assert window.exhausted() == []
    for each in held:
        window.settle(each)
    assert window.exhausted() == [first]
    window.drop([first])
    assert (window.exhausted(), window.subscriptions, window.idle(held)) == ([], [second], False)
    assert [window.take(each) for each in deliveries(second, 2)] == [0, 2]


def test_a_further_subscription_stays_where_a_message_came_before_it_ends() -> None:
    first, second = subscription(artemis.STOMP), subscription(artemis.STOMP, "2")
    errors: list[JMSError] = []
    router = Router(artemis.STOMP, "1.2", errors.append)
    router.add(first)
    router.add(second)
    (unseen,) = deliveries(second, 1)
    assert not router.retire([second])
    assert second.ended is None
    assert second.unsettled is not None
    del second.unsettled[unseen]
    assert router.retire([second])
    assert second.ended is not None


def test_a_further_subscription_stays_while_a_message_of_it_is_routed() -> None:
    came, tried = threading.Event(), threading.Event()

    class Routed(dict[StompDelivery, None]):
        """Is in the middle of the routing when somebody else wants to end the subscription."""

        def update(self, batch: Mapping[StompDelivery, None]) -> None:  # type: ignore[override]  # as it is called
            came.set()
            tried.wait(0.3)  # in vain, where that has to wait for the routing
            super().update(batch)

    second = subscription(artemis.STOMP, "2")
    inbox: list[StompDelivery] = []
    second.events = SimpleNamespace(on_deliveries=inbox.extend)
    second.unsettled = Routed()
    errors: list[JMSError] = []
    router = Router(artemis.STOMP, "1.2", errors.append)
    router.add(second)
    frames = [(b"MESSAGE\nsubscription:2\nmessage-id:7\n", b"x")]
    reader = threading.Thread(target=router.route, args=(frames,))
    reader.start()
    assert came.wait(10)
    assert not router.retire([second])
    tried.set()
    reader.join(10)
    assert second.ended is None
    assert inbox == list(second.unsettled)
    assert len(second.unsettled) == 1
