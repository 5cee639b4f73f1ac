"""Many sessions, many consumers, many losses, and a handler that is slower than the heart-beat."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from time import monotonic

import pytest
from tests.conformance.outage import Outage, until
from tests.conformance.stage import Stage, receive

import redelivery
from redelivery import AckMode, Message, ReconnectPolicy
from redelivery.events import ConnectionLost, Reconnected

pytestmark = [pytest.mark.long_form, pytest.mark.timeout(300)]


def used() -> tuple[int, int]:
    """Threads and descriptors."""
    return threading.active_count(), len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="descriptors are counted by /proc")
def test_a_thousand_sessions_on_ten_connections(stage: Stage) -> None:
    if stage.pair.kind.name == "stomp-activemq":
        pytest.skip("each session has a socket of its own there")
    before = used()
    connections = [redelivery.connect(stage.pair.url) for _ in range(10)]
    sessions = [connection.session() for connection in connections for _ in range(100)]
    for number, session in enumerate(sessions[::50]):
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


def test_a_thousand_reconnections_in_a_row(stage: Stage, outage: Outage) -> None:
    connection = outage.connect(reconnect=ReconnectPolicy(initial_delay=0.001, maximum_delay=0.01))
    session = connection.session(AckMode.AUTO)
    consumer = session.consumer(stage.queue)
    before = None
    for number in range(1000):
        lost = len(outage.seen(ConnectionLost))
        outage.gate.shut()
        until(lambda lost=lost: len(outage.seen(ConnectionLost)) > lost)  # type: ignore[misc]  # bound at once
        outage.gate.open()
        until(lambda lost=lost: len(outage.seen(Reconnected)) > lost)  # type: ignore[misc]  # bound at once
        if number == 50:
            before = used()
    assert before is not None
    now = used()
    assert now[0] <= before[0] + 4  # the gate's own threads are joined at its end
    stage.send("after all that")
    assert receive(consumer).body == "after all that"


def test_a_handler_that_takes_three_heartbeats(stage: Stage, outage: Outage) -> None:
    done: list[object] = []

    def handle(message: Message) -> None:
        threading.Event().wait(3.0)
        done.append(message.body)

    with outage.connect(heartbeat=1.0).listener_container(stage.queue, handle, ack_mode="client"):
        stage.send("slow")
        until(lambda: done == ["slow"])
    assert not outage.seen(ConnectionLost)
