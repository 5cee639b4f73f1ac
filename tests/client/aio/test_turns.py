"""Whose turn a session is: whatever becomes of those who wait for it, somebody gets it, and it is free at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from tests.client.aio.looped import run
from tests.client.shell import SOON

from redelivery import IllegalStateError, aio
from redelivery.client.aio.core import Turn


async def nothing() -> None:
    """What one does whose turn it is."""


def at_once(turn: Turn, waiting: asyncio.Task[Any]) -> None:
    turn.release()
    waiting.cancel()


def cancelled_first(turn: Turn, waiting: asyncio.Task[Any]) -> None:
    waiting.cancel()
    turn.release()


@pytest.mark.parametrize("end", [at_once, cancelled_first])
@pytest.mark.parametrize("call", ["close", "receive"])
def test_one_who_is_cancelled_when_its_turn_comes_gives_it_on(
    url: str, end: Callable[[Turn, asyncio.Task[Any]], None], call: str
) -> None:
    async def work() -> None:
        async with await aio.connect(url, close_timeout=SOON) as connection:
            session = await connection.session()
            consumer, core = await session.consumer("orders"), session._core
            assert core.turn.take()  # somebody is inside
            first = asyncio.create_task(core.inside_patiently("first", nothing))
            others = [asyncio.create_task(core.inside_patiently("other", nothing)) for _ in range(2)]
            await asyncio.sleep(0)
            end(core.turn, first)
            with pytest.raises(asyncio.CancelledError):
                await first
            await asyncio.wait_for(asyncio.gather(*others), SOON)
            assert not core.in_use
            if call == "receive":
                assert await consumer.receive(timeout=0) is None
            await asyncio.wait_for(session.close(), SOON)
            assert session.closed

    run(work())


def test_one_whose_time_is_over_is_passed_over() -> None:
    async def work() -> None:
        turn = Turn(asyncio.get_running_loop())
        assert turn.take()
        assert not await turn.take_within(0.001)
        later = asyncio.create_task(turn.take_within(None))
        await asyncio.sleep(0)
        turn.release()
        assert await later
        assert not turn.take(), "it is the other's"
        turn.release()
        assert turn.take()

    run(work())


def test_those_who_wait_get_it_in_their_order() -> None:
    order: list[int] = []

    async def one(turn: Turn, number: int) -> None:
        assert await turn.take_within(SOON)
        order.append(number)
        await asyncio.sleep(0)
        turn.release()

    async def work() -> None:
        turn = Turn(asyncio.get_running_loop())
        turn.take()
        tasks = [asyncio.create_task(one(turn, number)) for number in range(5)]
        await asyncio.sleep(0)
        turn.release()
        await asyncio.gather(*tasks)
        assert not turn.taken

    run(work())
    assert order == [0, 1, 2, 3, 4]


def test_a_second_task_gets_an_error_that_says_whose_turn_it_is(url: str) -> None:
    async def work() -> None:
        async with await aio.connect(url) as connection:
            consumer = await (await connection.session()).consumer("orders")
            waiting = asyncio.create_task(consumer.receive())
            await asyncio.sleep(0)
            with pytest.raises(IllegalStateError, match="another task"):
                await consumer.receive(timeout=0)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert await consumer.receive(timeout=0) is None

    run(work())
