"""Ctrl-C at every place of calls of containers, browsers, requests and of connections.

As `test_session_interrupts_everywhere.py`, whose sessions are on a connection that is there, and with the same reading:
afterwards the same can be done again, and nothing is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final
from uuid import uuid4

import pytest
from tests.client.interrupts import at_each_place
from tests.client.shell import SOON, eventually

import redelivery
from redelivery import Message, RedeliveryPolicy
from redelivery.broker import EmbeddedBroker

pytestmark = [
    pytest.mark.long_form,
    pytest.mark.timeout(600),
    # CPython ignores what a signal raises there: on 3.14 a thread that ends is forgotten by one
    pytest.mark.filterwarnings("ignore:Exception ignored while calling weakref callback"),
]
AT_ONCE: Final = RedeliveryPolicy(maximum_redeliveries=-1, initial_redelivery_delay=0, redelivery_delay=0)
BODIES: Final = ("m1", "m2", "m3")


class Near:
    """A connection that is there, and m1, m2 and m3 on its queue."""

    def __init__(self, broker: EmbeddedBroker, url: str | None = None, **options: Any) -> None:
        self.broker, self.queue = broker, f"q-{uuid4().hex}"
        options = {"redelivery_policy": AT_ONCE, "close_timeout": 5, **options}
        self.connection = redelivery.connect(url or broker.vm_url, **options)
        for body in BODIES:
            broker.send(self.queue, body)
        self.opened = ExitStack()
        self.handled: list[Any] = []
        self.made: Any = None

    def handle(self, message: Message) -> None:
        self.handled.append(message.body)

    def close(self) -> None:
        self.opened.close()
        self.connection.close()

    def consumed(self) -> None:
        """Each of them once."""
        eventually(lambda: sorted(self.handled) == list(BODIES))
        eventually(lambda: self.broker.queue_depth(self.queue) == 0)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(f"interrupts-{uuid4().hex}") as broker:
        yield broker


def with_container(broker: EmbeddedBroker, *, started: bool) -> Near:
    near = Near(broker)
    near.made = near.connection.listener_container(near.queue, near.handle, concurrency=2)
    if started:
        near.made.start()
        near.consumed()
    near.opened.callback(near.made.drain)
    return near


def test_the_start_of_a_container(broker: EmbeddedBroker) -> None:
    """It can be started again, and no worker of an interrupted start keeps messages."""

    def check(near: Near) -> None:
        near.made.start()
        near.consumed()
        assert near.made.counters.workers == 2
        assert near.made.healthy
        assert near.made.drain()

    at_each_place(lambda: with_container(broker, started=False), lambda near: near.made.start(), check)


@pytest.mark.parametrize("end", ["drain", "stop"])
def test_the_end_of_a_container(broker: EmbeddedBroker, end: str) -> None:
    """It can be ended again; what it does not take is the broker's."""

    def check(near: Near) -> None:
        assert near.made.drain()
        broker.send(near.queue, "later")
        with near.connection.session() as session:
            message = session.consumer(near.queue).receive(SOON)
            assert message is not None
            assert message.body == "later"

    at_each_place(lambda: with_container(broker, started=True), lambda near: getattr(near.made, end)(), check)


def with_browser(broker: EmbeddedBroker) -> Near:
    near = Near(broker)
    session = near.connection.session("transacted")
    near.made = session, session.browser(near.queue), session.consumer(near.queue)
    return near


def test_a_browser_iteration(broker: EmbeddedBroker) -> None:
    """Another one begins anew, and the session goes on."""

    def check(near: Near) -> None:
        session, browser, consumer = near.made
        assert [message.body for message in browser] == list(BODIES)
        assert [message.body for message in consumer.receive_many(3, SOON)] == list(BODIES)
        session.commit()
        browser.close()
        near.connection.close()
        assert broker.queue_depth(near.queue) == 0

    at_each_place(lambda: with_browser(broker), lambda near: list(near.made[1]), check)


def with_server(broker: EmbeddedBroker) -> Near:
    near = Near(broker)
    serving = near.opened.enter_context(redelivery.connect(broker.vm_url))
    near.opened.enter_context(serving.listener_container(f"{near.queue}-rpc", lambda message: f"re {message.body}"))
    return near


def test_a_request(broker: EmbeddedBroker) -> None:
    """The next one gets its own reply, and none waits for that of the interrupted one."""

    def check(near: Near) -> None:
        for body in BODIES:
            assert near.connection.request(f"{near.queue}-rpc", body, SOON).body == f"re {body}"
        near.connection.close()
        eventually(lambda: not near.connection._core.replies._waiting)

    at_each_place(
        lambda: with_server(broker), lambda near: near.connection.request(f"{near.queue}-rpc", "first", SOON), check
    )


def test_a_session_is_made_or_not(broker: EmbeddedBroker) -> None:
    """What comes after it is in order: sessions deliver when the connection is started, and are closed."""

    def check(near: Near) -> None:
        near.connection.stop()
        first, second = near.connection.session(), near.connection.session()
        first.close()
        near.connection.start()
        assert [message.body for message in second.consumer(near.queue).receive_many(3, SOON)] == list(BODIES)
        second.close()

    at_each_place(lambda: Near(broker), lambda near: near.connection.session(), check)


def test_holding_back_and_going_on(broker: EmbeddedBroker) -> None:
    def check(near: Near) -> None:
        near.connection.start()
        with near.connection.session() as session:
            assert [message.body for message in session.consumer(near.queue).receive_many(3, SOON)] == list(BODIES)

    def call(near: Near) -> None:
        near.connection.stop()
        near.connection.start()
        near.connection.wait(0.0)

    at_each_place(lambda: Near(broker), call, check)


def test_a_send_of_a_publisher(broker: EmbeddedBroker) -> None:
    """It is sent or not, once; the next one is sent, and the publisher can be closed."""

    def scene() -> Near:
        near = Near(broker)
        near.made = near.connection.publisher()
        return near

    def check(near: Near) -> None:
        near.made.send("next", near.queue)
        near.made.close()
        assert [each.body for each in broker.messages(near.queue)] in (
            [*BODIES, "next"],
            [*BODIES, "one of a publisher", "next"],
        )

    at_each_place(scene, lambda near: near.made.send("one of a publisher", near.queue), check, 2)


def test_the_close_of_a_connection(broker: EmbeddedBroker) -> None:
    """It can be closed once more; nothing is lost."""

    def scene() -> Near:
        near = Near(broker)
        near.made = near.connection.session("transacted"), near.connection.publisher()
        near.made[1].send("sent", near.queue)
        assert near.made[0].consumer(near.queue).receive(SOON) is not None
        return near

    def check(near: Near) -> None:
        near.connection.close()
        with redelivery.connect(broker.vm_url) as other, other.session() as session:
            found = [message.body for message in session.consumer(near.queue).receive_many(4, SOON)]
        assert found == [*BODIES, "sent"]

    at_each_place(scene, lambda near: near.connection.close(), check, 2)


def test_what_was_acknowledged_is_not_released_too(opened: ExitStack) -> None:
    """Where what a session has not settled is released one by one, as on RabbitMQ, which would end the connection."""
    broker = opened.enter_context(EmbeddedBroker(f"interrupts-{uuid4().hex}", stomp_port=0))

    def scene() -> Near:
        near = Near(broker, url=broker.stomp_url, dialect="rabbitmq!")
        session = near.connection.session()
        near.made = session, session.consumer(near.queue)
        return near

    def check(near: Near) -> None:
        session, consumer = near.made
        channel = session._core.epoch.channel
        (subscriptions,) = channel._subscriptions.values()
        assert consumer.receive(SOON).body == "m1"
        assert len([each for subscription in subscriptions for each in subscription.unsettled]) == 2

    at_each_place(scene, lambda near: near.made[1].receive(SOON), check)
