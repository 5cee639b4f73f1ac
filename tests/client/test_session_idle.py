"""Waiting costs nothing, however it is done."""

from __future__ import annotations

import threading
import time

import pytest
from tests.client.shell import SOON, Background, Bench, Gate, eventually, receive

from redelivery import AckMode, Message, RedeliveryPolicy

MODES = pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
CHEAP = 0.25
"""Seconds of processor time allowed in one second of waiting: a loop would take nearly all of it."""


def processor_time_of_waiting(seconds: float = 1.0) -> float:
    began = time.process_time()
    time.sleep(seconds)
    return time.process_time() - began


def test_a_receive_that_waits(background: Background, bench: Bench) -> None:
    session, consumer = bench.consuming()
    waiting = background.start(consumer.receive)
    eventually(lambda: bench.waits(session))
    assert processor_time_of_waiting() < CHEAP
    session.close()
    assert waiting() is None


def test_a_listener_that_waits(bench: Bench) -> None:
    _, consumer = bench.consuming()
    consumer.listen(lambda _: None)
    assert processor_time_of_waiting() < CHEAP


@pytest.mark.parametrize("non_blocking", [False, True], ids=["blocking", "non-blocking"])
def test_a_wait_for_a_redelivery(background: Background, bench: Bench, non_blocking: bool) -> None:
    bench.send("m1")
    session, consumer = bench.consuming(
        AckMode.TRANSACTED,
        redelivery_policy=RedeliveryPolicy(initial_redelivery_delay=60),
        non_blocking_redelivery=non_blocking,
    )
    receive(consumer)
    session.rollback()
    waiting = background.start(consumer.receive)
    eventually(lambda: bench.waits(session))
    assert processor_time_of_waiting() < CHEAP
    session.close()
    assert waiting() is None


def test_a_wait_that_is_over_while_nobody_receives(bench: Bench) -> None:
    """listener-removed-during-delay, with another consumer's listener still there."""
    session = bench.connect(redelivery_policy=RedeliveryPolicy(initial_redelivery_delay=0.05)).session()
    failing, idle = session.consumer(bench.queue), session.consumer("other")
    gate = Gate()

    def callback(message: Message) -> None:
        gate(message)
        raise ValueError("once")

    failing.listen(callback)
    idle.listen(lambda _: None)
    bench.send("m1")
    assert gate.entered.wait(SOON)
    remover = threading.Thread(target=lambda: failing.listen(None))
    remover.start()
    gate.leave.set()
    remover.join(SOON)
    time.sleep(0.1)
    assert processor_time_of_waiting() < CHEAP


def test_a_consumer_whose_close_is_deferred(bench: Bench) -> None:
    """Its prefetched messages wait, and nothing looks at them again and again."""
    bench.send("m1", "m2")
    session, consumer = bench.consuming(AckMode.CLIENT)
    other = session.consumer("other")
    receive(consumer)
    consumer.close()
    other.listen(lambda _: None)
    assert processor_time_of_waiting() < CHEAP


def test_a_stopped_connection(background: Background, bench: Bench) -> None:
    bench.send("m1")
    connection = bench.connect(start=False)
    session = connection.session()
    consumer = session.consumer(bench.queue)
    waiting = background.start(consumer.receive)
    eventually(lambda: bench.waits(session))
    assert processor_time_of_waiting() < CHEAP
    connection.close()
    assert waiting() is None
