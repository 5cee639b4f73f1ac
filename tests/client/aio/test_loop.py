"""What a program of asyncio relies on: the loop goes on, no thread is needed, and misuse is an error that says so."""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import threading
import time
import uuid
import warnings
from typing import Any

import pytest
from tests.client.aio.cancellation.cancelled import SOON, soon
from tests.client.aio.looped import run

import redelivery
from redelivery import ConfigError, IllegalStateError, aio
from redelivery.broker import EmbeddedBroker


@pytest.mark.parametrize("sessions", [50, pytest.param(1000, marks=pytest.mark.long_form)])
@pytest.mark.parametrize("url", ["vm", "amqp"], indirect=True)  # over STOMP each has a socket: see the next test
def test_many_sessions_wait_on_one_loop_without_a_thread(url: str, sessions: int) -> None:
    async def work() -> None:
        before = set(threading.enumerate())
        async with aio.connect(url) as connection:
            consumers = []
            for number in range(sessions):
                session = await connection.session()
                consumers.append(await session.consumer(f"of.{number}"))
            async with asyncio.TaskGroup() as group:
                waiting = [group.create_task(soon(consumer, 50)) for consumer in consumers]  # all are sent meanwhile
                await asyncio.sleep(0)
                assert set(threading.enumerate()) <= before
                async with connection.session() as session, session.producer() as producer:
                    for number in range(sessions):
                        await producer.send(str(number), f"of.{number}")
            assert [each.result().body for each in waiting] == [str(number) for number in range(sessions)]
            assert set(threading.enumerate()) <= before

    run(work())


def test_sessions_with_a_socket_each_need_no_thread_either(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        before = set(threading.enumerate())
        async with aio.connect(broker.stomp_url) as connection, asyncio.TaskGroup() as group:
            for number in range(100):
                group.create_task(_sends_and_receives(connection, f"of.{number}"))
            assert set(threading.enumerate()) <= before

    run(work())


async def _sends_and_receives(connection: aio.Connection, queue: str) -> None:
    async with connection.session("transacted") as session:
        producer = await session.producer(queue)
        await producer.send("a")
        await session.commit()
        consumer = await session.consumer(queue)
        assert (await soon(consumer)).body == "a"
        await session.commit()


def test_a_time_out_of_the_loops_own_ends_a_receive_which_takes_nothing_with_it(url: str) -> None:
    async def work() -> None:
        async with aio.connect(url) as connection, connection.session() as session:
            consumer = await session.consumer("in")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await consumer.receive()
            producer = await session.producer("in")
            await producer.send("a")
            message = await soon(consumer)
            assert (message.body, message.redelivered) == ("a", False)

    run(work())


def test_who_asks_for_what_is_there_again_and_again_does_not_stop_the_loop(url: str) -> None:
    async def work() -> None:
        async with aio.connect(url) as connection, connection.session() as session, connection.session() as other:
            consumer, producer = await session.consumer("in"), await other.producer("in")
            sending = asyncio.create_task(producer.send("a"))
            while await consumer.receive_nowait() is None:
                pass
            await sending

    run(work())


def test_calls_from_another_thread_are_refused(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        async with aio.connect(broker.stomp_url) as connection, connection.session() as session:
            consumer = await session.consumer("in")
            producer = await session.producer("in")
            browser = await session.browser("in")
            assert [message async for message in browser] == []

            def elsewhere(make: Any) -> None:
                with pytest.raises(IllegalStateError, match="event loop of another thread"):
                    asyncio.run(_await(make))

            for make in (
                lambda: consumer.receive(0),
                lambda: producer.send("a"),
                lambda: consumer.close(),
                lambda: browser.close(),
                lambda: session.close(),
                lambda: connection.session(),
                lambda: connection.close(),
                lambda: connection.wait(0),
            ):
                await asyncio.to_thread(elsewhere, make)
            assert connection.connected
            assert not consumer.closed
            assert not browser.closed

    run(work())


async def _await(make: Any) -> Any:
    return await make()


class Listener:
    def __init__(self) -> None:
        self.seen: list[Any] = []
        self.came = asyncio.Event()

    async def __call__(self, message: aio.Message, *, note: str = "") -> None:
        self.seen.append((message.body, note))
        self.came.set()

    def plain(self, message: aio.Message) -> None: ...


def test_listen_takes_whatever_gives_a_coroutine_and_refuses_what_would_block(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        async with aio.connect(broker.vm_url) as connection, connection.session() as session:
            consumer = await session.consumer("in")
            async with connection.publisher() as publisher:
                listener = Listener()
                for callback in (
                    listener,
                    listener.__call__,
                    functools.partial(listener, note="a"),
                    lambda message: listener(message),
                ):
                    listener.came.clear()
                    await consumer.listen(callback)
                    await publisher.send("a", "in")
                    await asyncio.wait_for(listener.came.wait(), SOON)
                    await consumer.listen(None)
            for wrong in (listener.plain, functools.partial(listener.plain), 3):
                with pytest.raises(ConfigError, match="async def"):
                    await consumer.listen(wrong)  # type: ignore[arg-type]  # which is the point

    run(work())


def test_a_callback_that_stays_is_cancelled_by_the_close_and_its_message_comes_again(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        async with aio.connect(broker.stomp_url, close_timeout=0.2) as connection:
            session = await connection.session()
            entered = asyncio.Event()

            async def stays(_: aio.Message) -> None:
                entered.set()
                await asyncio.sleep(3600)

            await (await session.consumer("in")).listen(stays)
            async with connection.session() as other:
                await (await other.producer("in")).send("a")
                await asyncio.wait_for(entered.wait(), SOON)
                await session.close()
                assert (await soon(await other.consumer("in"))).body == "a"

    run(work())


def test_what_is_awaited_twice_or_never_is_no_silent_mistake(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        async with aio.connect(broker.vm_url) as connection:
            made = connection.session()
            await made
            with pytest.raises(RuntimeError, match="already awaited"):
                await made
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always")
                connection.session()
                gc.collect()
            assert ["never awaited" in str(each.message) for each in warned] == [True]

    run(work())


@pytest.mark.parametrize("what", ["listener", "consumer", "session", "connection"])
def test_a_callback_ends_what_it_is_called_by_and_its_message_is_acknowledged(url: str, what: str) -> None:
    async def work() -> None:
        called, began = asyncio.Event(), time.monotonic()
        async with aio.connect(url) as beside, aio.connect(url, close_timeout=SOON) as connection:
            session = await connection.session()
            consumer = await session.consumer("in")

            async def callback(_: aio.Message) -> None:
                if what == "listener":
                    await consumer.listen(None)
                else:
                    await {"consumer": consumer, "session": session, "connection": connection}[what].close()
                called.set()

            await consumer.listen(callback)
            async with beside.session() as other:
                await (await other.producer("in")).send("a")
                await asyncio.wait_for(called.wait(), SOON)
                if what == "connection":
                    assert await connection.wait(SOON)
                await session.close()
                assert await (await other.consumer("in")).receive(0.2) is None
        assert time.monotonic() - began < SOON / 2

    run(work())


def test_a_backlog_of_which_all_is_there_does_not_keep_the_loop_from_other_tasks(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with aio.connect(broker.vm_url) as connection, connection.session() as session:
            producer, consumer = await session.producer("in"), await session.consumer("in")
            beside = asyncio.create_task(other())
            for call in (lambda: producer.send("a"), lambda: consumer.receive(SOON)):
                turns = 0
                for _ in range(1000):
                    await call()
                assert turns >= 9
            beside.cancel()

    run(work())


def test_one_of_two_listening_consumers_is_closed_at_once(url: str) -> None:
    """While the session's listener waits for messages, the close waits for the broker at the same place."""

    async def work() -> None:
        listener, began = Listener(), time.monotonic()
        async with aio.connect(url, request_timeout=SOON) as connection, connection.session() as session:
            consumers = [await session.consumer(queue) for queue in ("one", "two")]
            for consumer in consumers:
                await consumer.listen(listener)
            await asyncio.sleep(0.05)
            await consumers[0].close()
            async with connection.publisher() as publisher:
                await publisher.send("a", "two")
                await asyncio.wait_for(listener.came.wait(), SOON)
        assert time.monotonic() - began < SOON / 2

    run(work())


def test_a_blocking_connection_in_the_loops_thread_meets_the_loops_own_at_one_broker() -> None:
    """Bad for the loop, and no deadlock: nothing that it waits for needs the loop."""
    url = f"vm://both-{uuid.uuid4().hex}"

    async def work() -> None:
        async with aio.connect(url) as connection, connection.session() as session:
            consumer, producer = await session.consumer("to.loop"), await session.producer("from.loop")
            waiting = asyncio.create_task(consumer.receive(SOON))
            with redelivery.connect(url, request_timeout=5, close_timeout=5) as blocking, blocking.session() as inner:
                inner.producer("to.loop").send("a")
                await producer.send("b")
                assert inner.consumer("from.loop").receive_body(str, timeout=5) == "b"
                assert inner.consumer("nothing").receive(timeout=0.01) is None
            message = await waiting
            assert message is not None
            assert message.body == "a"

    run(work())


def test_what_a_program_does_all_day_does_not_keep_the_loop(url: str, caplog: pytest.LogCaptureFixture) -> None:
    """The debug mode logs each step of the loop that is slow; so is a busy machine, now and then, or a first import."""

    async def work() -> None:
        asyncio.get_running_loop().slow_callback_duration = 0.5
        async with aio.connect(url) as connection, connection.session("transacted") as session:
            consumer, producer = await session.consumer("orders"), await session.producer("orders")
            for number in range(100):
                await producer.send(str(number))
            await producer.send(bytes(1 << 20))
            await session.commit()
            assert len(await consumer.receive_many(101, SOON)) == 101
            await session.rollback()
            assert len(await consumer.receive_many(101, SOON)) == 101
            await session.commit()

    for _ in range(3):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "asyncio"):
            run(work())
        if not caplog.messages:
            break
    assert caplog.messages == []
