"""The listener container of tasks, where it is not as that of threads (tests/client/containers has what both are)."""

from __future__ import annotations

import asyncio

import pytest
from tests.client.aio.looped import run
from tests.client.shell import SOON

from redelivery import ConfigError, aio


def test_stop_cancels_handlers_and_loses_nothing(url: str) -> None:
    async def work() -> None:
        entered = asyncio.Event()

        async def handler(_: aio.Message) -> None:
            entered.set()
            await asyncio.sleep(3600)

        async with await aio.connect(url) as connection:
            async with await connection.session() as session:
                await (await session.producer("orders")).send("kept")
            container = connection.listener_container("orders", handler)
            await container.start()
            await entered.wait()
            await container.stop()
            assert container.counters.workers == container.counters.in_flight == 0
            async with await connection.session() as session:
                assert await (await session.consumer("orders")).receive_body(str, timeout=SOON) == "kept"

    run(work())


def test_what_a_handler_may_take_is_named_as_it_is_imported(url: str) -> None:
    async def handler(message: aio.Message, size: int) -> None: ...

    async def work() -> None:
        async with await aio.connect(url) as connection:
            with pytest.raises(
                ConfigError, match=r"one of aio\.Session, aio\.Message, Message, aio\.Producer, or leave"
            ):
                connection.listener_container("orders", handler)

    run(work())


def test_a_plain_function_is_a_failure_that_says_so(url: str) -> None:
    async def work() -> None:
        async with await aio.connect(url) as connection, connection.listener_container("orders", lambda _: None) as it:
            async with await connection.session() as session:
                await (await session.producer("orders")).send("x")
            async with asyncio.timeout(SOON):
                while it.last_error is None:
                    await asyncio.sleep(0.005)
            assert "cannot be awaited" in str(it.last_error)
            assert it.counters.failed >= 1

    run(work())
