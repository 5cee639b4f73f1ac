"""What an observer is given beside a message's usual life (tests/conformance/test_events.py), and what it may do."""

from __future__ import annotations

import logging
from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from tests.client.ledger.fakes import FakeDelivery
from tests.client.shell import SOON, Bench, embedded, receive

import redelivery
from redelivery import (
    AckMode,
    ConfigError,
    InDoubtError,
    JMSError,
    MessageFormatError,
    Queue,
    ReconnectPolicy,
    RedeliveryPolicy,
    Session,
)
from redelivery.events import (
    Acknowledged,
    ConnectionLost,
    ConsumerEnded,
    Delivered,
    Event,
    Expired,
    InDoubt,
    MessageEvent,
    Sent,
)
from redelivery.transports.seam import Link, LinkSpec


class Watched(list[Event]):
    """An observer, and what it was given."""

    def __call__(self, event: Event) -> None:
        self.append(event)

    @property
    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self if isinstance(event, MessageEvent)]


@pytest.mark.parametrize("kind", [MessageEvent, Delivered, Acknowledged, Expired])
def test_an_event_is_made_by_its_fields_and_stays_as_it_is(kind: type[MessageEvent]) -> None:
    message, other = (FakeDelivery(Link(LinkSpec(Queue("a"))), name) for name in ("one", "other"))
    event = kind(3, source=message, delivery_count=2)
    assert (event.session, event.source, event.delivery_count) == (3, message, 2)
    assert event == kind(3, other, 2)
    assert event != kind(3, message, 1)
    assert repr(event) == f"{kind.__name__}(session=3, delivery_count=2)"
    for name in ("session", "source", "delivery_count"):
        with pytest.raises(FrozenInstanceError):
            setattr(event, name, 4)


def test_one_that_raises_disturbs_nothing_and_is_logged_once(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    called = []

    def observer(event: Event) -> None:
        called.append(event)
        raise ValueError("of the observer's")

    bench.send("one", "two")
    _, consumer = bench.consuming(observer=observer)
    assert [receive(consumer).body, receive(consumer).body] == ["one", "two"]
    assert len(called) == 5
    complaints = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert [each.getMessage().partition(";")[0] for each in complaints] == ["the observer raised"]


def test_one_that_uses_its_session_is_refused(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    bench.send("one")
    sessions: list[Session] = []

    def observer(_: Event) -> None:
        for each in sessions:
            each.commit()

    session = bench.connect(observer=observer).session(AckMode.TRANSACTED)
    sessions.append(session)
    consumer = session.consumer(bench.queue)
    assert receive(consumer).body == "one"
    assert "another thread is using this session" in caplog.text
    session.rollback()
    assert receive(consumer).delivery_count == 2


async def _coroutine(_: Event) -> None: ...


class _Awaited:
    async def __call__(self, _: Event) -> None: ...


@pytest.mark.parametrize("observer", [3, "print", _coroutine, _Awaited()])
def test_what_cannot_be_one_is_refused_before_anything_is_opened(observer: Any) -> None:
    with pytest.raises(ConfigError, match="observer must be"):
        redelivery.connect("stomp://nobody.invalid:1", observer=observer)


def test_an_expired_message(bench: Bench) -> None:
    watched = Watched()
    policy = RedeliveryPolicy(initial_redelivery_delay=0.3, redelivery_delay=0.3)
    session, consumer = bench.consuming(AckMode.TRANSACTED, observer=watched, redelivery_policy=policy)
    session.producer("elsewhere")
    with redelivery.connect(bench.broker.vm_url) as connection, connection.session() as other:
        other.producer(bench.queue).send("short-lived", ttl=0.2)
    receive(consumer)
    session.rollback()
    assert consumer.receive(timeout=0.5) is None
    assert watched.kinds == ["Delivered", "RolledBack", "Expired", "DeadLettered"]
    expired = next(event for event in watched if isinstance(event, Expired))
    assert expired.delivery_count == 1


def test_a_body_of_another_kind_is_released(bench: Bench) -> None:
    watched = Watched()
    bench.send("text")
    _, consumer = bench.consuming(observer=watched)
    with pytest.raises(MessageFormatError):
        consumer.receive_body(bytes, timeout=1)
    assert consumer.receive_body(str, timeout=1) == "text"
    assert watched.kinds == ["Released", "Delivered", "Acknowledged"]


def test_an_interrupted_call_releases(bench: Bench) -> None:
    watched, interrupts = Watched(), [KeyboardInterrupt()]

    def observer(event: Event) -> None:
        watched(event)
        if isinstance(event, Delivered) and interrupts:
            raise interrupts.pop()

    bench.send("one")
    _, consumer = bench.consuming(AckMode.CLIENT, observer=observer)
    with pytest.raises(KeyboardInterrupt):
        consumer.receive(timeout=1)
    assert receive(consumer).delivery_count == 1
    assert watched.kinds == ["Delivered", "Released", "Delivered"]


def test_a_consumer_that_the_broker_ends(bench: Bench) -> None:
    watched = Watched()
    _, consumer = bench.consuming(observer=watched)
    link = consumer._state.link
    consumer._core.on_link_closed(link, JMSError("the queue was deleted"))
    with pytest.raises(JMSError, match="the queue was deleted"):
        consumer.receive(timeout=1)
    (ended,) = [event for event in watched if isinstance(event, ConsumerEnded)]
    assert ended.destination == consumer.destination
    assert "the queue was deleted" in str(ended.error)


def test_a_commit_in_doubt(bench: Bench) -> None:
    watched = Watched()
    bench.send("one")
    session, consumer = bench.consuming(AckMode.TRANSACTED, observer=watched, request_timeout=0.2)
    message = receive(consumer)
    session.producer("next").send("two")
    bench.broker.faults.drop("COMMIT")
    with pytest.raises(InDoubtError) as raised:
        session.commit()
    (doubt,) = [event for event in watched if isinstance(event, InDoubt)]
    assert doubt.error is raised.value
    assert ([each.body for each in doubt.sent], [each.body for each in doubt.received]) == (["two"], [message.body])
    assert "Acknowledged" not in watched.kinds


def test_a_lost_connection(bench: Bench) -> None:
    watched = Watched()
    connection = bench.connect(observer=watched)
    bench.broker.close()
    (lost,) = [event for event in watched if isinstance(event, ConnectionLost)]
    assert (lost.url, lost.at.tzinfo is None) == (connection.url, False)


def test_an_event_shows_its_message_and_not_its_body(bench: Bench) -> None:
    watched = Watched()
    bench.send("a body that is nobody's business")
    session, consumer = bench.consuming(observer=watched)
    message = receive(consumer)
    shown = repr(watched[-1])
    assert shown == f"Acknowledged(session={session._core.number}, delivery_count=1)"
    assert isinstance(watched[-1], MessageEvent)
    assert watched[-1].message_id == message.message_id


@pytest.mark.parametrize("url", ["stomp", "amqp"])
@pytest.mark.parametrize("policy", [None, ReconnectPolicy()], ids=["stays away", "comes back"])
def test_each_send_is_one_event_whether_the_connection_comes_back_or_not(url: str, policy: Any) -> None:
    seen = Watched()
    with embedded(url) as (_, there), redelivery.connect(there, observer=seen, reconnect=policy) as connection:
        with connection.session("transacted") as session:
            session.producer("orders").send("a")
            session.commit()
        with connection.session() as session:
            producer = session.producer("orders")
            producer.send("b", persistent=False)
            producer.send("c")
            producer.send_async("d").result(SOON)
    sent = [(event.message.body, event.confirmed) for event in seen if isinstance(event, Sent)]
    assert sent == [("a", False), ("b", False), ("c", True), ("d", False)]
