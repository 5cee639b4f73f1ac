"""Ctrl-C at a bad moment: the session stays usable, and no message is acknowledged that nobody got."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import get_args

import pytest
from tests.client.shell import SOON, Bench, eventually, receive

from redelivery import AckMode, InDoubtError, JMSError, RedeliveryPolicy
from redelivery.broker.vm.channel import VmChannel
from redelivery.client.session.inbox import News
from redelivery.transports.seam import Delivery, Flow, Pending
from redelivery.transports.wire.clock import epoch_ms

MODES = pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)


@contextmanager
def ctrl_c(when: Callable[[], bool]) -> Iterator[None]:
    """A real signal to this thread once ``when`` holds; it must end the call long before its time-out does."""

    def interrupt() -> None:
        eventually(when)
        time.sleep(0.05)  # the interpreter notices no signal between its last look and the blocking call itself
        signal.pthread_kill(target, signal.SIGINT)

    target = threading.get_ident()
    interrupter = threading.Thread(target=interrupt)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a detached process may ignore it
    try:
        began = time.monotonic()
        interrupter.start()
        with pytest.raises(KeyboardInterrupt):
            yield
        assert time.monotonic() - began < SOON / 2
    finally:
        interrupter.join(SOON)
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("news", get_args(News), ids=lambda news: news.__name__)
def test_it_loses_nothing_of_what_is_taken_in(news: type[object]) -> None:
    """`take_in` compares each with None in one step, which it is not where that runs Python code."""
    assert news.__eq__ is object.__eq__


@MODES
def test_it_ends_a_receive_that_waits(bench: Bench, mode: AckMode) -> None:
    session, consumer = bench.consuming(mode)

    with ctrl_c(lambda: bench.waits(session)):
        consumer.receive(SOON)
    bench.send("m1")
    assert receive(consumer).body == "m1"


@MODES
def test_it_ends_a_receive_of_many_and_releases_what_had_come(bench: Bench, mode: AckMode) -> None:
    bench.send("m1", "m2")
    session, consumer = bench.consuming(mode, redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0))

    with ctrl_c(lambda: bench.waits(session)):
        consumer.receive_many(3, SOON)
    assert bench.left == ["m1", "m2"]
    again = consumer.receive_many(2, SOON)
    assert [(each.body, each.delivery_count) for each in again] == [("m1", 1), ("m2", 1)]


@MODES
def test_an_interrupt_while_a_dead_letter_is_written_takes_nothing_with_it(
    bench: Bench, mode: AckMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C between an expired message and the good one behind it: the good one is not held, acknowledged or lost."""
    poison = VmChannel.poison

    def interrupted(*_: object, **__: object) -> Flow[None]:
        monkeypatch.setattr(VmChannel, "poison", poison)
        raise KeyboardInterrupt

    bench.connect().session().producer(bench.queue).send("short", ttl=60)
    bench.send("good")
    session, consumer = bench.consuming(mode)
    monkeypatch.setattr(session._core.ledger, "_wall_ms", lambda: epoch_ms() + 120_000)
    monkeypatch.setattr(VmChannel, "poison", interrupted)
    with pytest.raises(KeyboardInterrupt):
        consumer.receive(SOON)
    if session.transacted:
        session.commit()
    elif mode == AckMode.CLIENT:
        session.acknowledge()
    assert "good" in bench.left
    message = receive(consumer)
    assert (message.body, message.delivery_count) == ("good", 1)


def test_in_a_commit_it_leaves_a_session_that_goes_on(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody knows whether it was committed: the deliveries are forgotten, a new transaction begins."""
    commit = VmChannel.commit

    def interrupted(*_: object, **__: object) -> Flow[None]:
        monkeypatch.setattr(VmChannel, "commit", commit)
        raise KeyboardInterrupt

    bench.send("m1", "m2")
    session, consumer = bench.consuming(AckMode.TRANSACTED)
    assert receive(consumer).body == "m1"
    monkeypatch.setattr(VmChannel, "commit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        session.commit()
    assert receive(consumer).body == "m2"
    session.commit()
    session.close()
    assert bench.left == ["m1"]


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Pending]:
    """Of the commits from now on: they wait for them before they begin."""
    commit, found = VmChannel.commit, list[Pending]()

    def slow(channel: VmChannel, deliveries: Sequence[Delivery]) -> Flow[None]:
        found.append(Pending(channel.events.waiter))
        yield found[-1]
        yield from commit(channel, deliveries)

    monkeypatch.setattr(VmChannel, "commit", slow)
    return found


def test_it_ends_a_commit_that_waits_for_its_answer(bench: Bench, answers: list[Pending]) -> None:
    bench.send("m1", "m2")
    session, consumer = bench.consuming(AckMode.TRANSACTED, request_timeout=SOON)
    assert receive(consumer).body == "m1"
    with ctrl_c(lambda: len(answers) == 1):
        session.commit()
    assert receive(consumer).body == "m2"


def test_a_handler_of_a_signal_uses_the_connection_while_a_commit_waits(bench: Bench, answers: list[Pending]) -> None:
    """It returns, so the commit goes on."""
    bench.send("m1")
    session, consumer = bench.consuming(AckMode.TRANSACTED, request_timeout=SOON)
    other = bench.connect().session(AckMode.AUTO)
    receive(consumer)

    def handler(*_: object) -> None:
        other.producer("signals").send("here")
        other.close()
        answers[0].complete()

    before = signal.signal(signal.SIGUSR1, handler)
    target = threading.get_ident()

    def interrupt() -> None:
        eventually(lambda: len(answers) == 1)
        signal.pthread_kill(target, signal.SIGUSR1)

    interrupter = threading.Thread(target=interrupt)
    try:
        began = time.monotonic()
        interrupter.start()
        session.commit()
        assert time.monotonic() - began < SOON / 2
    finally:
        interrupter.join(SOON)
        signal.signal(signal.SIGUSR1, before)
    assert [message.body for message in bench.broker.messages("signals")] == ["here"]
    session.close()
    assert bench.left == []


@pytest.mark.parametrize("mode", [AckMode.TRANSACTED, AckMode.CLIENT], ids=lambda mode: mode.name)
def test_a_commit_in_doubt_names_what_it_is_about_and_the_session_goes_on(
    bench: Bench, mode: AckMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JMS 3.1, `Session.commit`."""
    commit = VmChannel.commit

    def doubtful(*_: object) -> Flow[None]:
        monkeypatch.setattr(VmChannel, "commit", commit)
        raise InDoubtError("the answer did not come")

    bench.send("m1", "m2")
    session, consumer = bench.consuming(mode)
    producer = session.producer("results")
    message = receive(consumer)
    if session.transacted:
        producer.send("r1")
    monkeypatch.setattr(VmChannel, "commit", doubtful)
    with pytest.raises(InDoubtError) as caught:
        session.commit() if session.transacted else message.acknowledge()
    assert [each.body for each in caught.value.received] == ["m1"]
    assert [each.body for each in caught.value.sent] == (["r1"] if session.transacted else [])
    assert receive(consumer).body == "m2"


@pytest.mark.parametrize("error", [KeyboardInterrupt, JMSError])
@pytest.mark.parametrize("mode", [AckMode.TRANSACTED, AckMode.CLIENT], ids=lambda mode: mode.name)
def test_a_message_that_was_on_its_way_out_is_not_acknowledged(
    bench: Bench, mode: AckMode, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transport is notified that it is dispatched, and fails: nobody got it, so no commit may cover it."""
    dispatched = VmChannel.dispatched

    def failing(*_: object) -> None:
        monkeypatch.setattr(VmChannel, "dispatched", dispatched)
        raise error("not now")

    bench.send("m1")
    session, consumer = bench.consuming(mode)
    monkeypatch.setattr(VmChannel, "dispatched", failing)
    with pytest.raises(error):
        consumer.receive(SOON)
    session.commit() if session.transacted else session.acknowledge()
    assert bench.left == ["m1"]
    message = receive(consumer)
    assert (message.body, message.delivery_count) == ("m1", 1)
