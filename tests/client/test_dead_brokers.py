"""A broker that goes while nobody reads, without a ReconnectPolicy: it does not look alive, and hands nothing out."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
from tests.client.aio.looped import run
from tests.client.shell import SOON, eventually, receive

import redelivery
from redelivery import ConnectionLostError, Message
from redelivery.broker import EmbeddedBroker

MODES = pytest.mark.parametrize("mode", ["auto", "dups_ok", "client", "individual", "transacted"])


@pytest.fixture(params=["vm", "stomp", "amqp"])
def place(request: pytest.FixtureRequest, opened: ExitStack) -> tuple[EmbeddedBroker, str]:
    """A broker, which a test closes, and its URL."""
    if request.param == "amqp":
        pytest.importorskip("proton")
    ports: dict[str, Any] = {} if request.param == "vm" else {f"{request.param}_port": 0}
    broker = opened.enter_context(EmbeddedBroker(f"dead-{uuid4().hex}", **ports))
    for number in range(4):
        broker.send("orders", f"{number}")
    return broker, getattr(broker, f"{request.param}_url")


@MODES
def test_every_call_raises_and_nothing_prefetched_is_dispatched(
    place: tuple[EmbeddedBroker, str], opened: ExitStack, mode: str
) -> None:
    broker, url = place
    connection = opened.enter_context(redelivery.connect(url, exception_listener=lambda _: None))
    session, publisher = connection.session(mode), connection.publisher()
    consumer, producer = session.consumer("orders"), session.producer("other")
    publisher.send("x", "other")
    first = receive(consumer)
    broker.close()
    eventually(lambda: not connection.connected)
    calls: list[Callable[[], object]] = [
        lambda: consumer.receive(timeout=0.1),
        lambda: consumer.receive(timeout=0),
        consumer.receive,
        consumer.receive_nowait,
        lambda: consumer.receive_many(3, 0.1),
        lambda: consumer.receive_body(str, 0.1),
        lambda: next(iter(consumer)),
        lambda: consumer.listen(lambda _: None),
        lambda: producer.send("x"),
        lambda: producer.send("x", persistent=False),
        lambda: producer.send_async("x"),
        lambda: publisher.send("x", "other"),
        lambda: session.producer("other"),
        lambda: session.consumer("other"),
        lambda: list(session.browser("orders")),
        session.temporary_queue,
        connection.session,
        connection.publisher,
        lambda: connection.request("other", "x", timeout=1),
        lambda: connection.wait(1),
    ]
    if mode in ("client", "individual"):
        calls += [first.acknowledge, session.recover]
    if mode == "client":
        calls += [session.acknowledge]
    if mode == "transacted":
        calls += [session.commit, session.rollback]
    for call in calls:
        with pytest.raises(ConnectionLostError):
            call()


@MODES
def test_every_call_of_a_task_raises_and_nothing_prefetched_is_dispatched(
    place: tuple[EmbeddedBroker, str], mode: str
) -> None:
    async def work() -> None:
        broker, url = place
        async with await redelivery.aio.connect(url, exception_listener=lambda _: None) as connection:
            session, publisher = await connection.session(mode), await connection.publisher()
            consumer, producer = await session.consumer("orders"), await session.producer("other")
            await publisher.send("x", "other")
            first = await consumer.receive(timeout=SOON)
            assert first is not None
            await asyncio.to_thread(broker.close)
            while connection.connected:
                await asyncio.sleep(0.01)
            calls: list[Callable[[], Any]] = [
                lambda: consumer.receive(timeout=0.1),
                consumer.receive_nowait,
                lambda: consumer.receive_many(3, 0.1),
                lambda: producer.send("x"),
                lambda: producer.send("x", persistent=False),
                lambda: publisher.send("x", "other"),
                lambda: session.consumer("other").__aenter__(),
                lambda: connection.session().__aenter__(),
            ]
            if mode in ("client", "individual"):
                calls += [first.acknowledge, session.recover]
            if mode == "transacted":
                calls += [session.commit, session.rollback]
            for call in calls:
                with pytest.raises(ConnectionLostError):
                    await call()

    run(work())


@MODES
def test_no_listener_is_called_with_what_was_prefetched(
    place: tuple[EmbeddedBroker, str], opened: ExitStack, mode: str
) -> None:
    broker, url = place
    connection = opened.enter_context(redelivery.connect(url, exception_listener=lambda _: None))
    heard: list[object] = []
    there, returns = threading.Event(), threading.Event()

    def hear(message: Message) -> None:
        heard.append(message.body)
        there.set()
        assert returns.wait(SOON)

    connection.session(mode).consumer("orders").listen(hear)
    assert there.wait(SOON)
    broker.close()
    eventually(lambda: not connection.connected)
    returns.set()
    eventually(lambda: "redelivery-listener" not in {each.name for each in threading.enumerate()})
    assert heard == ["0"]


@MODES
def test_no_task_that_listens_is_called_with_what_was_prefetched(place: tuple[EmbeddedBroker, str], mode: str) -> None:
    async def work() -> None:
        broker, url = place
        heard: list[object] = []
        there, returns = asyncio.Event(), asyncio.Event()

        async def hear(message: redelivery.aio.Message) -> None:
            heard.append(message.body)
            there.set()
            await returns.wait()

        async with await redelivery.aio.connect(url, exception_listener=lambda _: None) as connection:
            await (await (await connection.session(mode)).consumer("orders")).listen(hear)
            await there.wait()
            await asyncio.to_thread(broker.close)
            while connection.connected:
                await asyncio.sleep(0.01)
            returns.set()
            with pytest.raises(ConnectionLostError):
                await connection.wait(SOON)
            await asyncio.sleep(0.05)
        assert heard == ["0"]

    run(work())
