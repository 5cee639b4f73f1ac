"""The listener containers of threads and of tasks, on the embedded broker by each protocol."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

import pytest
from tests.client.containers.bench import DEAD, Bench
from tests.client.shell import SOON, eventually

from redelivery import (
    ConfigError,
    DeadLetter,
    Drop,
    Message,
    MessageFormatError,
    Producer,
    RedeliveryPolicy,
    Retry,
    Session,
    UnsupportedError,
)
from redelivery.client.containers import base, plan


@pytest.mark.parametrize("mode", ["transacted", "client"])
def test_what_a_handler_has_returned_from_is_consumed(bench: Bench, mode: str) -> None:
    got: list[Any] = []
    bench.send("a", "b", "c")
    container = bench.start(lambda message: got.append(message.body), ack_mode=mode)
    bench.done()
    assert got == ["a", "b", "c"]
    eventually(lambda: container.counters.succeeded == 3)
    assert (container.healthy, container.last_error, container.counters.in_flight) == (True, None, 0)
    assert container.drain()
    assert not container.healthy


def test_what_it_sends_is_one_with_the_message(bench: Bench) -> None:
    def handler(message: Message, session: Session) -> None:
        session.producer("out").send(f"{message.body}, attempt {message.delivery_count}")
        if message.delivery_count == 1:
            raise ValueError("once more")

    bench.send("a")
    container = bench.start(handler)
    eventually(lambda: bench.left("out") == ["a, attempt 2"])
    eventually(lambda: (container.counters.failed, container.counters.succeeded) == (1, 1))
    assert isinstance(container.last_error, ValueError)


@pytest.mark.parametrize("mode", ["transacted", "client"])
def test_one_that_always_fails_becomes_a_dead_letter_with_its_cause(bench: Bench, mode: str) -> None:
    def handler(message: Message) -> None:
        if message.body == "bad":
            raise ValueError("no such product")

    bench.send("bad", "good")
    container = bench.start(handler, ack_mode=mode)
    bench.done()
    (letter,) = bench.broker.messages(DEAD)
    assert "no such product" in str(letter.properties["dlqDeliveryFailureCause"])
    eventually(lambda: (container.counters.failed, container.counters.succeeded) == (3, 1))


@pytest.mark.parametrize("mode", ["transacted", "client"])
def test_a_handler_decides(bench: Bench, mode: str) -> None:
    def handler(message: Message) -> object:
        match message.body:
            case "dead":
                raise DeadLetter("cancelled")
            case "drop":
                return Drop("a test")
            case "fatal":
                raise KeyError("unknown")
            case "retry" if message.delivery_count == 1:
                return Retry(after=0.05)
        return None

    bench.send("dead", "drop", "fatal", "retry")
    container = bench.start(handler, fatal=LookupError, ack_mode=mode)
    bench.done()
    causes = {letter.body: str(letter.properties["dlqDeliveryFailureCause"]) for letter in bench.broker.messages(DEAD)}
    assert causes.keys() == {"dead", "fatal"}
    assert causes["dead"].startswith("Delivery[1] given up: cancelled")
    assert causes["fatal"].startswith("Delivery[1] given up: KeyError is fatal")
    eventually(lambda: container.counters.succeeded == 1)
    assert (container.counters.given_up, container.counters.dropped, container.counters.failed) == (2, 1, 1)


def test_what_was_given_up_is_an_error_too(bench: Bench) -> None:
    bench.send("{")
    container = bench.start(print, body_type="json")
    eventually(lambda: container.counters.given_up == 1)
    assert isinstance(container.last_error, MessageFormatError)


def test_a_retry_is_limited_by_the_policy(bench: Bench) -> None:
    seen: list[int] = []

    def handler(message: Message) -> None:
        seen.append(message.delivery_count)
        raise Retry("not yet", after=0)

    bench.send("never")
    bench.start(handler)
    eventually(lambda: bench.left(DEAD) == ["never"])
    assert seen == [1, 2, 3]


def test_a_handler_may_take_a_producer(bench: Bench) -> None:
    def handler(message: Message, *, producer: Producer) -> None:
        producer.send(f"of {message.body}", "out")

    bench.send("x")
    bench.start(handler)
    eventually(lambda: bench.left("out") == ["of x"])


def test_a_body_that_does_not_convert_is_a_dead_letter_at_once(bench: Bench) -> None:
    got: list[Any] = []
    bench.send('{"id": 1}', "{", '{"id": 2}')
    bench.start(lambda order: got.append(order["id"]), body_type=dict)
    bench.done()
    assert (got, bench.left(DEAD)) == ([1, 2], ["{"])


@dataclass
class Order:
    id: int


def test_a_handler_is_given_the_body_as_its_type_or_the_message_with_it(bench: Bench) -> None:
    got: list[Any] = []

    def of_body(order: Order, message: Message[Order]) -> None:
        got.append((order, message.body, message.raw_body))

    def of_message(message: Message[Order]) -> None:
        got.append((message.body, message.delivery_count))

    bench.send('{"id": 1}', '{"id": "x"}')
    with bench.connection.listener_container("orders", of_body, body_type=Order):
        bench.done()
    assert got == [(Order(1), Order(1), b'{"id": 1}')]
    bench.send('{"id": 2}')
    bench.start(of_message, body_type=Order)
    bench.done()
    assert got[1:] == [(Order(2), 1)]
    (letter,) = bench.broker.messages(DEAD)
    assert letter.body == '{"id": "x"}'
    cause = str(letter.properties["dlqDeliveryFailureCause"])
    assert "the body does not convert to Order: id: it is a string, not an integer" in cause


def test_a_deadline_ends_the_attempts(bench: Bench) -> None:
    def handler(_: Message) -> None:
        raise ValueError("always")

    bench.send("late")
    patient = RedeliveryPolicy(initial_redelivery_delay=0.05, redelivery_delay=0.05, maximum_redeliveries=1000)
    container = bench.start(handler, deadline=0.3, redelivery_policy=patient, outage_after=None)
    eventually(lambda: bench.left(DEAD) == ["late"] and container.counters.given_up == 1)
    assert container.counters.failed >= 1
    (letter,) = bench.broker.messages(DEAD)
    assert "the deadline of 0.3 s for all attempts has passed" in str(letter.properties["dlqDeliveryFailureCause"])


@pytest.mark.parametrize("mode", ["transacted", "client"])
def test_a_result_is_the_reply_to_who_asks_for_one(bench: Bench, mode: str) -> None:
    bench.send("asked", reply_to="answers", correlation_id="c1")
    bench.send("told")
    container = bench.start(lambda message: f"answer to {message.body}", ack_mode=mode)
    bench.done()
    (answer,) = bench.broker.messages("answers")
    assert (answer.body, answer.correlation_id) == ("answer to asked", "c1")
    eventually(lambda: (container.counters.replied, container.counters.succeeded) == (1, 2))


def test_workers_are_added_for_a_backlog_and_let_go_after_it(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "IDLE", 0.02)
    monkeypatch.setattr(base, "POLL", 0.01)
    together, passed = threading.Barrier(3, timeout=SOON), threading.Event()

    def handler(_: Message) -> None:
        together.wait()
        passed.wait(SOON)

    bench.send(*["meet"] * 6)  # a worker that has one in hand has been pushed another
    container = bench.start(handler, concurrency=(1, 3), prefetch=1)
    eventually(lambda: container.counters.in_flight == container.counters.workers == 3)
    passed.set()
    bench.done()
    eventually(lambda: container.counters.succeeded == 6 and container.counters.workers == 1)
    assert container.healthy


def test_one_that_has_work_before_the_others_are_there_is_no_backlog(
    of_threads: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench, goes_on = of_threads, threading.Event()
    bench.opened.callback(goes_on.set)
    container = bench.connection.listener_container("orders", lambda _: goes_on.wait(SOON), concurrency=2)
    employ = container._employ

    def slowly(lane: Any) -> None:
        employ(lane)
        eventually(lambda: container.counters.in_flight)

    monkeypatch.setattr(container, "_employ", slowly)
    bench.send("one")
    bench.opened.enter_context(container)
    assert container.counters.workers == 2
    goes_on.set()
    bench.done()


def test_a_worker_takes_a_new_session_after_so_many(bench: Bench) -> None:
    sessions: list[Session] = []

    def handler(_: Message, session: Session) -> None:
        if session not in sessions:
            sessions.append(session)

    bench.send(*"abcdef")
    bench.start(handler, max_messages_per_task=2)
    bench.done()
    assert len(sessions) == 3
    eventually(lambda: all(session.closed for session in sessions))


def test_its_health_says_how_often_what_is_in_hand_was_tried(bench: Bench) -> None:
    passes = threading.Event()

    def handler(message: Message) -> None:
        if message.delivery_count < 3:
            raise ValueError("not yet")
        passes.wait(SOON)

    container = bench.start(handler)
    assert container.attempts == 0
    bench.send("x")
    eventually(lambda: container.attempts == 3)
    passes.set()
    eventually(lambda: container.attempts == 0)


def test_a_coroutine_function_is_refused(of_threads: Bench) -> None:
    async def handler(message: Message) -> None: ...

    with pytest.raises(ConfigError, match="coroutine function"):
        of_threads.connection.listener_container("orders", handler)


def test_what_the_broker_refuses_is_raised_by_start(bench: Bench) -> None:
    peer = bench.connection._core.transport.peer
    bench.connection._core.transport.peer = replace(peer, capabilities=replace(peer.capabilities, selectors=False))
    container = bench.connection.listener_container("orders", print, selector="color = 'red'")
    with pytest.raises(UnsupportedError, match="selectors"):
        container.start()
    assert container.counters.workers == 0
