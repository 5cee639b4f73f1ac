"""Temporary destinations of a connection that comes back: who goes over to which, and what cannot be made anew."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.client.gated import QUICK, Site
from tests.client.shell import SOON, eventually, receive

import redelivery
from redelivery import InvalidDestinationError, JMSError, RequestTimeoutError, TemporaryTopic, UnsupportedError
from redelivery.events import ConnectionLost, Event, Reconnected, ReconnectFailed
from redelivery.transports.seam import Pending
from redelivery.transports.stomp.adapter import StompTransport

pytest.importorskip("proton")


def lose(site: Site, events: list[Event]) -> None:
    """The connection, and wait for the next one."""
    before = sum(isinstance(each, Reconnected) for each in events)
    site.gate.shut(0.05)
    eventually(lambda: sum(isinstance(each, Reconnected) for each in events) > before)


def test_two_consumers_of_one_go_over_to_one_after_each_loss(opened: ExitStack) -> None:
    site = Site("amqp", opened)
    events: list[Event] = []
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK, observer=events.append))
    session, other, sending = (connection.session() for _ in range(3))
    first = session.temporary_topic()
    consumers = [session.consumer(first), other.consumer(first)]
    names = {first}
    for number in range(3):
        lose(site, events)
        eventually(lambda: consumers[0].destination == consumers[1].destination not in names)
        now = consumers[0].destination
        assert isinstance(now, TemporaryTopic)
        names.add(now)
        sending.producer(now).send(f"news {number}")
        assert [receive(each).body for each in consumers] == [f"news {number}"] * 2
        for old in names - {now}:  # of each connection before
            with pytest.raises(InvalidDestinationError, match=re.escape(f"its consumers have {now} now")):
                sending.producer(old).send("to nobody")


def test_what_is_made_after_a_loss_is_the_new_connections(opened: ExitStack) -> None:
    site = Site("amqp", opened)
    events: list[Event] = []
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK, observer=events.append))
    session = connection.session()
    site.gate.shut(0.05)
    eventually(lambda: any(isinstance(each, ConnectionLost) for each in events))
    queue = session.temporary_queue()  # waits for the next connection
    consumer = session.consumer(queue)
    session.producer(queue).send("here")
    assert receive(consumer).body == "here"


def test_a_broker_that_makes_none_ends_the_consumer_and_the_session_goes_on(
    opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(*_: object) -> Iterator[object]:
        raise UnsupportedError("it makes none")
        yield

    monkeypatch.setattr(StompTransport, "temporary", refuses)
    amqp, stomp = Site("amqp", opened), Site("stomp", opened)
    errors: list[JMSError] = []
    url = f"failover:({amqp.url},{stomp.url})?randomize=false"
    connection = opened.enter_context(redelivery.connect(url, exception_listener=errors.append))
    session = connection.session()
    queue = session.temporary_queue()
    consumer, orders = session.consumer(queue), session.consumer("orders")
    amqp.gate.shut()
    stomp.broker.send("orders", "of the other broker")
    assert receive(orders).body == "of the other broker"
    for _ in range(2):
        with pytest.raises(InvalidDestinationError, match="and could not be made anew"):
            consumer.receive(SOON)
    with pytest.raises(InvalidDestinationError, match=r"reply_to: .* and could not be made anew"):
        session.producer("orders").send("question", reply_to=queue)
    eventually(lambda: any(isinstance(each, InvalidDestinationError) for each in errors))


def test_a_connection_that_is_lost_before_they_are_made_is_a_failed_attempt(
    opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site("amqp", opened)
    events: list[Event] = []
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK, observer=events.append))
    session = connection.session()
    consumer = session.consumer(session.temporary_queue())
    make = connection._core.transport.__class__.temporary
    calls: list[None] = []

    def temporary(transport: Any, kind: Any, waiter: Any) -> Any:
        calls.append(None)
        if len(calls) < 3:
            site.gate.shut(0.05)
            raise RequestTimeoutError("no answer")
        return make(transport, kind, waiter)

    monkeypatch.setattr(connection._core.transport.__class__, "temporary", temporary)
    lose(site, events)
    session.producer(consumer.destination).send("here")
    assert receive(consumer).body == "here"
    assert sum(isinstance(each, ReconnectFailed) for each in events) >= 2


def test_a_close_does_not_wait_for_a_broker_that_makes_none(opened: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    site = Site("amqp", opened)
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK))
    connection.session().temporary_queue()
    waits = threading.Event()

    def temporary(_transport: Any, _kind: Any, waiter: Any) -> Any:
        waits.set()
        yield Pending(waiter)

    monkeypatch.setattr(connection._core.transport.__class__, "temporary", temporary)
    site.gate.shut(0.05)
    assert waits.wait(SOON)
    connection.close()
    eventually(lambda: not [each for each in threading.enumerate() if each.name == "redelivery-reconnect"])


def test_an_asynchronous_send_that_raises_is_not_waited_for(opened: ExitStack) -> None:
    site = Site("amqp", opened)
    events: list[Event] = []
    connection = opened.enter_context(
        redelivery.connect(site.url, reconnect=QUICK, observer=events.append, close_timeout=60)
    )
    session = connection.session()
    queue = session.temporary_queue()
    lose(site, events)
    producer = session.producer("orders")
    with pytest.raises(InvalidDestinationError):
        producer.send_async("question", reply_to=queue)
    assert producer.send_async("without a reply").result(SOON).body == "without a reply"
    assert not [each for each in session._core.unanswered if not each.done]  # which its close would wait for
