"""Declaring where the management does not answer, where the connection is lost, and where the caller gives up."""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import ClassVar
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from tests.run.rabbitmq import SITES
from tests.transports.declared import SOON, Site, behind, gate_of, site_of

import redelivery
from redelivery import ConnectError, ConnectionLostError, JMSError, Queue, RequestTimeoutError, SecurityError
from redelivery.testing.brokers.real import RealBroker


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    yield from site_of(request)


@contextlib.contextmanager
def silent() -> Iterator[str]:
    """A port that accepts, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://guest:guest@127.0.0.1:{server.getsockname()[1]}"


HTTP_ONLY = pytest.mark.parametrize("site", SITES[:3], indirect=True)


@HTTP_ONLY
def test_a_management_that_cannot_be_used_is_an_error_of_the_call_alone(site: Site) -> None:
    parts = urlsplit(site.http)
    with socket.create_server(("127.0.0.1", 0)) as server:
        closed = server.getsockname()[1]
    wrong: dict[str, type[JMSError]] = {
        f"http://guest:wrong@{parts.hostname}:{parts.port}": SecurityError,
        f"http://guest:guest@127.0.0.1:{closed}": ConnectError,
    }
    for url, kind in wrong.items():
        with site.connect(management=url) as connection, connection.session() as session:
            with pytest.raises(kind):
                session.declare(site.queue)
            session.producer(site.queue).send("goes on")
            assert session.consumer(site.queue).receive(timeout=SOON) is not None


@HTTP_ONLY
def test_a_silent_management_is_waited_for_in_bounds(site: Site) -> None:
    with (
        silent() as url,
        site.connect(management=url, request_timeout=0.5) as connection,
        connection.session() as session,
    ):
        began = time.monotonic()
        with pytest.raises(RequestTimeoutError):
            session.declare(site.queue)
        assert time.monotonic() - began < SOON


@HTTP_ONLY
def test_a_loop_goes_on_while_the_management_is_asked(site: Site) -> None:
    async def work(url: str) -> int:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0.01)
                ticks += 1

        async with (
            await redelivery.aio.connect(site.url, management=url, request_timeout=0.5) as connection,
            connection.session() as session,
        ):
            clock = asyncio.create_task(tick())
            with pytest.raises(RequestTimeoutError):
                await session.declare(site.queue)
            clock.cancel()
        return ticks

    with silent() as url:
        assert asyncio.run(work(url)) > 5


@HTTP_ONLY
def test_an_interrupt_ends_the_wait_for_the_management(site: Site) -> None:
    with (
        silent() as url,
        site.connect(management=url, request_timeout=5) as connection,
        connection.session() as session,
    ):
        interrupt_soon()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            session.declare(site.queue)
        assert time.monotonic() - began < 4
        session.producer(site.queue).send("goes on")
        assert session.consumer(site.queue).receive(timeout=SOON) is not None


def interrupt_soon() -> None:
    timer = threading.Timer(0.3, _thread.interrupt_main)
    timer.daemon = True
    timer.start()


class OverAmqp:
    """A broker that is asked over AMQP, behind a gate."""

    NAMES: ClassVar = ("rabbitmq4", "artemis", "qpid")

    def __init__(self, broker: RealBroker) -> None:
        self.gate = gate_of(broker.amqp_url)
        self.url = behind(self.gate, broker.amqp_url)
        self.queue = Queue(f"declared.{uuid4().hex[:8]}")


@pytest.fixture(params=OverAmqp.NAMES)
def gated(request: pytest.FixtureRequest) -> Iterator[OverAmqp]:
    pytest.importorskip("proton", reason="AMQP is missing")
    made = OverAmqp(request.getfixturevalue(request.param))
    with made.gate:
        yield made


def test_a_lost_connection_ends_the_call(gated: OverAmqp) -> None:
    with redelivery.connect(gated.url) as connection:
        session = connection.session()
        session.declare(gated.queue)
        session.delete(gated.queue)
        gated.gate.deafen()
        cut_soon = threading.Timer(0.3, gated.gate.shut)
        cut_soon.start()
        for _ in range(2):  # and each one after it
            with pytest.raises(ConnectionLostError):
                session.declare(gated.queue)
        cut_soon.join()


def test_an_interrupt_ends_the_call_and_the_session_goes_on(gated: OverAmqp) -> None:
    with redelivery.connect(gated.url, request_timeout=10) as connection, connection.session() as session:
        session.declare(gated.queue)
        gated.gate.stall(1.0)
        interrupt_soon()
        with pytest.raises(KeyboardInterrupt):
            session.declare(gated.queue)
        session.declare(gated.queue)
        session.producer(gated.queue).send("goes on")
        with session.consumer(gated.queue) as consumer:
            assert consumer.receive(timeout=SOON) is not None
        session.delete(gated.queue)


def test_a_cancelled_task_ends_the_call_and_the_session_goes_on(gated: OverAmqp) -> None:
    async def work() -> None:
        async with (
            await redelivery.aio.connect(gated.url, request_timeout=10) as connection,
            connection.session() as session,
        ):
            await session.declare(gated.queue)
            gated.gate.stall(1.0)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(session.declare(gated.queue), 0.3)
            await session.declare(gated.queue)
            assert await session.delete(gated.queue) == 0

    asyncio.run(work())


def test_after_a_loss_it_is_asked_on_the_next_connection(gated: OverAmqp) -> None:
    policy = redelivery.ReconnectPolicy(maximum_delay=0.1)
    with redelivery.connect(gated.url, reconnect=policy) as connection, connection.session() as session:
        session.declare(gated.queue)
        gated.gate.shut(0.3)
        deadline = time.monotonic() + SOON
        while time.monotonic() < deadline:
            with contextlib.suppress(ConnectionLostError):
                session.declare(gated.queue)
                break
        session.delete(gated.queue)


def test_a_user_who_may_not_is_refused(artemis: RealBroker) -> None:
    pytest.importorskip("proton", reason="AMQP is missing")
    parts = urlsplit(artemis.amqp_url)
    url = f"amqp://restricted:restricted@{parts.hostname}:{parts.port}"
    with redelivery.connect(url) as connection, connection.session() as session:
        for call in (session.declare, session.delete):
            with pytest.raises(JMSError, match="may this user ask there"):
                call(Queue(f"declared.{uuid4().hex[:8]}"))
