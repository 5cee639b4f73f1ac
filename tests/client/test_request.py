"""`connection.request`, for threads and asyncio: what is matched, what is late, and what a loss or a close does."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from tests.client.gated import QUICK, Site
from tests.client.shell import SOON, Background, eventually
from tests.conformance.blocking import Shell

import redelivery
from redelivery import (
    ConfigError,
    ConnectionLostError,
    IllegalStateError,
    InvalidDestinationError,
    Message,
    RequestTimeoutError,
    TemporaryQueue,
    UnsupportedError,
)
from redelivery.broker import EmbeddedBroker
from redelivery.events import ConnectionLost, Event, Reconnected
from redelivery.testing import fast_forward


@pytest.fixture
def connection(redelivery_broker: EmbeddedBroker, shell: Shell) -> Any:
    return shell.connect(redelivery_broker.vm_url)


@pytest.fixture
def background() -> Background:
    return Background()


def serve(url: str, opened: ExitStack, answer: Callable[[Message, Any], None]) -> None:
    """A server of ``prices`` that gives each request, and its session, to ``answer``."""
    session = opened.enter_context(redelivery.connect(url)).session()
    session.consumer("prices").listen(lambda request: answer(request, session))


def echo(request: Message, session: redelivery.Session) -> None:
    session.producer().send(f"re: {request.body}", request.reply_to, correlation_id=request.correlation_id)


def test_a_reply(connection: redelivery.Connection, redelivery_broker: EmbeddedBroker, opened: ExitStack) -> None:
    seen: list[Message] = []

    def answer(request: Message, session: redelivery.Session) -> None:
        seen.append(request)
        echo(request, session)

    serve(redelivery_broker.vm_url, opened, answer)
    reply = connection.request("prices", "a chair", timedelta(seconds=SOON), properties={"shop": 7}, priority=9)
    assert reply.body == "re: a chair"
    (request,) = seen
    assert reply.correlation_id == request.correlation_id
    assert isinstance(request.reply_to, TemporaryQueue)
    assert (request.properties["shop"], request.priority) == (7, 9)
    assert request.expiration is not None
    assert request.timestamp is not None
    assert request.expiration - request.timestamp == timedelta(seconds=SOON)
    again = connection.request("prices", Message({"n": 1}), SOON, correlation_id="mine", ttl=0)
    assert (seen[1].correlation_id, seen[1].expiration, seen[1].reply_to) == ("mine", None, request.reply_to)
    assert again.correlation_id == "mine"


def test_many_in_flight_from_many_threads_each_get_their_own(
    connection: redelivery.Connection, redelivery_broker: EmbeddedBroker, opened: ExitStack
) -> None:
    waiting: list[Message] = []

    def answer_backwards(request: Message, session: redelivery.Session) -> None:
        waiting.append(request)
        if len(waiting) == 20:
            for each in reversed(waiting):
                echo(each, session)

    serve(redelivery_broker.vm_url, opened, answer_backwards)
    with ThreadPoolExecutor(20) as pool:
        replies = list(pool.map(lambda n: connection.request("prices", str(n), SOON).body, range(20)))
    assert replies == [f"re: {n}" for n in range(20)]
    assert len({request.reply_to for request in waiting}) == 1


def test_a_late_reply_is_dropped_and_counted(
    connection: redelivery.Connection,
    redelivery_broker: EmbeddedBroker,
    opened: ExitStack,
    caplog: pytest.LogCaptureFixture,
) -> None:
    late = threading.Event()

    def answer(request: Message, session: redelivery.Session) -> None:
        if request.body == "slow":
            late.wait(SOON)
        echo(request, session)
        session.producer().send("of nobody's", request.reply_to)

    serve(redelivery_broker.vm_url, opened, answer)
    caplog.set_level(logging.DEBUG, "redelivery.client.connection.replies")
    with pytest.raises(RequestTimeoutError, match=r"no reply came from prices within 0\.02 s"):
        connection.request("prices", "slow", 0.02, ttl=SOON)
    assert connection.late_reply_count == 0
    late.set()
    assert connection.request("prices", "quick", SOON).body == "re: quick"
    eventually(lambda: sum("dropped a reply" in record.message for record in caplog.records) == 3)
    assert connection.late_reply_count == 3


def test_a_request_that_nobody_waits_for_expires(
    connection: redelivery.Connection, redelivery_broker: EmbeddedBroker, background: Background
) -> None:
    with fast_forward(redelivery_broker) as clock:
        result = background.start(lambda: connection.request("prices", "a chair", 3600))
        redelivery_broker.wait_for("prices", depth=1, timeout=SOON)
        clock.advance(3601)
        with pytest.raises(RequestTimeoutError, match="within 3600 s"):
            result()
        assert redelivery_broker.queue_depth("prices") == 0


def test_what_cannot_be_asked(connection: redelivery.Connection, redelivery_broker: EmbeddedBroker) -> None:
    ask: Any = connection.request
    with pytest.raises(ConfigError, match="reply_to"):
        ask("prices", "x", 1, reply_to="replies")
    with pytest.raises(ConfigError, match="timeout"):
        ask("prices", "x", None)
    with pytest.raises(TypeError, match="did you mean 'properties'"):
        ask("prices", "x", 1, headers={})
    with pytest.raises(InvalidDestinationError):
        ask("/queue/prices", "x", 1)
    connection.stop()
    with pytest.raises(IllegalStateError, match=r"start\(\) it first"):
        ask("prices", "x", 1)
    connection.close()
    with pytest.raises(IllegalStateError, match=r"closed by close\(\)"):
        ask("prices", "x", 1)
    assert redelivery_broker.queue_depth("prices") == 0


def test_one_correlation_id_at_a_time(
    connection: redelivery.Connection, redelivery_broker: EmbeddedBroker, background: Background
) -> None:
    result = background.start(lambda: connection.request("prices", "x", SOON, correlation_id="1"))
    redelivery_broker.wait_for("prices", depth=1, timeout=SOON)
    with pytest.raises(IllegalStateError, match="correlation_id='1'"):
        connection.request("prices", "x", 1, correlation_id="1")
    connection.close()
    with pytest.raises(IllegalStateError, match="before the reply came"):
        result()


def test_a_broker_without_temporary_queues_is_said_to_have_none(
    connection: redelivery.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def temporary(*_: object) -> Iterator[object]:
        raise UnsupportedError("this broker makes no TemporaryQueue")
        yield

    with monkeypatch.context() as patched:
        patched.setattr(connection._core.transport.__class__, "temporary", temporary)
        with pytest.raises(UnsupportedError, match="no TemporaryQueue"):
            connection.request("prices", "x", 1)
    with pytest.raises(RequestTimeoutError):  # nothing of that attempt is left
        connection.request("prices", "x", 0.01)


def test_a_loss_fails_those_in_flight_and_the_next_goes_over_the_new_connection(
    opened: ExitStack, background: Background, shell: Shell
) -> None:
    pytest.importorskip("proton")
    site = Site("amqp", opened)
    events: list[Event] = []
    connection = shell.connect(site.url, reconnect=QUICK, observer=events.append)
    for round_ in range(1, 4):
        result = background.start(lambda: connection.request("unserved", "x", SOON))
        site.broker.wait_for("unserved", depth=round_, timeout=SOON)
        site.gate.shut(0.05)
        with pytest.raises(ConnectionLostError, match="before the reply came"):
            result()
        eventually(lambda: sum(isinstance(each, ConnectionLost) for each in events) == round_)  # noqa: B023  # at once
        # while it is being connected again, or after that
        serving = ExitStack()
        serve(site.broker.vm_url, serving, echo)
        assert connection.request("prices", "x", SOON).body == "re: x"
        serving.close()
    assert sum(isinstance(each, Reconnected) for each in events) == 3


def test_a_request_waits_for_the_connection_no_longer_than_it_may(opened: ExitStack, shell: Shell) -> None:
    pytest.importorskip("proton")
    site = Site("amqp", opened)
    connection = shell.connect(site.url, reconnect=QUICK)
    site.gate.shut()
    eventually(lambda: not connection.connected)
    with pytest.raises(RequestTimeoutError, match="has not come back"):
        connection.request("prices", "x", 0.05)


def test_a_connection_that_does_not_come_back_says_so(opened: ExitStack, background: Background) -> None:
    pytest.importorskip("proton")
    site = Site("amqp", opened)
    connection = opened.enter_context(redelivery.connect(site.url))
    result = background.start(lambda: connection.request("prices", "x", SOON))
    site.broker.wait_for("prices", depth=1, timeout=SOON)
    site.gate.shut()
    with pytest.raises(ConnectionLostError, match="before the reply came"):
        result()
    with pytest.raises(ConnectionLostError):
        connection.request("prices", "x", SOON)


def test_a_request_that_is_cancelled_or_whose_connection_closes(
    redelivery_broker: EmbeddedBroker, opened: ExitStack
) -> None:
    waiting: list[Message] = []

    def answer(request: Message, session: redelivery.Session) -> None:
        waiting.append(request)
        if len(waiting) == 2:
            for each in reversed(waiting):
                echo(each, session)

    serve(redelivery_broker.vm_url, opened, answer)

    async def main() -> None:
        async with await redelivery.aio.connect(redelivery_broker.vm_url) as connection:
            cancelled = asyncio.create_task(connection.request("prices", "cancelled", SOON))
            while not waiting:
                await asyncio.sleep(0.001)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            assert (await connection.request("prices", "x", SOON)).body == "re: x"
            async with asyncio.timeout(SOON):
                while connection.late_reply_count < 1:
                    await asyncio.sleep(0.001)
            asking = asyncio.create_task(connection.request("unserved", "x", SOON))
            while not redelivery_broker.queue_depth("unserved"):
                await asyncio.sleep(0.001)
            await connection.close()
            with pytest.raises(IllegalStateError, match="before the reply came"):
                await asking

    asyncio.run(main())
