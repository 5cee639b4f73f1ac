"""The listener container of tasks, on the embedded broker by each protocol."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
from tests.client.gated import QUICK, Site
from tests.client.shell import SOON

from redelivery import (
    ConfigError,
    ConnectionLostError,
    DeadLetter,
    Drop,
    RedeliveryPolicy,
    Retry,
    SharedDeadLetterStrategy,
    aio,
)
from redelivery.broker import EmbeddedBroker
from redelivery.client.containers import base, plan

FAST = RedeliveryPolicy(initial_redelivery_delay=0.01, redelivery_delay=0.01, maximum_redeliveries=2)
DEAD = "dead"
Work = Callable[[aio.Connection], Awaitable[None]]


@pytest.fixture(params=["vm", "stomp", "amqp"])
def served(request: pytest.FixtureRequest) -> Iterator[tuple[EmbeddedBroker, str]]:
    if request.param == "amqp":
        pytest.importorskip("proton")
    ports: dict[str, Any] = {} if request.param == "vm" else {f"{request.param}_port": 0}
    with EmbeddedBroker(f"containers-{uuid4().hex}", **ports) as broker:
        yield broker, getattr(broker, f"{request.param}_url")


def run(url: str, work: Work, **options: Any) -> None:
    async def main() -> None:
        options.setdefault("redelivery_policy", FAST)
        strategy = SharedDeadLetterStrategy(dead_letter_queue=DEAD)
        async with await aio.connect(url, dead_letter_strategy=strategy, **options) as connection:
            await work(connection)

    asyncio.run(main(), debug=True)


async def eventually(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON):
        while not holds():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("mode", ["transacted", "client"])
def test_a_handler_decides(served: tuple[EmbeddedBroker, str], mode: str) -> None:
    broker, url = served
    got: list[Any] = []

    async def handler(message: aio.Message, session: aio.Session) -> object:
        got.append((message.body, message.delivery_count))
        assert isinstance(session, aio.Session)
        await asyncio.sleep(0)
        match message.body:
            case "dead":
                raise DeadLetter("cancelled")
            case "drop":
                return Drop("a test")
            case "fails":
                raise ValueError("no such product")
            case "retry" if message.delivery_count == 1:
                return Retry(after=0.02)
        return f"answer to {message.body}"

    async def work(connection: aio.Connection) -> None:
        async with connection.listener_container("orders", handler, ack_mode=mode) as container:
            await eventually(lambda: broker.queue_depth("orders") == 0 and container.counters.in_flight == 0)
            counters = container.counters
            assert (counters.succeeded, counters.failed, counters.given_up) == (2, 4, 1)
            assert (counters.dropped, counters.replied) == (1, 1)
            assert container.healthy
        assert not container.healthy

    for body in ("dead", "drop", "fails", "retry"):
        broker.send("orders", body)
    broker.send("orders", "asked", reply_to="answers")
    run(url, work)
    assert [message.body for message in broker.messages("answers")] == ["answer to asked"]
    assert {message.body for message in broker.messages(DEAD)} == {"dead", "fails"}
    assert [count for body, count in got if body == "fails"] == [1, 2, 3]


def test_workers_are_tasks_and_drain_waits_for_them(served: tuple[EmbeddedBroker, str]) -> None:
    broker, url = served

    async def work(connection: aio.Connection) -> None:
        together, go_on = asyncio.Barrier(3), asyncio.Event()

        async def handler(_: aio.Message) -> None:
            await together.wait()
            await go_on.wait()

        container = connection.listener_container("orders", handler, concurrency=3, prefetch=1)
        await container.start()
        await eventually(lambda: container.counters.in_flight == 3)
        assert not await container.drain(timeout=0)
        go_on.set()
        assert await container.drain(timeout=SOON)
        assert container.counters.succeeded == 3

    for body in "abcde":
        broker.send("orders", body)
    run(url, work)
    assert len(broker.messages("orders")) == 2


def test_stop_cancels_handlers_and_loses_nothing(served: tuple[EmbeddedBroker, str]) -> None:
    broker, url = served

    async def work(connection: aio.Connection) -> None:
        entered = asyncio.Event()

        async def handler(_: aio.Message) -> None:
            entered.set()
            await asyncio.sleep(3600)

        container = connection.listener_container("orders", handler)
        await container.start()
        await entered.wait()
        await container.stop()
        assert container.counters.workers == container.counters.in_flight == 0

    broker.send("orders", "kept")
    run(url, work)
    assert [message.body for message in broker.messages("orders")] == ["kept"]


def test_it_lives_through_a_lost_connection(served: tuple[EmbeddedBroker, str]) -> None:
    scheme = served[1].partition(":")[0]
    if scheme == "vm":
        pytest.skip("within one process there is none to lose")
    got: list[Any] = []

    async def handler(message: aio.Message) -> None:
        got.append(message.body)

    with ExitStack() as opened:
        site = Site(scheme, opened)

        async def work(connection: aio.Connection) -> None:
            async with connection.listener_container("orders", handler, concurrency=2):
                for number in range(30):
                    await asyncio.to_thread(site.broker.send, "orders", str(number))
                    if number % 10 == 5:
                        site.gate.shut(0.05)
                await eventually(lambda: site.broker.queue_depth("orders") == 0)

        run(site.url, work, reconnect=QUICK)
    assert set(got) == set(map(str, range(30)))


def test_it_ends_with_a_connection_that_does_not_come_back(served: tuple[EmbeddedBroker, str]) -> None:
    broker, url = served

    async def handler(_: aio.Message) -> None: ...

    async def work(connection: aio.Connection) -> None:
        container = connection.listener_container("orders", handler)
        await container.start()
        await asyncio.to_thread(broker.close)
        await eventually(lambda: container.counters.workers == 0)
        with pytest.raises(ConnectionLostError):
            container.check_ended()

    run(url, work)


def test_a_handler_may_take_a_producer(served: tuple[EmbeddedBroker, str]) -> None:
    broker, url = served

    async def handler(message: aio.Message, *, producer: aio.Producer) -> None:
        await producer.send(f"of {message.body}", "out")

    async def work(connection: aio.Connection) -> None:
        async with connection.listener_container("orders", handler):
            await eventually(lambda: broker.queue_depth("out") == 1)

    broker.send("orders", "x")
    run(url, work)
    assert [message.body for message in broker.messages("out")] == ["of x"]


def test_what_a_handler_may_take_is_named_as_it_is_imported(served: tuple[EmbeddedBroker, str]) -> None:
    async def handler(message: aio.Message, size: int) -> None: ...

    async def work(connection: aio.Connection) -> None:
        with pytest.raises(ConfigError, match=r"one of aio\.Session, aio\.Message, Message, aio\.Producer, or leave"):
            connection.listener_container("orders", handler)

    run(served[1], work)


def test_workers_are_added_for_a_backlog_and_let_go_after_it(
    served: tuple[EmbeddedBroker, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker, url = served
    monkeypatch.setattr(plan, "IDLE", 0.02)
    monkeypatch.setattr(base, "POLL", 0.01)

    async def work(connection: aio.Connection) -> None:
        together, passed = asyncio.Barrier(3), asyncio.Event()

        async def handler(_: aio.Message) -> None:
            await together.wait()
            await passed.wait()

        async with connection.listener_container("orders", handler, concurrency=(1, 3), prefetch=1) as container:
            await eventually(lambda: container.counters.in_flight == container.counters.workers == 3)
            passed.set()
            await eventually(lambda: broker.queue_depth("orders") == 0 and container.counters.workers == 1)
            assert container.healthy

    for _ in range(6):  # a worker that has one in hand has been pushed another
        broker.send("orders", "meet")
    run(url, work)


def test_a_worker_takes_a_new_session_after_so_many(served: tuple[EmbeddedBroker, str]) -> None:
    broker, url = served
    sessions: list[aio.Session] = []

    async def handler(_: aio.Message, session: aio.Session) -> None:
        if session not in sessions:
            sessions.append(session)

    async def work(connection: aio.Connection) -> None:
        async with connection.listener_container("orders", handler, max_messages_per_task=2):
            await eventually(lambda: broker.queue_depth("orders") == 0)
            assert len(sessions) == 3
            await eventually(lambda: all(session.closed for session in sessions))

    for body in "abcdef":
        broker.send("orders", body)
    run(url, work)


def test_a_deadline_ends_the_attempts(served: tuple[EmbeddedBroker, str]) -> None:
    broker, url = served
    patient = RedeliveryPolicy(initial_redelivery_delay=0.01, redelivery_delay=0.01, maximum_redeliveries=1000)

    async def handler(_: aio.Message) -> None:
        raise ValueError("always")

    async def work(connection: aio.Connection) -> None:
        async with connection.listener_container("orders", handler, deadline=0.05, outage_after=None) as container:
            await eventually(lambda: container.counters.given_up == 1)
            assert container.counters.failed >= 1

    broker.send("orders", "late")
    run(url, work, redelivery_policy=patient)
    (letter,) = broker.messages(DEAD)
    assert "the deadline of 0.05 s for all attempts has passed" in str(letter.properties["dlqDeliveryFailureCause"])


def test_a_body_that_does_not_convert_is_a_dead_letter_at_once(served: tuple[EmbeddedBroker, str]) -> None:
    broker, url = served
    got: list[Any] = []

    async def handler(order: dict[str, int]) -> None:
        got.append(order["id"])

    async def work(connection: aio.Connection) -> None:
        async with connection.listener_container("orders", handler, body_type=dict):
            await eventually(lambda: broker.queue_depth("orders") == 0)

    for body in ('{"id": 1}', "{", '{"id": 2}'):
        broker.send("orders", body)
    run(url, work)
    assert (got, [message.body for message in broker.messages(DEAD)]) == ([1, 2], ["{"])


def test_its_health_says_how_often_what_is_in_hand_was_tried(served: tuple[EmbeddedBroker, str]) -> None:
    broker, url = served

    async def work(connection: aio.Connection) -> None:
        passes = asyncio.Event()

        async def handler(message: aio.Message) -> None:
            if message.delivery_count < 3:
                raise ValueError("not yet")
            await passes.wait()

        async with connection.listener_container("orders", handler) as container:
            assert container.attempts == 0
            await eventually(lambda: container.attempts == 3)
            passes.set()
            await eventually(lambda: container.attempts == 0)

    broker.send("orders", "x")
    run(url, work)


def test_a_plain_function_is_a_failure_that_says_so(served: tuple[EmbeddedBroker, str]) -> None:
    broker, url = served

    async def work(connection: aio.Connection) -> None:
        container = connection.listener_container("orders", lambda _: None)
        await container.start()
        await eventually(lambda: broker.queue_depth(DEAD) == 1)
        assert "cannot be awaited" in str(container.last_error)
        await container.drain()

    broker.send("orders", "x")
    run(url, work)


def test_a_connection_that_the_application_closes_is_no_trouble(
    served: tuple[EmbeddedBroker, str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "PAUSE", 0.01)  # after which a worker sees that its connection is closed

    async def handler(_: aio.Message) -> None: ...

    async def main() -> None:
        for _ in range(5):
            connection = await aio.connect(served[1])
            container = connection.listener_container("orders", handler, concurrency=3)
            await container.start()
            await connection.close()
            await eventually(lambda container=container: container.counters.workers == 0)  # type: ignore[misc]  # bound

    asyncio.run(main())
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []
