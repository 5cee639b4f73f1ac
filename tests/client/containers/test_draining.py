"""A drain has one time limit, however many workers or containers there are."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack
from time import monotonic
from typing import Any
from uuid import uuid4

import pytest
from tests.client.shell import SOON, eventually
from tests.conformance.blocking import Shell

from redelivery.broker import EmbeddedBroker
from redelivery.client.containers.running import run_all, run_all_awaited

LIMIT, WORKERS = 0.25, 8
LONG = 4 * LIMIT  # half of what it takes where each worker has the limit for itself


@pytest.fixture
def broker() -> Any:
    with EmbeddedBroker(f"draining-{uuid4().hex}") as broker:
        for number in range(WORKERS):
            broker.send("orders", str(number))
        yield broker


def test_it_is_the_limit_of_all_workers(broker: EmbeddedBroker, shell: Shell) -> None:
    go_on = threading.Event()
    with shell.connect(broker.vm_url) as connection, ExitStack() as stack:
        stack.callback(go_on.set)
        container = connection.listener_container("orders", lambda _: go_on.wait(SOON), concurrency=WORKERS, prefetch=1)
        container.start()
        eventually(lambda: container.counters.in_flight == WORKERS)
        began = monotonic()
        assert not container.drain(LIMIT)
        assert LIMIT <= monotonic() - began < LONG
        go_on.set()
        assert container.drain(SOON)


class Stubborn:
    """A container whose drain takes all the time that it is given."""

    def __init__(self, ends: bool) -> None:
        self.ends = ends
        self.limits: list[float] = []

    def start(self) -> None:
        """Nothing is to be begun."""

    def drain(self, timeout: Any = 30.0) -> bool:
        self.limits.append(timeout)
        return not threading.Event().wait(timeout)

    def stop(self) -> None:
        """Nothing is to be ended."""

    def _check_ended(self) -> bool:
        return self.ends


class StubbornTasks(Stubborn):
    async def start(self) -> None:  # type: ignore[override]  # of the other shell
        """Nothing is to be begun."""

    async def drain(self, timeout: Any = 30.0) -> bool:  # type: ignore[override]
        self.limits.append(timeout)
        await asyncio.sleep(timeout)
        return True

    async def stop(self) -> None:  # type: ignore[override]
        """Nothing is to be ended."""


@pytest.mark.parametrize("kind", [Stubborn, StubbornTasks])
def test_of_a_program_s_containers_it_is_the_limit_of_all(kind: type[Stubborn]) -> None:
    """One ends by itself, so that the program does."""
    containers: list[Any] = [kind(ends=not number) for number in range(WORKERS)]
    began = monotonic()
    if kind is Stubborn:
        run_all(containers, drain_timeout=LIMIT)
    else:
        asyncio.run(run_all_awaited(containers, drain_timeout=LIMIT))
    assert monotonic() - began < LONG
    assert all(len(each.limits) == 1 and each.limits[0] <= LIMIT for each in containers)
