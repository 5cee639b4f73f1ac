"""Closing: what it does to work under way, from where it may be called, and what is left behind: nothing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from tests.client.shell import SOON, Background, Bench, Gate, eventually, receive

from redelivery import AckMode, Connection, Consumer, IllegalStateError, Message, Session

MODES = pytest.mark.parametrize("mode", list(AckMode), ids=lambda mode: mode.name)
WHAT = pytest.mark.parametrize("what", ["consumer", "session", "connection"])


def opened(bench: Bench, mode: AckMode = AckMode.AUTO) -> dict[str, Consumer | Session | Connection]:
    connection = bench.connect()
    session = connection.session(mode)
    return {"consumer": session.consumer(bench.queue), "session": session, "connection": connection}


@WHAT
def test_a_with_block_closes(bench: Bench, what: str) -> None:
    with opened(bench)[what] as inside_block:
        assert not inside_block.closed
    assert inside_block.closed


def test_parents_close_their_children(bench: Bench) -> None:
    connection = bench.connect()
    session = connection.session()
    connection.close()
    assert session.closed
    assert not connection.connected


class TestUnfinishedWork:
    """JMS 3.1, `Session.close`."""

    @pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.INDIVIDUAL], ids=lambda mode: mode.name)
    def test_unacknowledged_stays(self, bench: Bench, mode: AckMode) -> None:
        bench.send("m1", "m2")
        session, consumer = bench.consuming(mode)
        receive(consumer)
        session.close()
        assert bench.left == ["m1", "m2"]


@MODES
@pytest.mark.parametrize("what", ["session", "connection"])
def test_acknowledge_after_the_session_was_closed(bench: Bench, mode: AckMode, what: str) -> None:
    """JMS 3.1, `Message.acknowledge`, client-ack-after-session-close, client-ack-after-connection-close."""
    bench.send("m1")
    connection = bench.connect()
    session = connection.session(mode)
    message = receive(session.consumer(bench.queue))
    (session if what == "session" else connection).close()
    with pytest.raises(IllegalStateError, match=r"^acknowledge: the session is closed \(closed by close\(\) at"):
        message.acknowledge()


@pytest.mark.parametrize("what", ["session", "connection"])
def test_every_call_after_close_says_when_and_why(bench: Bench, what: str) -> None:
    """closed-operations."""
    connection = bench.connect()
    session = connection.session(AckMode.TRANSACTED)
    producer = session.producer("q")
    (session if what == "session" else connection).close()
    calls: list[Callable[[], object]] = [
        session.commit,
        session.rollback,
        lambda: session.consumer("q"),
        lambda: session.producer("q"),
        lambda: producer.send("x"),
        lambda: producer.send_async("x"),
        lambda: session.transaction().__enter__().commit(),
    ]
    if what == "connection":
        calls += [connection.session, connection.start, connection.stop]
    for call in calls:
        with pytest.raises(IllegalStateError, match=r"is closed \(closed by close\(\) at 20\d\d-"):
            call()


class TestInsideAListener:
    @pytest.mark.parametrize("mode", [AckMode.AUTO, AckMode.DUPS_OK], ids=lambda mode: mode.name)
    @WHAT
    def test_it_takes_effect_after_the_callback_whose_message_is_acknowledged(
        self, bench: Bench, mode: AckMode, what: str
    ) -> None:
        """listener-close-inside."""
        things = opened(bench, mode)
        consumer = things["consumer"]
        assert isinstance(consumer, Consumer)
        seen: list[object] = []

        def callback(message: Message) -> None:
            seen.append(message.body)
            things[what].close()
            things[what].close()

        consumer.listen(callback)
        bench.send("m1", "m2")
        eventually(lambda: things[what].closed and bench.left == ["m2"])
        assert seen == ["m1"]

    @pytest.mark.parametrize("what", ["consumer", "session", "connection"])
    def test_one_that_raises_after_it_loses_nothing(self, bench: Bench, what: str) -> None:
        """listener-close-throw-inside: Java acknowledges it by the close."""
        things = opened(bench)
        consumer = things["consumer"]
        assert isinstance(consumer, Consumer)

        def callback(_: Message) -> None:
            things[what].close()
            raise ValueError("after all")

        consumer.listen(callback)
        bench.send("m1")
        eventually(lambda: things[what].closed)
        _, other = bench.consuming()
        again = receive(other)
        assert (again.body, again.redelivered) == ("m1", True)

    @pytest.mark.parametrize("what", ["session", "connection"])
    def test_a_transacted_one_rolls_back_what_it_did_not_commit(self, bench: Bench, what: str) -> None:
        things = opened(bench, AckMode.TRANSACTED)
        consumer = things["consumer"]
        assert isinstance(consumer, Consumer)
        consumer.listen(lambda _: things[what].close())
        bench.send("m1")
        eventually(lambda: things[what].closed)
        _, other = bench.consuming()
        assert receive(other).body == "m1"


def test_close_is_bounded_though_a_listener_never_returns(bench: Bench, caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()
    connection = bench.connect(close_timeout=0.2)
    connection.session().consumer(bench.queue).listen(gate)
    bench.send("m1")
    assert gate.entered.wait(SOON)
    began = time.monotonic()
    connection.close()
    assert time.monotonic() - began < 3
    assert "a listener did not return within close_timeout" in caplog.text
    gate.leave.set()
    eventually(lambda: not any(each.name == "redelivery-listener" for each in threading.enumerate()))


@MODES
def test_no_thread_is_left_behind(bench: Bench, mode: AckMode) -> None:
    before = set(threading.enumerate())
    connection = bench.connect(exception_listener=lambda _: None)
    listening, receiving = connection.session(mode), connection.session(mode)
    called = threading.Event()
    listening.consumer("other").listen(lambda _: called.set())
    bench.send("m1", queue="other")
    assert called.wait(SOON)
    receiving.consumer(bench.queue).receive(0.01)
    connection._core.on_error(redelivery_error())
    connection.close()
    eventually(lambda: not [each for each in set(threading.enumerate()) - before if "redelivery" in each.name])


def redelivery_error() -> IllegalStateError:
    return IllegalStateError("something that no call waits for")


@pytest.mark.parametrize("entered", [True, False], ids=["while it waits", "as it comes"])
def test_closing_and_receiving_at_once_never_hangs(background: Background, bench: Bench, entered: bool) -> None:
    session, consumer = bench.consuming(AckMode.CLIENT)

    def receive_or_late() -> object:
        try:
            return consumer.receive(SOON)
        except IllegalStateError as error:
            return str(error)

    waiting = background.start(receive_or_late)
    if entered:
        eventually(lambda: bench.waits(session))
    session.close()
    outcome = waiting()
    assert outcome is None or (not entered and "closed" in str(outcome))
