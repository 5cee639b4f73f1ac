"""Many sessions, consumers, losses, messages behind; and a handler that is slower than the heart-beat."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Final

import pytest
from tests.conformance.outage import Counted, Outage, until
from tests.conformance.stage import Stage, receive
from tests.run.forms import examples

import redelivery
from redelivery import AckMode, Message, ReconnectPolicy
from redelivery.events import ConnectionLost, Reconnected

pytestmark = [pytest.mark.long_form, pytest.mark.timeout(300)]
MEGABYTE: Final = 1 << 20


def used() -> tuple[int, int]:
    """Threads and descriptors."""
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


def memory() -> int:
    """Bytes that this process has in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted by /proc")
def test_a_thousand_sessions_on_ten_connections(stage: Stage) -> None:
    each = 10 if stage.pair.kind.name == "stomp-activemq" else 100  # there each session has a socket of its own
    before = used()
    connections = [redelivery.connect(stage.pair.url) for _ in range(10)]
    sessions = [connection.session() for connection in connections for _ in range(each)]
    for number, session in enumerate(sessions[:: each // 2]):
        session.producer(stage.queue).send(str(number))
    last = sessions[-1].consumer(stage.queue)
    assert [receive(last).body for _ in range(20)] == [str(number) for number in range(20)]
    for connection in connections:
        connection.close()
    until(lambda: used()[0] <= before[0] + 2 and used()[1] <= before[1] + 4)


def test_two_hundred_consumers_on_one_connection(stage: Stage) -> None:
    connection = stage.connect(prefetch=1)
    sessions = [connection.session() for _ in range(20)]
    consumers = [session.consumer(f"{stage.queue}.{number}") for number in range(10) for session in sessions]
    for number in range(10):
        stage.send(*map(str, range(20)), queue=f"{stage.queue}.{number}")
    got = 0
    end = monotonic() + 60
    while got < 200 and monotonic() < end:
        got += sum(consumer.receive(timeout=0.01) is not None for consumer in consumers)
    assert got == 200


def test_many_reconnections_in_a_row(
    stage: Stage, outage: Outage, record_property: Callable[[str, object], None]
) -> None:
    rounds = examples(1000) if stage.pair.embedded is not None else 1000
    counted = Counted()
    quick = ReconnectPolicy(initial_delay=0.001, maximum_delay=0.01)
    connection = stage.connect(url=outage.url, observer=counted, reconnect=quick)
    consumer = connection.session(AckMode.AUTO).consumer(stage.queue)
    began, before = monotonic(), (*used(), memory())
    for number in range(1, rounds + 1):
        outage.gate.shut()
        counted.until(ConnectionLost, number)
        outage.gate.open()
        counted.until(Reconnected, number)
        if number == rounds // 10:
            before = (*used(), memory())
    now = (*used(), memory())
    took = monotonic() - began
    text = (
        f"{rounds} reconnections in {took:.0f} s; threads, descriptors, bytes {before} after a tenth, {now} at the end"
    )
    record_property("load", text)
    print(text)
    assert now[0] <= before[0] + 4  # the gate's own threads are joined at its end
    assert now[1] <= before[1] + 4
    assert now[2] <= before[2] + 16 * MEGABYTE
    stage.send("after all that")
    assert receive(consumer).body == "after all that"


def test_a_consumer_that_is_far_behind(stage: Stage, record_property: Callable[[str, object], None]) -> None:
    number = examples(10_000)
    for start in range(0, number, 5000):
        stage.send(*map(str, range(start, start + 5000)))
    session = stage.session(AckMode.AUTO, prefetch=100)
    consumer = session.consumer(stage.queue)
    assert receive(consumer).body == "0"
    began, before = monotonic(), (*used(), memory())
    for expected in range(1, number):
        assert receive(consumer).body == str(expected)
    now = (*used(), memory())
    took = monotonic() - began
    text = f"{number} behind: {number / took:.0f} messages/s; threads, descriptors, bytes {before} then {now}"
    record_property("load", text)
    print(text)
    assert now[0] <= before[0]
    assert now[1] <= before[1]
    assert now[2] <= before[2] + (64 if stage.pair.real else 256) * MEGABYTE  # the embedded broker is in this process


def test_a_handler_that_takes_three_heartbeats(stage: Stage, outage: Outage) -> None:
    done: list[object] = []

    def handle(message: Message) -> None:
        threading.Event().wait(3.0)
        done.append(message.body)

    with outage.connect(heartbeat=1.0).listener_container(stage.queue, handle, ack_mode="client"):
        stage.send("slow")
        until(lambda: done == ["slow"])
    assert not outage.seen(ConnectionLost)
