"""Connections of a loop: over TLS, lost, dropped, refused, or with a peer that takes nothing."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.client.aio.cancellation.cancelled import SOON, soon
from tests.client.aio.looped import run
from tests.examples.tls_front import make_certificates, tls_front

import redelivery
from redelivery import ConnectionLostError, IllegalStateError, JMSError, RequestTimeoutError, aio
from redelivery.broker import EmbeddedBroker


def test_a_lost_connection_ends_every_wait_and_notifies_an_async_listener() -> None:
    async def work() -> None:
        errors: list[JMSError] = []
        notified = asyncio.Event()

        async def listener(error: JMSError) -> None:
            errors.append(error)
            notified.set()

        broker = EmbeddedBroker("aio-lost", stomp_port=0).start()
        connection = await aio.connect(broker.stomp_url, exception_listener=listener)
        session = await connection.session()
        consumer = await session.consumer("in")
        waiting = [asyncio.create_task(consumer.receive()), asyncio.create_task(connection.wait())]
        await asyncio.sleep(0.05)
        await asyncio.to_thread(broker.close)
        for each in waiting:
            with pytest.raises(ConnectionLostError):
                await asyncio.wait_for(each, SOON)
        await asyncio.wait_for(notified.wait(), SOON)
        assert len(errors) == 1
        with pytest.raises(ConnectionLostError):
            await consumer.receive()
        await connection.close()
        await connection.close()
        with pytest.raises(IllegalStateError, match="closed"):
            await connection.session()

    run(work())


def test_a_connection_that_nobody_closes_says_so_and_closes_its_socket(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        connection = await aio.connect(broker.stomp_url)
        await connection.session()
        descriptor = connection._core.transport._opened()._stream.fileno()  # type: ignore[attr-defined]  # STOMP's own
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            del connection
            gc.collect()
        assert ["dropped without close" in str(each.message) for each in warned] == [True]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        with pytest.raises(OSError, match="Bad file descriptor"):
            socket.socket(fileno=descriptor)

    run(work())


class Relay:
    """A way to a port that stops reading what the client sends when it is told to."""

    def __init__(self, port: int) -> None:
        self.stopped, self.ended = threading.Event(), threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 12)
        self.port = self._listening.getsockname()[1]
        self._threads = [threading.Thread(target=self._serve, args=(port,))]
        self._threads[0].start()

    def _serve(self, port: int) -> None:
        with self._listening, self._listening.accept()[0] as near, socket.create_connection(("127.0.0.1", port)) as far:
            back = threading.Thread(target=self._copy, args=(far, near, self.ended))
            back.start()
            self._copy(near, far, self.stopped)
            self.ended.wait(SOON)
            back.join(SOON)

    def _copy(self, source: socket.socket, sink: socket.socket, end: threading.Event) -> None:
        source.settimeout(0.05)
        while not end.is_set() and not self.ended.is_set():
            with suppress(TimeoutError):
                sink.sendall(source.recv(1 << 12))

    def end(self) -> None:
        self.ended.set()
        self._threads[0].join(SOON)


@pytest.mark.parametrize("url", ["stomp"], indirect=True)  # AMQP holds back by credit
def test_a_peer_that_takes_nothing_holds_the_sender_back_and_not_the_loop(url: str) -> None:
    relay = Relay(int(url.rpartition(":")[2]))

    async def work() -> None:
        scheme = url.partition(":")[0]
        near = f"{scheme}://127.0.0.1:{relay.port}"
        connection = await aio.connect(near, request_timeout=1.0, close_timeout=0.5, heartbeat=0)
        session = await connection.session()
        producer = await session.producer("in", persistent=False)
        await producer.send("first")
        relay.stopped.set()
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                await asyncio.sleep(0.01)
                beats += 1

        async def send_much() -> None:
            for _ in range(200):
                await producer.send(bytes(1 << 18))

        beating = asyncio.create_task(beat())
        with pytest.raises((RequestTimeoutError, ConnectionLostError)):
            await send_much()
        assert beats > 20
        beating.cancel()
        await connection.close()

    try:
        run(work())
    finally:
        relay.end()


def test_a_connection_that_was_refused_or_cancelled_leaves_nothing(broker: EmbeddedBroker) -> None:
    async def work() -> None:
        with pytest.raises(redelivery.ConnectError):
            await aio.connect("stomp://127.0.0.1:1")
        with socket.create_server(("127.0.0.1", 0)) as silent:
            began = time.monotonic()
            with pytest.raises(redelivery.ConnectError, match="connect_timeout"):
                await aio.connect(f"stomp://127.0.0.1:{silent.getsockname()[1]}", connect_timeout=0.1)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await aio.connect(f"stomp://127.0.0.1:{silent.getsockname()[1]}")
            assert time.monotonic() - began < SOON
            for _ in range(2):
                accepted, _ = silent.accept()
                with accepted:
                    accepted.settimeout(SOON)
                    while accepted.recv(1 << 12):
                        pass
        with pytest.raises(TypeError, match="username"):
            aio.connect(broker.vm_url, user="a")  # type: ignore[call-arg]  # which is the point

    run(work())


@pytest.mark.parametrize(("scheme", "near"), [("stomp+ssl", "stomp"), ("amqps", "amqp")])
def test_large_messages_cross_tls_both_ways(tmp_path: Path, scheme: str, near: str) -> None:
    if near == "amqp":
        pytest.importorskip("proton")
    make_certificates(tmp_path)
    tls = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    tls.load_cert_chain(tmp_path / "client.pem", tmp_path / "client.key")
    bodies = [bytes([number]) * (number << 18) for number in (1, 4, 8)]

    async def work(url: str) -> None:
        async with aio.connect(url, tls=tls) as connection, connection.session() as session:
            consumer, producer = await session.consumer("in"), await session.producer("in")
            for persistent in (True, False):
                for body in bodies:
                    await producer.send(body, persistent=persistent)
                assert [(await soon(consumer)).body for _ in bodies] == bodies

    ports: dict[str, Any] = {f"{near}_port": 0}
    with (
        EmbeddedBroker(f"aio-tls-{near}", **ports) as broker,
        tls_front(getattr(broker, f"{near}_url"), tmp_path) as port,
    ):
        run(work(f"{scheme}://localhost:{port}"))


def test_what_another_thread_does_to_the_embedded_broker_reaches_the_loop() -> None:
    async def work() -> None:
        broker = EmbeddedBroker("aio-elsewhere").start()
        async with aio.connect(broker.vm_url) as connection, connection.session() as session:
            consumer = await session.consumer("in")
            waiting = asyncio.create_task(soon(consumer))
            await asyncio.sleep(0.01)
            await asyncio.to_thread(broker.send, "in", "a")
            assert (await waiting).body == "a"
            ended = asyncio.create_task(consumer.receive())
            await asyncio.sleep(0.01)
            await asyncio.to_thread(broker.close)
            with pytest.raises(ConnectionLostError):
                await asyncio.wait_for(ended, SOON)

    run(work())
