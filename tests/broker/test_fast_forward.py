"""`fast_forward`: hours pass in milliseconds, by each way in, and for threads and asyncio."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.conformance.blocking import Shell

import redelivery
from redelivery import ConfigError, IllegalStateError, RedeliveryPolicy, UnsupportedError
from redelivery.broker import EmbeddedBroker
from redelivery.testing import FastForward, fast_forward
from redelivery.testing.durable import DurableBroker

HOUR = 3600
POLICY = RedeliveryPolicy(initial_redelivery_delay=timedelta(hours=1), redelivery_delay=timedelta(hours=1))
SOON = 10  # seconds of the real time, for what happens at once


@pytest.fixture(params=["vm_url", "stomp_url", "amqp_url"])
def url(request: pytest.FixtureRequest, redelivery_broker: EmbeddedBroker) -> str:
    if request.param == "amqp_url":
        pytest.importorskip("proton")
    return str(getattr(redelivery_broker, request.param))


@pytest.fixture
def clock(redelivery_broker: EmbeddedBroker) -> Iterator[FastForward]:
    with fast_forward(redelivery_broker) as clock:
        yield clock


def test_a_back_off_of_an_hour(url: str, redelivery_broker: EmbeddedBroker, clock: FastForward) -> None:
    redelivery_broker.send("orders", "a chair")
    with redelivery.connect(url, redelivery_policy=POLICY) as connection, connection.session("transacted") as session:
        consumer = session.consumer("orders")
        for count in (1, 2, 3):
            message = consumer.receive(timeout=SOON)
            assert message is not None
            assert message.delivery_count == count
            session.rollback()
            clock.advance(HOUR - 10)
            assert consumer.receive(timeout=0) is None
            clock.advance(timedelta(seconds=11))


def test_a_receive_that_waits_meanwhile_goes_on(
    url: str, redelivery_broker: EmbeddedBroker, clock: FastForward, shell: Shell
) -> None:
    redelivery_broker.send("orders", "a chair")
    found: list[object] = []
    with shell.connect(url, redelivery_policy=POLICY) as connection, connection.session("transacted") as session:
        consumer = session.consumer("orders")
        consumer.receive(timeout=SOON)
        session.rollback()
        thread = threading.Thread(target=lambda: found.append(consumer.receive_body(str, timeout=2 * HOUR)))
        thread.start()
        clock.advance(HOUR)
        thread.join(SOON)
        assert found == ["a chair"]
        thread = threading.Thread(target=lambda: found.append(consumer.receive(timeout=2 * HOUR)))
        thread.start()
        while thread.is_alive() and len(found) == 1:
            clock.advance(HOUR)
            thread.join(0.01)
        assert found == ["a chair", None]


def test_a_listener_is_called_again(url: str, redelivery_broker: EmbeddedBroker, clock: FastForward) -> None:
    counts: list[int] = []
    done = threading.Event()

    def listener(message: redelivery.Message) -> None:
        counts.append(message.delivery_count)
        if message.delivery_count < 3:
            raise ValueError
        done.set()

    with redelivery.connect(url, redelivery_policy=POLICY) as connection, connection.session() as session:
        session.consumer("orders").listen(listener)
        redelivery_broker.send("orders", "a chair")
        until = time.monotonic() + SOON
        while not done.wait(0.01) and time.monotonic() < until:
            clock.advance(HOUR)
        redelivery_broker.wait_for("orders", depth=0, timeout=SOON)
    assert counts == [1, 2, 3]


def test_delivery_delay_and_expiry_in_their_order(
    url: str, redelivery_broker: EmbeddedBroker, clock: FastForward
) -> None:
    with redelivery.connect(url) as connection, connection.session() as session:
        producer = session.producer("orders")
        producer.send("late", delivery_delay=HOUR)
        producer.send("gone", ttl=timedelta(hours=2))
        producer.send("late, and gone", delivery_delay=HOUR, ttl=HOUR)
        assert redelivery_broker.queue_depth("orders") == 1
        clock.advance(HOUR)
        assert redelivery_broker.queue_depth("orders") == 3
        clock.advance(2 * HOUR)
        assert [each.body for each in redelivery_broker.messages("ActiveMQ.DLQ")] == ["gone", "late, and gone"]
        assert session.consumer("orders").receive_body(str, timeout=SOON) == "late"


def test_a_broker_with_a_store_keeps_its_delays_and_redeliveries(redelivery_durable_broker: DurableBroker) -> None:
    """The fixture of a durable broker and the clock go together, also after a kill."""
    durable = redelivery_durable_broker
    url = str(durable.broker.stomp_url)
    with redelivery.connect(url) as connection, connection.session() as session:
        session.producer("orders").send("late", delivery_delay=timedelta(hours=2))
    durable.kill()
    broker = durable.restart()
    assert str(broker.stomp_url) == url
    with fast_forward(broker) as clock, redelivery.connect(url, redelivery_policy=POLICY) as connection:
        session = connection.session("transacted")
        consumer = session.consumer("orders")
        clock.advance(HOUR)
        assert consumer.receive(timeout=0) is None
        clock.advance(HOUR)
        assert consumer.receive_body(str, timeout=SOON) == "late"
        session.rollback()
        assert consumer.receive(timeout=0) is None
        clock.advance(HOUR)
        assert consumer.receive_body(str, timeout=SOON) == "late"
        session.commit()
    assert durable.restart().messages("orders") == []


def test_what_the_broker_does_at_several_times_happens_in_order(
    redelivery_broker: EmbeddedBroker, clock: FastForward
) -> None:
    redelivery_broker.send("orders", "second", delivery_delay=2 * HOUR)
    redelivery_broker.send("orders", "gone", delivery_delay=HOUR, ttl=2 * HOUR)
    redelivery_broker.send("orders", "third", delivery_delay=3 * HOUR)
    clock.advance(4 * HOUR)
    assert [each.body for each in redelivery_broker.messages("orders")] == ["second", "third"]
    assert [each.body for each in redelivery_broker.messages("ActiveMQ.DLQ")] == ["gone"]


def test_a_connection_is_dialled_again(redelivery_broker: EmbeddedBroker, clock: FastForward) -> None:
    back = threading.Event()

    def observer(event: object) -> None:
        if isinstance(event, redelivery.events.Reconnected):
            back.set()

    policy = redelivery.ReconnectPolicy(initial_delay=HOUR, maximum_delay=HOUR, randomize=False)
    with redelivery.connect(redelivery_broker.stomp_url, reconnect=policy, observer=observer) as connection:
        redelivery_broker.faults.drop("SEND")
        with connection.session() as session:
            with pytest.raises(redelivery.InDoubtError):
                session.producer("orders").send("x")
            until = time.monotonic() + SOON
            while not back.wait(0.01) and time.monotonic() < until:
                clock.advance(HOUR)
            assert back.is_set()
            session.producer("orders").send("x")
    redelivery_broker.wait_for("orders", depth=1, timeout=SOON)


def test_no_peer_is_thought_dead(url: str, redelivery_broker: EmbeddedBroker, clock: FastForward) -> None:
    with redelivery.connect(url, heartbeat=1) as connection, connection.session() as session:
        for _ in range(10):
            clock.advance(24 * HOUR)
            session.producer("orders").send("x")
        assert connection.connected
    assert redelivery_broker.queue_depth("orders") == 10


def test_real_time_goes_on_and_comes_back(redelivery_broker: EmbeddedBroker) -> None:
    def stamped() -> timedelta:
        sent = redelivery_broker.send("orders", "x")
        assert sent.timestamp is not None
        return sent.timestamp - datetime.now(UTC)

    with redelivery.connect(redelivery_broker.vm_url) as connection, connection.session() as session:
        consumer = session.consumer("empty")
        with fast_forward(redelivery_broker) as clock:
            assert abs(stamped()) < timedelta(minutes=1)
            clock.advance(24 * HOUR)
            clock.advance(24 * HOUR)
            assert abs(stamped() - timedelta(days=2)) < timedelta(minutes=1)
            redelivery_broker.send("empty", "late", delivery_delay=0.02)
            assert consumer.receive_body(str, timeout=SOON) == "late"  # by itself
            waits = threading.Thread(target=lambda: consumer.receive(timeout=0.1))
            waits.start()
        waits.join(SOON)  # the clock was put right meanwhile
        assert not waits.is_alive()
        assert abs(stamped()) < timedelta(minutes=1)
        with pytest.raises(IllegalStateError, match="with block"):
            clock.advance(1)


def test_what_waited_for_the_wall_clock_waits_for_the_right_one(redelivery_broker: EmbeddedBroker) -> None:
    with redelivery.connect(redelivery_broker.vm_url) as connection, connection.session() as session:
        with fast_forward(redelivery_broker) as clock:
            redelivery_broker.send("orders", "x", delivery_delay=HOUR + 0.05)
            clock.advance(HOUR - 0.1)
            assert redelivery_broker.queue_depth("orders") == 0
        consumer = session.consumer("orders")
        assert consumer.receive(timeout=0.2) is None
        with fast_forward(redelivery_broker) as clock:
            clock.advance(HOUR)
        assert consumer.receive_body(str, timeout=SOON) == "x"


@pytest.mark.parametrize("seconds", [-1, float("nan"), "1", None, True, 1e12, timedelta(seconds=-1)])
def test_a_bad_argument(clock: FastForward, seconds: Any) -> None:
    with pytest.raises(ConfigError, match="seconds="):
        clock.advance(seconds)


def test_the_other_brokers_of_the_process_go_by_it(clock: FastForward) -> None:
    with EmbeddedBroker("another") as another:
        another.send("orders", "late", delivery_delay=HOUR)
        another.send("orders", "soon", delivery_delay=0.01)
        another.wait_for("orders", depth=1, timeout=SOON)  # its timer waits for the other one now
        clock.advance(HOUR)
        another.wait_for("orders", depth=2, timeout=SOON)


def test_there_is_one_clock(redelivery_broker: EmbeddedBroker, clock: FastForward) -> None:
    with pytest.raises(IllegalStateError, match="another one"), fast_forward(redelivery_broker):
        pass
    clock.advance(1)


def test_only_of_a_broker_that_runs_in_this_process() -> None:
    other: Any = "stomp://localhost:61613"
    with pytest.raises(UnsupportedError, match="EmbeddedBroker"), fast_forward(other):
        pass
    broker = EmbeddedBroker("not-started")
    with pytest.raises(IllegalStateError, match="not-started"), fast_forward(broker):
        pass
    with broker, fast_forward(broker) as clock:
        broker.close()
        with pytest.raises(IllegalStateError, match="closed"):
            clock.advance(1)
