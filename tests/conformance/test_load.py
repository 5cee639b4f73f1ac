"""Many sessions, consumers, losses, messages behind; and a handler that is slower than the heart-beat.

`scripts/load-report` runs it at length (`REDELIVERY_FORM=nightly`) and writes docs/load.md.
"""

from __future__ import annotations

import logging
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic
from typing import Any, Final

import pytest
from tests.conformance.load.used import Growth, Used, row
from tests.conformance.outage import Counted, Outage, until
from tests.conformance.pairs import PAIRS, Pair
from tests.conformance.record import SHARED
from tests.conformance.soak.memory import THERE
from tests.conformance.stage import Stage, receive
from tests.run.forms import at_length

import redelivery
from redelivery import AckMode, Message, ReconnectPolicy, ResourceAllocationError
from redelivery.events import ConnectionLost, Event, Reconnected

pytestmark = [
    pytest.mark.long_form,
    pytest.mark.timeout(3600 if at_length() else 300),
    pytest.mark.skipif(not THERE, reason="memory and descriptors are measured by /proc"),
]
Record = Callable[[str, object], None]

# These, and those on the embedded broker, take ten times as much in the nightly form: one pair of each broker.
AT_LENGTH: Final = ("stomp-activemq", "amqp-artemis", "amqp-qpid", "stomp-hornetq", "stomp-rabbitmq")
SOCKETS: Final = 4096  # descriptors: over STOMP on Classic each session has a socket of its own, which takes three
MOST_PER_RECONNECTION: Final = 1024  # bytes
MOST_PER_MESSAGE: Final = 64  # bytes of each that was received
MOST_PER_SESSION: Final = 64 << 10  # bytes while it is open
MOST_LEFT: Final = 8 << 10  # bytes of each that was opened and closed once more: the allocator's


def many(number: int, pair: Pair) -> int:
    lengthy = at_length() and (pair.embedded is not None or pair.kind.name in AT_LENGTH)
    return number * 10 if lengthy else number


def back_to(before: Used) -> Used:
    """What is used when no descriptor and no thread is left; fails where that does not come soon."""
    with suppress(AssertionError):
        until(lambda: Used.now().none_left(before))
    now = Used.now()
    assert now.none_left(before), f"descriptors or threads stay: {before}, now {now}"
    return now


@pytest.fixture(autouse=True)
def unlogged() -> Iterator[None]:
    """Nothing is logged, as pytest keeps it all."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def sockets() -> Iterator[None]:
    """Enough of them; a broker in a process of its own is started with its own limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < SOCKETS:
        pytest.skip(f"this system allows {hard} descriptors, {SOCKETS} are needed: ulimit -Hn {SOCKETS}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, SOCKETS) if soft >= 0 else soft, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def thousand_sessions(stage: Stage) -> tuple[Used, float]:
    """What 1,000 sessions on 10 connections use, and the seconds from the first to the last close."""
    began = monotonic()
    connections = [redelivery.connect(stage.pair.url) for _ in range(10)]
    sessions = [connection.session() for connection in connections for _ in range(100)]
    for number, session in enumerate(sessions[::50]):
        session.producer(stage.queue).send(str(number))
    last = sessions[-1].consumer(stage.queue)
    assert [receive(last).body for _ in range(20)] == [str(number) for number in range(20)]
    during = Used.now()
    for connection in connections:
        connection.close()
    return during, monotonic() - began


@pytest.mark.usefixtures("sockets")
def test_a_thousand_sessions_on_ten_connections(stage: Stage, record_property: Record) -> None:
    stage.send()  # what a process has once is there
    start = Used.now()
    thousand_sessions(stage)
    before = back_to(start)
    during, seconds = thousand_sessions(stage)
    after = back_to(before)
    record_property("load", row("sessions on 10 connections", 1000, seconds, before, during, after))
    assert during.memory - start.memory <= 1000 * MOST_PER_SESSION
    assert after.memory - before.memory <= 1000 * MOST_LEFT


def two_hundred_consumers(stage: Stage) -> tuple[Used, float]:
    """What 200 consumers on one connection use, each with a message, and the seconds that all of it takes."""
    began = monotonic()
    with stage.connect(prefetch=1) as connection:
        sessions = [connection.session() for _ in range(20)]
        consumers = [session.consumer(f"{stage.queue}.{number}") for number in range(10) for session in sessions]
        for number in range(10):
            stage.send(*map(str, range(20)), queue=f"{stage.queue}.{number}")
        got, end = 0, monotonic() + 60
        while got < 200 and monotonic() < end:
            got += sum(consumer.receive(timeout=0.01) is not None for consumer in consumers)
        during = Used.now()
    assert got == 200
    return during, monotonic() - began


def test_two_hundred_consumers_on_one_connection(stage: Stage, record_property: Record) -> None:
    stage.send()  # what a process has once is there
    if stage.pair.kind.links is not None:
        with pytest.raises(
            ResourceAllocationError, match=f"allows {stage.pair.kind.links} .* use a further connection"
        ):
            two_hundred_consumers(stage)
        return
    start = Used.now()
    two_hundred_consumers(stage)
    before = back_to(start)
    during, seconds = two_hundred_consumers(stage)
    after = back_to(before)
    record_property("load", row("consumers on one connection", 200, seconds, before, during, after))
    assert after.memory - before.memory <= 200 * MOST_LEFT


def reconnect(stage: Stage, outage: Outage, rounds: int, seen: Callable[[Event], None]) -> dict[str, Any]:
    """Lose a connection and get it back, so many times; ``seen`` is called with each event. What it used."""
    counted = Counted()

    def observe(event: Event) -> None:
        seen(event)
        counted(event)

    stage.send()  # what a process has once is there
    start = Used.now()
    quick = ReconnectPolicy(initial_delay=0.001, maximum_delay=0.01)
    with redelivery.connect(outage.url, observer=observe, reconnect=quick) as connection:
        consumer = connection.session(AckMode.AUTO).consumer(stage.queue)
        growth, began = Growth(rounds), monotonic()
        for number in range(1, rounds + 1):
            outage.gate.shut()
            counted.until(ConnectionLost, number)
            outage.gate.open()
            counted.until(Reconnected, number)
            growth.after(number)
        measured = growth.row("reconnections in a row", rounds, monotonic() - began, slope=growth.slope)
        back_to(growth.used[0])
        stage.send("after all that")
        assert receive(consumer).body == "after all that"
    outage.gate.shut()  # it keeps its sockets until then
    back_to(start)
    return measured


def test_many_reconnections_in_a_row(stage: Stage, outage: Outage, record_property: Record) -> None:
    measured = reconnect(stage, outage, many(1000, stage.pair), lambda _event: None)
    record_property("load", measured)
    assert measured["slope"] <= MOST_PER_RECONNECTION


@pytest.mark.parametrize("pair", [kind for name, kind in PAIRS.items() if name == "stomp-embedded"], indirect=True)
def test_two_kilobytes_that_stay_of_each_reconnection_would_be_seen(stage: Stage, outage: Outage) -> None:
    leak: list[bytearray] = []

    def keep(event: Event) -> None:
        if isinstance(event, Reconnected):
            leak.append(bytearray(2048))

    measured = reconnect(stage, outage, 1000, keep)
    assert measured["slope"] > MOST_PER_RECONNECTION


def test_a_consumer_that_is_far_behind(stage: Stage, record_property: Record) -> None:
    number = many(10_000, stage.pair)
    for start in range(0, number, 5000):
        stage.send(*map(str, range(start, start + 5000)))
    with redelivery.connect(stage.pair.url, prefetch=100) as connection:  # the stage's notes each message's events
        consumer = connection.session(AckMode.AUTO).consumer(stage.queue)
        growth, began = Growth(number), monotonic()
        for expected in range(number):
            assert receive(consumer).body == str(expected)
            growth.after(expected + 1)
        slope = growth.slope
        record_property("load", growth.row("messages behind", number, monotonic() - began, slope=slope))
        back_to(growth.used[0])
    assert slope <= MOST_PER_MESSAGE


def test_a_handler_that_takes_three_heartbeats(stage: Stage, outage: Outage) -> None:
    done: list[object] = []

    def handle(message: Message) -> None:
        threading.Event().wait(3.0)
        done.append(message.body)

    with outage.connect(heartbeat=1.0).listener_container(stage.queue, handle, ack_mode="client"):
        stage.send("slow")
        until(lambda: done == ["slow"])
    assert not outage.seen(ConnectionLost)


def test_a_pattern_over_ten_thousand_queues(stage: Stage, record_property: Record) -> None:
    """It attaches within 2 s, and takes one message of each: the time grows as their number does."""
    if stage.pair.embedded is None:
        pytest.skip(SHARED)
    before, number = Used.now(), 10_000
    for each in range(number):
        stage.pair.embedded.send(f"{stage.queue}.many.{each}", "x")
    began = monotonic()
    with stage.connect() as connection, connection.session("transacted") as session:
        consumer = session.consumer(f"{stage.queue}.many.*")
        receive(consumer)
        attached = monotonic() - began
        for got in range(1, number):
            receive(consumer)
            if got % 100 == 0:
                session.commit()
        session.commit()
        during, seconds = Used.now(), monotonic() - began
    record_property("load", row("queues of one pattern", number, seconds, before, during, Used.now()))
    assert attached <= 2
    assert seconds <= 30
