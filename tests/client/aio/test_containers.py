"""The listener container of tasks, on the embedded broker by each protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
from tests.client.gated import QUICK, Site
from tests.client.shell import SOON

from redelivery import ConnectionLostError, DeadLetter, Drop, RedeliveryPolicy, Retry, SharedDeadLetterStrategy, aio
from redelivery.broker import EmbeddedBroker

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
