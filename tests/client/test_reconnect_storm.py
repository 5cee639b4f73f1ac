"""A broker that takes each login and closes the connection at each SUBSCRIBE: calls end, and the log names the suspect.

It does so because of what is on the queue: a SUBSCRIBE that names none is refused.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

import pytest
from tests.client.aio.looped import run
from tests.client.shell import SOON, eventually

import redelivery
from redelivery import JMSError, ReconnectPolicy, RequestTimeoutError, aio

QUICK = ReconnectPolicy(maximum_delay=0.05)
OPTIONS: dict[str, Any] = {"reconnect": QUICK, "request_timeout": 1.0, "close_timeout": 1.0}


class Peer:
    """Speaks so much of STOMP: CONNECTED, an ERROR to a SUBSCRIBE without a destination, and at others it hangs up."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.url = f"stomp://127.0.0.1:{self._server.getsockname()[1]}"
        self.logins = 0
        self.lives = 0.0  # seconds after that
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for each in self._threads:
            each.join(SOON)

    def _accept(self) -> None:
        with suppress(OSError):  # closed
            while True:
                client = self._server.accept()[0]
                self._threads.append(threading.Thread(target=self._serve, args=(client,), daemon=True))
                self._threads[-1].start()

    def _serve(self, client: socket.socket) -> None:
        data = b""
        with client, suppress(OSError):
            while b"SUBSCRIBE" not in data:
                if b"ABORT" in data:
                    client.sendall(b"RECEIPT\nreceipt-id:redelivery-maps\n\n\0")
                    data = b""
                got = client.recv(65536)
                if not got:
                    return
                data += got
                if b"\0" in data and data.lstrip().startswith((b"CONNECT", b"STOMP")):
                    client.sendall(b"CONNECTED\nversion:1.2\nserver:ActiveMQ/5.18.3\nheart-beat:0,0\n\n\0")
                    data = b""
            if b"destination:" in data:
                self.logins += 1
                sleep(self.lives)
            else:
                client.sendall(b"ERROR\nmessage:Invalid empty or 'null' Destination header\n\n\0")


@pytest.fixture
def peer() -> Iterator[Peer]:
    peer = Peer()
    yield peer
    peer.close()


def consume(connection: Any) -> None:
    connection.session().consumer("orders")


def contain(connection: Any) -> None:
    connection.listener_container("orders", print).start()


@pytest.mark.parametrize("call", [consume, contain])
def test_a_call_ends_with_its_time_and_says_what_is_suspected(peer: Peer, call: Callable[[Any], None]) -> None:
    with redelivery.connect(peer.url, **OPTIONS) as connection:
        began = monotonic()
        with pytest.raises(
            RequestTimeoutError, match=r"consumer: the connection was lost, and was not there"
        ) as raised:
            call(connection)
        assert monotonic() - began < SOON
    assert "times in a row right after subscribing to" in str(raised.value)
    assert "ObjectMessage" in str(raised.value)


def test_a_call_under_asyncio_ends_with_its_time(peer: Peer) -> None:
    async def work() -> None:
        async with await aio.connect(peer.url, **OPTIONS) as connection:
            session = await connection.session()
            with pytest.raises(RequestTimeoutError, match="right after subscribing to queue://orders"):
                await session.consumer("orders")

    run(work())


def test_the_log_and_the_exception_listener_name_the_destination(peer: Peer, caplog: pytest.LogCaptureFixture) -> None:
    errors: list[JMSError] = []
    connection = redelivery.connect(peer.url, **OPTIONS, exception_listener=errors.append)
    with connection, pytest.raises(RequestTimeoutError):
        consume(connection)
    lines = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    named = [each for each in lines if ": it was lost " in each]
    assert ": it was lost 5 times in a row right after subscribing to queue://orders: " in named[0]
    assert len(named) <= len(errors) // 5
    assert not any("right after" in str(each) for each in errors[:4])
    assert "right after subscribing to queue://orders" in str(errors[4])


def test_a_storm_is_dialled_with_a_growing_wait(peer: Peer) -> None:
    policy = ReconnectPolicy(initial_delay=0.02, jitter=0.0)
    with redelivery.connect(peer.url, **{**OPTIONS, "reconnect": policy, "request_timeout": 1.5}) as connection:
        with pytest.raises(RequestTimeoutError):
            consume(connection)
        assert peer.logins <= 8  # 20, 40, 80, … ms


def test_so_is_one_of_connections_that_live_a_little(peer: Peer) -> None:
    """As long as was waited for each: 21 of these within a second, and a quorum queue gives up what it has there."""
    peer.lives = 0.03
    policy = ReconnectPolicy(initial_delay=0.01, jitter=0.0)
    with redelivery.connect(peer.url, **{**OPTIONS, "reconnect": policy, "request_timeout": 2.0}) as connection:
        with pytest.raises(RequestTimeoutError):
            consume(connection)
        assert 5 <= peer.logins <= 15  # five, then 20, 40, 80, … ms


def test_calls_that_wait_for_a_connection_end_with_their_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"stomp://127.0.0.1:{server.getsockname()[1]}"
        answered: list[socket.socket] = []

        def answer() -> None:
            client = server.accept()[0]
            client.recv(65536)
            client.sendall(b"CONNECTED\nversion:1.2\nserver:x\nheart-beat:0,0\n\n\0")
            answered.append(client)

        thread = threading.Thread(target=answer)
        thread.start()
        connection = redelivery.connect(url, **{**OPTIONS, "request_timeout": 0.3, "dialect": "unknown"})
        thread.join(SOON)
        with connection:
            session = connection.session()
            server.close()
            answered[0].close()
            eventually(lambda: not connection.connected)
            for call in (connection.session, lambda: session.consumer("orders"), lambda: session.unsubscribe("mine")):
                began = monotonic()
                with pytest.raises(RequestTimeoutError, match="was lost"):
                    call()
                assert monotonic() - began < SOON
