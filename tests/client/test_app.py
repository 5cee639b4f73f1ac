"""An `App`: it survives its broker, says so where it would not, and others send over its connection."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from tests.client.shell import SOON, eventually

import redelivery
from redelivery import App, ConnectError, ConnectionLostError, IllegalStateError, ReconnectPolicy
from redelivery.broker import EmbeddedBroker

ENDS = "when the connection to"


def make(url: str, awaited: bool, got: list[object], **options: Any) -> App:
    app = App(url, **options)

    def handle(message: redelivery.Message) -> None:
        got.append(message.body)

    async def handle_awaited(message: redelivery.Message) -> None:
        got.append(message.body)

    app.listener("orders")(handle_awaited if awaited else handle)
    return app


@contextmanager
def meanwhile(work: Callable[[], None], *, ends: bool = True) -> Iterator[None]:
    """Work in another thread, while this one runs the app; then the app gets its SIGTERM, if it is to end by that."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001  # raised again below
            failed.append(error)
        finally:
            if ends:
                os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        thread.join(60)
    if failed:
        raise failed[0]


@pytest.fixture(params=[False, True], ids=["threads", "tasks"])
def awaited(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_it_waits_for_its_broker_and_survives_a_restart(awaited: bool, caplog: pytest.LogCaptureFixture) -> None:
    got: list[object] = []
    seen: list[str] = []
    with EmbeddedBroker(f"port-{uuid4().hex}", stomp_port=0) as free:
        url, port = free.stomp_url, int(free.stomp_url.rpartition(":")[2])
    app = make(url, awaited, got, observer=lambda event: seen.append(type(event).__name__))

    def work() -> None:
        eventually(lambda: "ReconnectFailed" in seen, within=20)
        assert not app.healthy
        for body in ("first", "second"):
            with EmbeddedBroker(f"{body}-{uuid4().hex}", stomp_port=port) as broker:
                eventually(lambda: app.healthy, within=20)
                broker.send("orders", body)
                broker.wait_for("orders", depth=0, timeout=SOON)
                eventually(lambda: app.counters.succeeded == len(got), within=10)
            eventually(lambda: not app.healthy, within=20)

    with caplog.at_level(logging.INFO, "redelivery"), meanwhile(work):
        app.run(drain_timeout=5)
    assert got == ["first", "second"]
    assert {"Connected", "ConnectionLost", "Reconnected"} < set(seen)
    assert ENDS not in caplog.text
    assert app.containers == ()
    assert app.counters.succeeded == 0


def test_without_reconnecting_it_says_so_at_its_start_and_ends_with_the_broker(
    awaited: bool, caplog: pytest.LogCaptureFixture
) -> None:
    broker = EmbeddedBroker(f"once-{uuid4().hex}", stomp_port=0)
    broker.start()
    app = make(broker.stomp_url, awaited, [], reconnect=None)

    def work() -> None:
        eventually(lambda: app.healthy, within=20)
        broker.close()
        eventually(lambda: not app.containers, within=20)

    with (
        caplog.at_level(logging.WARNING, "redelivery.worker"),
        meanwhile(work, ends=False),
        pytest.raises(ConnectionLostError),
    ):
        app.run(drain_timeout=5)
    said = [each for each in caplog.messages if ENDS in each]
    assert len(said) == 1
    assert "reconnect=ReconnectPolicy()" in said[0]
    with pytest.raises(ConnectError):
        app.run()


@pytest.mark.parametrize(
    ("url", "options", "expected"),
    [
        ("stomp://h", {}, ReconnectPolicy()),
        ("amqps://h", {}, ReconnectPolicy()),
        ("stomp://h", {"reconnect": None}, None),
        ("stomp://h", {"reconnect": ReconnectPolicy(maximum_attempts=3)}, ReconnectPolicy(maximum_attempts=3)),
        ("vm://h", {}, None),
        ("VM://h", {}, None),
        ("failover:(stomp://h)?maxReconnectAttempts=3", {}, ReconnectPolicy(maximum_attempts=3)),
        ("FAILOVER:(stomp://h)?maxReconnectAttempts=3", {"reconnect": None}, ReconnectPolicy(maximum_attempts=3)),
    ],
)
def test_its_connection_comes_back_unless_it_is_given_another_rule(
    url: str, options: dict[str, Any], expected: ReconnectPolicy | None
) -> None:
    found = App(url, **options)._options.reconnect
    assert (found and found.maximum_attempts) == (expected and expected.maximum_attempts)


def test_another_broker_has_its_own_default() -> None:
    app = App("vm://h")
    assert app.connecting("stomp://h")._options.reconnect == ReconnectPolicy()
    assert app.connecting("stomp://h", reconnect=None)._options.reconnect is None
    assert App("stomp://h").connecting("vm://h")._options.reconnect is None
    assert App("stomp://h", reconnect=None).connecting("stomp://i")._options.reconnect is None
    with pytest.raises(redelivery.ConfigError, match="str"):
        App(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "warns"), [(None, True), (ReconnectPolicy(maximum_attempts=0), True), (ReconnectPolicy(), False)]
)
def test_a_container_says_that_a_loss_is_its_end(
    policy: ReconnectPolicy | None, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        EmbeddedBroker(f"warned-{uuid4().hex}", stomp_port=0) as broker,
        caplog.at_level(logging.WARNING, "redelivery.worker"),
        redelivery.connect(broker.stomp_url, reconnect=policy) as connection,
        connection.listener_container("orders", print, concurrency=3),
    ):
        assert [ENDS in each for each in caplog.messages] == [True] * warns
    caplog.clear()
    with redelivery.connect("vm://warned") as connection, connection.listener_container("orders", print):
        assert caplog.messages == []


def test_threads_send_over_its_connection_while_it_runs() -> None:
    got: list[object] = []
    with EmbeddedBroker(f"sends-{uuid4().hex}", stomp_port=0) as broker:
        app = make(broker.stomp_url, False, got)
        publisher = app.publisher()
        with pytest.raises(IllegalStateError, match="while the app runs"):
            publisher.send("too early", "orders")
        for body in ("a", "b"):

            def work(body: str = body) -> None:
                eventually(lambda: app.healthy, within=20)
                with app.publisher() as same:
                    assert same is publisher
                    same.send(body, "orders")
                publisher.send(body * 2, "orders")
                broker.wait_for("orders", depth=0, timeout=SOON)

            with meanwhile(work):
                app.run()
        with pytest.raises(IllegalStateError):
            publisher.send("too late", "orders")
    assert sorted(map(str, got)) == ["a", "aa", "b", "bb"]


def test_tasks_send_over_its_connection() -> None:
    with EmbeddedBroker(f"sends-{uuid4().hex}", stomp_port=0) as broker:
        app = App(broker.stomp_url)

        @app.listener("orders")
        async def handle(message: redelivery.Message) -> None:
            async with app.publisher() as publisher:
                await publisher.send(message.body, "out")
            assert await app.publisher() is publisher

        async def early() -> None:
            await (await app.publisher()).send("x", "out")

        with pytest.raises(IllegalStateError, match="while the app runs"):
            asyncio.run(early())
        for number in (1, 2):

            def work(number: int = number) -> None:
                broker.send("orders", f"{number}")
                broker.wait_for("out", depth=number, timeout=SOON)

            with meanwhile(work):
                app.run()
        assert [each.body for each in broker.messages("out")] == ["1", "2"]
