"""Listeners, and what becomes of a message whose listener raises (JMS 3.1; ActiveMQ's redelivery delay)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

import pytest
from tests.conformance.stage import NOTHING, SOON, Stage

from redelivery import AckMode, Consumer, IllegalStateError, Message, RedeliveryPolicy

Seen = SimpleQueue[tuple[str, int, bool]]


def listening(consumer: Consumer, act: Callable[[Message], None]) -> Seen:
    """Listen; each delivery is put into the queue before ``act`` decides."""
    seen: Seen = SimpleQueue()

    def callback(message: Message) -> None:
        seen.put((message.body, message.delivery_count, message.redelivered))
        act(message)

    consumer.listen(callback)
    return seen


def next_of(seen: Seen, count: int) -> list[tuple[str, int, bool]]:
    return [seen.get(timeout=SOON) for _ in range(count)]


def failing_once(bodies: set[str]) -> Callable[[Message], None]:
    failed: set[str] = set()

    def act(message: Message) -> None:
        if message.body in bodies - failed:
            failed.add(message.body)
            raise ValueError(f"no {message.body}")

    return act


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK])
def test_r8_auto_redelivers_what_the_listener_raised_on_before_the_next(stage: Stage, mode: AckMode) -> None:
    stage.send("a", "b", "c")
    session, consumer = stage.consuming(mode)
    seen = listening(consumer, failing_once({"b"}))
    assert next_of(seen, 4) == [("a", 1, False), ("b", 1, False), ("b", 2, True), ("c", 1, False)]
    session.close()
    assert stage.left() == []


def test_r8_individual_redelivers_and_acknowledges_nothing_by_itself(stage: Stage) -> None:
    stage.send("a", "b")
    session, consumer = stage.consuming(AckMode.INDIVIDUAL)
    fail = failing_once({"a"})

    def act(message: Message) -> None:
        fail(message)
        message.acknowledge()

    seen = listening(consumer, act)
    assert next_of(seen, 3) == [("a", 1, False), ("a", 2, True), ("b", 1, False)]
    session.close()
    assert stage.left() == []


def test_r8_client_goes_on_with_the_next_until_recover(stage: Stage) -> None:
    stage.send("a", "b", "c")
    session, consumer = stage.consuming(AckMode.CLIENT)
    fail = failing_once({"a"})
    recovered: list[bool] = []

    def act(message: Message) -> None:
        fail(message)
        if message.body == "b" and not recovered:
            recovered.append(True)
            session.recover()
        elif message.body == "c":
            message.acknowledge()

    seen = listening(consumer, act)
    assert next_of(seen, 5) == [("a", 1, False), ("b", 1, False), ("a", 2, True), ("b", 2, True), ("c", 1, False)]
    session.close()
    assert stage.left() == []


def test_r8_transacted_goes_on_with_the_next_until_rollback(stage: Stage) -> None:
    stage.send("a", "b")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    fail = failing_once({"a"})

    def act(message: Message) -> None:
        fail(message)
        if message.body == "b":
            session.rollback() if message.delivery_count == 1 else session.commit()

    seen = listening(consumer, act)
    assert next_of(seen, 4) == [("a", 1, False), ("b", 1, False), ("a", 2, True), ("b", 2, True)]
    session.close()
    assert stage.left() == []


def test_listener_that_always_raises_ends_in_the_dead_letter_queue(stage: Stage) -> None:
    stage.send("a", "b")
    policy = RedeliveryPolicy(maximum_redeliveries=2, initial_redelivery_delay=0.01, redelivery_delay=0.01)
    session, consumer = stage.consuming(AckMode.AUTO, redelivery_policy=policy)

    def act(message: Message) -> None:
        if message.body == "a":
            raise ValueError("never")

    seen = listening(consumer, act)
    assert next_of(seen, 4) == [("a", 1, False), ("a", 2, True), ("a", 3, True), ("b", 1, False)]
    session.close()
    assert [message.body for message in stage.dead_letters(at_least=1)] == ["a"]


def test_listener_may_send_and_commit_on_its_own_session(stage: Stage) -> None:
    target = stage.beside("target")
    session, consumer = stage.consuming(AckMode.TRANSACTED)
    producer = session.producer(target)

    committed: SimpleQueue[str] = SimpleQueue()

    def act(message: Message) -> None:
        producer.send(message.body * 2)
        session.commit()
        committed.put(message.body)

    listening(consumer, act)
    stage.send("a", "b")
    assert [committed.get(timeout=SOON) for _ in range(2)] == ["a", "b"]
    session.close()
    assert stage.left_bodies(target, at_least=2) == ["aa", "bb"]
    assert stage.left() == []


@pytest.mark.everywhere_in_long_form
def test_listeners_of_one_session_run_one_at_a_time(stage: Stage) -> None:
    other = stage.beside("other")
    session, consumer = stage.consuming(AckMode.AUTO)
    alone = threading.Lock()
    overlaps: list[str] = []

    def act(message: Message) -> None:
        if not alone.acquire(blocking=False):
            overlaps.append(message.body)
            return
        threading.Event().wait(0.005)  # long enough for another callback to begin
        alone.release()

    another = session.consumer(other)
    first, second = listening(consumer, act), listening(another, act)
    stage.send(*"abcdefgh")
    stage.send(*"stuvwxyz", queue=other)
    assert [body for body, *_ in next_of(first, 8)] == list("abcdefgh")
    assert [body for body, *_ in next_of(second, 8)] == list("stuvwxyz")
    assert overlaps == []


@pytest.mark.everywhere_in_long_form
def test_receive_is_refused_while_a_listener_is_set_and_allowed_after(stage: Stage) -> None:
    _, consumer = stage.consuming(AckMode.AUTO)
    seen = listening(consumer, lambda _: None)
    with pytest.raises(IllegalStateError, match="listener"):
        consumer.receive(timeout=0)
    consumer.listen(None)
    stage.send("a")
    message = consumer.receive(timeout=SOON)
    assert message is not None
    assert message.body == "a"
    assert seen.empty()


@pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.CLIENT, AckMode.INDIVIDUAL, AckMode.TRANSACTED])
def test_consumers_and_listeners_are_added_to_a_session_that_listens(stage: Stage, mode: AckMode) -> None:
    """As people write ``s.consumer(a).listen(f); s.consumer(b).listen(g)``, with messages that come meanwhile."""
    queues = [stage.beside(number) for number in range(3)]
    session = stage.session(mode)
    seen: Seen = SimpleQueue()
    consumers = []
    for queue in queues:
        stage.send("before", queue=queue)
        consumer = session.consumer(queue)
        consumer.listen(lambda message: seen.put((str(message.destination), 1, message.body == "before")))
        consumers.append(consumer)
        stage.send("after", queue=queue)
    wanted = sorted((f"queue://{stage.said(queue)}", 1, before) for queue in queues for before in (False, True))
    assert sorted(next_of(seen, 6)) == wanted
    calls: list[Callable[[], object]] = [
        lambda: consumers[0].receive(timeout=0),
        session.rollback if session.transacted else session.recover,
    ]
    for refused in calls:
        with pytest.raises(IllegalStateError, match="a message listener is set"):
            refused()
    consumers[0].listen(None)
    consumers[1].close()
    stage.send("last", queue=queues[2])
    assert next_of(seen, 1) == [(f"queue://{stage.said(queues[2])}", 1, False)]
    session.close()


def test_closing_a_session_ends_its_listener(stage: Stage) -> None:
    session, consumer = stage.consuming(AckMode.AUTO)
    seen = listening(consumer, lambda _: None)
    stage.send("a")
    next_of(seen, 1)
    session.close()
    stage.send("b")
    assert stage.left_bodies(at_least=1) == ["b"]
    assert seen.empty()


@pytest.mark.everywhere_in_long_form
@pytest.mark.parametrize("what", ["session", "connection"])
def test_close_waits_for_the_running_callback_which_may_still_commit(stage: Stage, what: str) -> None:
    """JMS 3.1, "Closing a session": its facilities remain available to a listener until that returns."""
    target = stage.beside("target")
    connection = stage.connect()
    session = connection.session(AckMode.TRANSACTED)
    consumer, producer = session.consumer(stage.queue), session.producer(target)
    entered, leave = threading.Event(), threading.Event()

    def callback(message: Message) -> None:
        entered.set()
        leave.wait(SOON)
        producer.send(message.body)
        session.commit()

    consumer.listen(callback)
    stage.send("a")
    assert entered.wait(SOON)
    closing = threading.Thread(target=session.close if what == "session" else connection.close)
    closing.start()
    closing.join(0.3)
    assert closing.is_alive(), "close() did not wait for the callback"
    leave.set()
    closing.join(SOON)
    assert not closing.is_alive()
    assert stage.left_bodies(target, at_least=1) == ["a"]
    assert stage.left() == []


@pytest.mark.everywhere_in_long_form
def test_setting_a_listener_does_not_shorten_a_redelivery_delay(stage: Stage) -> None:
    """The Java client restarts its consumer there, and the order of the messages is lost."""
    stage.send("a", "b")
    policy = RedeliveryPolicy(initial_redelivery_delay=NOTHING, redelivery_delay=NOTHING)
    session, consumer = stage.consuming(AckMode.TRANSACTED, redelivery_policy=policy)
    assert consumer.receive(timeout=SOON) is not None
    session.rollback()
    seen = listening(consumer, lambda _: session.commit())
    assert next_of(seen, 2) == [("a", 2, True), ("b", 1, False)]
