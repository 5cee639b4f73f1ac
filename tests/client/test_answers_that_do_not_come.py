"""A broker that does not answer within request_timeout: what was asked is in doubt, and never taken for done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from time import monotonic
from typing import Any

import pytest
from tests.client.gated import Site
from tests.client.shell import SOON

import redelivery
from redelivery import InDoubtError, RequestTimeoutError, aio

LIMIT = 1.0  # seconds: all that is asked before has its answer by then, on a busy machine too


async def _sends(session: aio.Session) -> None:
    producer = await session.producer("orders")
    await producer.send("x")


async def _commits(session: aio.Session) -> None:
    producer = await session.producer("orders")
    await producer.send("x")
    await session.commit()


def _send(session: redelivery.Session) -> None:
    session.producer("orders").send("x")


def _commit(session: redelivery.Session) -> None:
    session.producer("orders").send("x")
    session.commit()


def in_doubt(
    site: Site, mode: str, act: Callable[[Any], Any], awaited: Callable[[Any], Coroutine[Any, Any, None]], shell: str
) -> None:
    if shell == "threads":
        with redelivery.connect(site.url, request_timeout=LIMIT, close_timeout=LIMIT) as connection:
            act(connection.session(mode))
        return

    async def work() -> None:
        async with await aio.connect(site.url, request_timeout=LIMIT, close_timeout=LIMIT) as connection:
            await awaited(await connection.session(mode))

    asyncio.run(work())


@pytest.mark.parametrize("shell", ["threads", "tasks"])
@pytest.mark.parametrize(
    ("mode", "command", "act", "awaited"),
    [("auto", "SEND", _send, _sends), ("transacted", "COMMIT", _commit, _commits)],
    ids=["send", "commit"],
)
def test_it_is_in_doubt(
    site: Site, mode: str, command: str, act: Callable[[Any], Any], awaited: Any, shell: str
) -> None:
    site.broker.faults.swallow(command)
    began = monotonic()
    with pytest.raises(InDoubtError) as raised:
        in_doubt(site, mode, act, awaited, shell)
    assert LIMIT <= monotonic() - began < SOON
    assert isinstance(raised.value.__cause__, RequestTimeoutError)
    assert [each.body for each in raised.value.sent] == ["x"]
