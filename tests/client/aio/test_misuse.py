"""What a program of asyncio does wrong at first, and the error that says so."""

from __future__ import annotations

from typing import Any

import pytest
from tests.client.aio.looped import run

import redelivery
from redelivery import ConfigError, aio

UNAWAITED = "is not awaited yet: write `await` before it"


def test_a_call_on_what_is_not_awaited_yet_says_so() -> None:
    async def work() -> None:
        connecting: Any = aio.connect("vm://unawaited")
        assert repr(connecting) == "<not awaited yet>"
        with pytest.raises(AttributeError, match=f"^session: .*{UNAWAITED}"):
            connecting.session()
        async with connecting as connection:
            making: Any = connection.session()
            with pytest.raises(TypeError, match=f"^with: .*{UNAWAITED}"), making:
                pass
            session = await making
            producer: Any = session.producer("orders")
            with pytest.raises(AttributeError, match=f"^send: .*{UNAWAITED}"):
                await producer.send("a chair")
            await producer
            consumer: Any = session.consumer("orders")
            with pytest.raises(TypeError, match=f"^async for: .*{UNAWAITED}"):
                async for _ in consumer:
                    pass
            await consumer

    run(work())


def test_a_container_refuses_a_plain_function_before_it_is_called() -> None:
    called: list[Any] = []

    def handler(message: Any) -> None:
        called.append(message)

    async def work() -> None:
        async with aio.connect("vm://plain") as connection:
            with pytest.raises(
                ConfigError, match=r"^listener_container\(.*handler\): give an `async def`; what blocks"
            ):
                connection.listener_container("orders", handler)

    run(work())
    assert called == []


def test_a_connection_is_made_by_connect_alone() -> None:
    async def work() -> None:
        by_hand: Any
        for by_hand in (redelivery.Connection, aio.Connection):
            with pytest.raises(ConfigError, match=r"a Connection is made by redelivery.connect\(url, …\)"):
                by_hand("vm://by.hand")

    run(work())


def test_what_was_awaited_keeps_its_own_errors() -> None:
    async def work() -> None:
        made = aio.connect("vm://awaited")
        connection = await made
        with pytest.raises(AttributeError, match=r"^'Connection' object has no attribute 'sesion'"):
            _ = connection.sesion  # type: ignore[attr-defined]  # that is the test
        await connection.close()
        with pytest.raises(RuntimeError):
            await made  # twice

    run(work())


def test_a_callback_that_takes_no_message_is_refused() -> None:
    async def callback() -> None: ...

    async def work() -> None:
        async with aio.connect("vm://arity") as connection, connection.session() as session:
            consumer: Any = await session.consumer("orders")
            with pytest.raises(
                ConfigError, match=r"^listen: .*callback\(\) -> 'None' is called with one argument, the"
            ):
                await consumer.listen(callback)

    run(work())
