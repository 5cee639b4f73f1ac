"""How a thread drives a flow: answers, refusals, time-outs, a loss and interrupts reach it in its own place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import pytest

from redelivery.client.session.epoch import Bare
from redelivery.client.sync.driver import run
from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError
from redelivery.transports.seam import Flow, InterruptedWait, Pending, Transport
from redelivery.transports.wire.threads.waiter import ThreadWaiter


class FakeTransport:
    """Its wait does what the test says, instead of waiting."""

    def __init__(self, on_wait: Callable[[], None]) -> None:
        self.on_wait = on_wait
        self.waits: list[float | None] = []

    def wait(self, waiter: ThreadWaiter, timeout: float | None) -> None:  # noqa: ARG002 - the seam's signature
        self.waits.append(timeout)
        self.on_wait()


class ScriptedContext:
    """A flow of two requests, which notes what happens to it."""

    def __init__(self) -> None:
        self.requests = [Pending(), Pending()]
        self.seen: list[object] = []

    def flow(self) -> Flow[str]:
        try:
            for request in self.requests:
                yield request
                if request.error is not None:
                    raise request.error
                self.seen.append(request.value)
        except JMSError as error:
            self.seen.append(type(error))
            raise
        finally:
            self.seen.append("cleaned up")
        return "done"

    def drive(self, on_wait: Callable[[], None], timeout: float = 5.0) -> Any:
        self.transport = FakeTransport(on_wait)
        return run(self.flow(), Bare(cast(Transport, self.transport)), ThreadWaiter(), timeout)


def nothing() -> None:
    pass


def test_answers_that_are_there_already_need_no_wait() -> None:
    session = ScriptedContext()
    for value, request in enumerate(session.requests):
        request.complete(value)
    assert session.drive(nothing) == "done"
    assert session.seen == [0, 1, "cleaned up"]
    assert session.transport.waits == []


def test_each_answer_is_waited_for_in_turn() -> None:
    session = ScriptedContext()
    answers = iter(session.requests)
    assert session.drive(lambda: next(answers).complete("yes")) == "done"
    assert session.seen == ["yes", "yes", "cleaned up"]
    assert len(session.transport.waits) == 2


class Impatient(Pending):
    """A request that a peer may miss."""

    patience = 0.01

    def __init__(self, needed: int) -> None:
        super().__init__()
        self.needed = needed

    def ask_again(self) -> None:
        self.needed -= 1
        if self.needed == 0:
            self.complete("at last")


def test_a_request_that_may_have_been_missed_is_made_again_until_it_is_answered() -> None:
    session = ScriptedContext()
    session.requests = [Impatient(3)]
    assert session.drive(partial(time.sleep, 0.011)) == "done"
    assert session.seen == ["at last", "cleaned up"]
    assert all(timeout is not None and timeout < 0.011 for timeout in session.transport.waits)


def test_however_often_it_is_made_again_the_time_out_counts_from_the_first() -> None:
    session = ScriptedContext()
    session.requests = [Impatient(1000)]
    with pytest.raises(RequestTimeoutError, match=r"within 0\.1 s"):
        session.drive(partial(time.sleep, 0.011), timeout=0.1)


def test_a_spurious_wake_is_no_answer() -> None:
    session = ScriptedContext()
    wakes: Iterator[Callable[[], None]] = iter(
        [nothing, nothing, partial(session.requests[0].complete, 1), nothing, partial(session.requests[1].complete, 2)]
    )
    assert session.drive(lambda: next(wakes)()) == "done"
    assert len(session.transport.waits) == 5


def test_a_refusal_is_raised_by_the_flow_itself() -> None:
    session = ScriptedContext()
    with pytest.raises(JMSError, match="queue is full"):
        session.drive(lambda: session.requests[0].fail(JMSError("queue is full")))
    assert session.seen == [JMSError, "cleaned up"]


def test_no_answer_in_time_is_thrown_into_the_flow() -> None:
    session = ScriptedContext()
    with pytest.raises(RequestTimeoutError, match=r"did not answer within 0\.02 s"):
        session.drive(nothing, timeout=0.02)
    assert session.seen == [RequestTimeoutError, "cleaned up"]


def test_a_request_time_out_is_a_timeout_error_too() -> None:
    with pytest.raises(TimeoutError):
        ScriptedContext().drive(nothing, timeout=0)


def test_no_wait_is_longer_than_the_time_out() -> None:
    session = ScriptedContext()
    answers = iter(session.requests)
    session.drive(lambda: next(answers).complete(), timeout=7.0)
    assert all(wait is not None and 0 < wait <= 7.0 for wait in session.transport.waits)


def test_the_flow_may_turn_a_time_out_into_a_result() -> None:
    request = Pending()

    def flow() -> Flow[str]:
        try:
            yield request
        except RequestTimeoutError:
            return "gave up"
        return "answered"

    assert run(flow(), Bare(cast(Transport, FakeTransport(nothing))), ThreadWaiter(), 0.0) == "gave up"


def test_a_lost_connection_is_thrown_into_the_flow() -> None:
    session = ScriptedContext()

    def lose() -> None:
        raise ConnectionLostError("gone")

    with pytest.raises(ConnectionLostError, match="gone"):
        session.drive(lose)
    assert session.seen == [ConnectionLostError, "cleaned up"]


def test_an_answer_that_came_with_the_loss_counts() -> None:
    """The transport fails what is pending before it raises; an answer that was there stays an answer."""
    session = ScriptedContext()
    session.requests[1].complete("second")

    def answer_and_lose() -> None:
        session.requests[0].complete("first")
        raise ConnectionLostError("gone")

    assert session.drive(answer_and_lose) == "done"
    assert session.seen == ["first", "second", "cleaned up"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_reaches_the_flow_as_a_time_out_and_goes_on(interrupt: type[BaseException]) -> None:
    session = ScriptedContext()

    def stop() -> None:
        raise interrupt

    with pytest.raises(interrupt):
        session.drive(stop)
    assert session.seen == [InterruptedWait, "cleaned up"]


def test_an_interrupted_flow_that_wants_to_go_on_is_closed() -> None:
    ended = []

    def flow() -> Flow[None]:
        try:
            try:
                yield Pending()
            except RequestTimeoutError:
                yield Pending()  # an undo that needs an answer too
        finally:
            ended.append(True)

    def stop() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(flow(), Bare(cast(Transport, FakeTransport(stop))), ThreadWaiter(), 5.0)
    assert ended == [True]


def test_a_flow_without_requests_gives_its_value() -> None:
    def flow() -> Flow[int]:
        return 42
        yield Pending()  # unreachable: it makes this a generator

    assert run(flow(), Bare(cast(Transport, FakeTransport(nothing))), ThreadWaiter(), 5.0) == 42


class TestPending:
    """The answer to one request."""

    def test_it_is_done_once(self) -> None:
        pending = Pending()
        pending.complete(1)
        pending.fail(JMSError("late"))
        pending.complete(2)
        assert (pending.value, pending.error, pending.done) == (1, None, True)

    def test_it_notifies_and_wakes_after_it_is_done(self) -> None:
        reported: list[bool] = []

        class Sleeper:
            place: object = None
            awaits = False

            def wake(self) -> None:
                reported.append(pending.done)

        pending = Pending(Sleeper(), lambda each: reported.append(each.done))
        pending.fail(JMSError("no"))
        assert reported == [True, True]
