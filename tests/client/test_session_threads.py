"""One thread at a time: which error a second one gets, and what it may do all the same."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.client.shell import Background, Bench, eventually, receive

from redelivery import AckMode, Connection, Consumer, IllegalStateError, Message, Producer, RequestTimeoutError, Session


@dataclass
class Everything:
    """What a second thread might get hold of."""

    session: Session
    consumer: Consumer
    producer: Producer
    message: Message


CALLS: dict[str, Callable[[Everything], Any]] = {
    "receive": lambda of: of.consumer.receive(0),
    "receive_many": lambda of: of.consumer.receive_many(1, 0),
    "receive_body": lambda of: of.consumer.receive_body(str, 0),
    "listen": lambda of: of.consumer.listen(print),
    "send": lambda of: of.producer.send("x"),
    "send_async": lambda of: of.producer.send_async("x"),
    "recover": lambda of: of.session.recover(),
    "acknowledge": lambda of: of.message.acknowledge(),
    "consumer": lambda of: of.session.consumer("other"),
    "producer": lambda of: of.session.producer("other"),
}


def everything(bench: Bench, mode: AckMode = AckMode.CLIENT) -> Everything:
    bench.send("m1")
    session, consumer = bench.consuming(mode, close_timeout=1)
    return Everything(session, consumer, session.producer("elsewhere"), receive(consumer))


@pytest.mark.parametrize("call", CALLS)
def test_a_second_thread_gets_an_error_that_says_so(background: Background, bench: Bench, call: str) -> None:
    of = everything(bench)
    waiting = background.start(of.consumer.receive)
    eventually(lambda: bench.waits(of.session))
    with pytest.raises(IllegalStateError, match=rf"^{call}: another thread is using this session"):
        CALLS[call](of)
    of.consumer.close()
    assert waiting() is None


def test_two_consumers_of_one_session_are_one_session(background: Background, bench: Bench) -> None:
    session, first = bench.consuming()
    second = session.consumer("other")
    waiting = background.start(first.receive)
    eventually(lambda: bench.waits(session))
    with pytest.raises(IllegalStateError, match="give each thread a session of its own"):
        second.receive(1)
    session.close()
    assert waiting() is None


@pytest.mark.parametrize("what", ["consumer", "session", "connection"])
@pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
def test_close_from_another_thread_ends_a_receive_with_none(
    background: Background, bench: Bench, what: str, mode: AckMode
) -> None:
    connection = bench.connect()
    session = connection.session(mode)
    consumer = session.consumer(bench.queue)
    waiting = background.start(consumer.receive)
    eventually(lambda: bench.waits(session))
    closing: dict[str, Consumer | Session | Connection] = {
        "consumer": consumer,
        "session": session,
        "connection": connection,
    }
    closing[what].close()
    assert waiting() is None


def test_close_from_another_thread_ends_an_iteration(background: Background, bench: Bench) -> None:
    bench.send("a", "b")
    session, consumer = bench.consuming()
    bodies: list[Any] = []
    waiting = background.start(lambda: bodies.extend(message.body for message in consumer))
    eventually(lambda: bench.left == [] and bench.waits(session))
    consumer.close()
    waiting()
    assert bodies == ["a", "b"]


def test_the_error_does_not_disturb_who_is_inside(background: Background, bench: Bench) -> None:
    session, consumer = bench.consuming()
    waiting = background.start(consumer.receive)
    eventually(lambda: bench.waits(session))
    for _ in range(20):
        with pytest.raises(IllegalStateError):
            consumer.receive(0)
    bench.send("m")
    assert waiting().body == "m"


def test_while_a_listener_is_set_only_its_callbacks_may_use_the_session(bench: Bench) -> None:
    session, consumer = bench.consuming()
    other, producer = session.consumer("other"), session.producer("elsewhere")
    done = threading.Event()

    def callback(message: Message) -> None:
        producer.send(message.body)
        done.set()

    consumer.listen(callback)
    calls: list[Callable[[], object]] = [
        lambda: consumer.receive(0),
        lambda: other.receive(0),
        lambda: producer.send("x"),
        session.recover,
    ]
    for call in calls:
        with pytest.raises(IllegalStateError, match="listener is set"):
            call()
    bench.send("m")
    assert done.wait(10)
    consumer.listen(None)
    assert other.receive(0) is None
    assert bench.broker.queue_depth("elsewhere") == 1


@pytest.mark.parametrize(
    ("mode", "call"),
    [
        (AckMode.TRANSACTED, lambda session, _: session.commit()),
        (AckMode.TRANSACTED, lambda session, _: session.rollback()),
        (AckMode.CLIENT, lambda session, _: session.acknowledge()),
        (AckMode.CLIENT, lambda _, message: message.acknowledge()),
        (AckMode.INDIVIDUAL, lambda _, message: message.acknowledge()),
    ],
)
def test_nor_may_others_settle_what_a_callback_has(
    bench: Bench, mode: AckMode, call: Callable[[Session, Message], None]
) -> None:
    session, consumer = bench.consuming(mode)
    called: queue.SimpleQueue[Message] = queue.SimpleQueue()
    consumer.listen(called.put)
    bench.send("m")
    with pytest.raises(IllegalStateError, match="listener is set"):
        call(session, called.get(timeout=10))
    session.close()
    assert bench.left == ["m"]


def test_a_consumer_from_outside_does_not_wait_for_a_callback_that_hangs(bench: Bench) -> None:
    session, consumer = bench.consuming()
    inside, leave = threading.Event(), threading.Event()

    def callback(_: Message) -> None:
        inside.set()
        assert leave.wait(10)

    consumer.listen(callback)
    bench.send("m")
    assert inside.wait(10)
    other = session.consumer("other")
    assert bench.left == ["m"], "the callback has not returned"
    other.close()
    leave.set()
    eventually(lambda: bench.left == [])


def test_nor_for_ever_for_a_call_that_hangs_within_a_callback(bench: Bench) -> None:
    session, consumer = bench.consuming(close_timeout=0.1)
    consumer.listen(lambda _: None)
    with session._core.use, pytest.raises(RequestTimeoutError, match=r"^consumer: a thread did not leave"):
        session.consumer("other")
    session.consumer("other").close()


def test_receive_inside_a_callback_is_refused_too(bench: Bench) -> None:
    """listener-receive-mixed, listener-set-on-other-consumer-during-delay."""
    session, consumer = bench.consuming()
    other = session.consumer("other")
    errors: list[Exception] = []
    done = threading.Event()

    def callback(_: Message) -> None:
        for each in (consumer, other):
            try:
                each.receive(0)
            except IllegalStateError as error:
                errors.append(error)
        done.set()

    consumer.listen(callback)
    bench.send("m")
    assert done.wait(10)
    assert len(errors) == 2
    assert "messages come to listeners only" in str(errors[0])


class Visitors(list[None]):
    """The threads that are in a session for a moment; ``left`` is called as soon as one is none of them any more."""

    def __init__(self, left: Callable[[], object]) -> None:
        super().__init__()
        self._left = left

    def __delitem__(self, at: Any) -> None:
        super().__delitem__(at)
        self._left()


@pytest.mark.parametrize("way", ["come_back", "_finish_alone", "inside_patiently"])
def test_a_call_is_not_refused_as_a_thread_of_ours_leaves(bench: Bench, way: str) -> None:
    """One that reconnects, or sends a dead letter, is no thread of the application's."""
    session, _ = bench.consuming()
    core, called = session._core, list[bool]()

    def left() -> None:
        session.recover()
        called.append(True)

    core.visitors = Visitors(left)
    arguments: dict[str, tuple[Any, ...]] = {"come_back": (1.0,), "inside_patiently": ("close", lambda: None)}
    getattr(core, way)(*arguments.get(way, ()))
    assert called == [True]


def test_nor_as_one_has_left(bench: Bench) -> None:
    session, _ = bench.consuming()
    session._core.use = Leaves()  # type: ignore[assignment]  # as far as it is used
    session.recover()


class Leaves:
    """A lock whose holder releases it right after the first look."""

    def __init__(self) -> None:
        self._looks = 0

    def acquire(self, *, blocking: bool = True, timeout: float = -1) -> bool:  # noqa: ARG002  # a lock's
        self._looks += 1
        return self._looks > 1

    def locked(self) -> bool:
        return self._looks < 2

    def release(self) -> None:
        """Let others in."""
