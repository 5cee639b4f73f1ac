"""Peers that never stop, and never say what is awaited: each call ends at its time-out all the same."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest
from tests.client.aio.looped import run
from tests.client.shell import SOON, Background
from tests.transports.scripted import BrokerEnd, ScriptedBroker

import redelivery
from redelivery import ConnectError, JMSError
from redelivery.transports.wire.sockets import Stream

WAIT = 0.3  # seconds
ENDLESS: dict[str, tuple[list[bytes], bytes]] = {
    "newlines": ([], b"\n" * 1000),
    "a header": ([b"CONNECTED\nversion:1.2\n"], b"a"),
    "a body": ([b"CONNECTED\nversion:1.2\n\n"], b"a" * 1000),
}
ENDLESS_AMQP = {
    "a frame of SASL's": (1, b"\x00\x00\xff\xff\x02\x01\x00\x00", b"\0"),
    "empty frames": (4, b"", b"\x00\x00\x00\x08\x02\x00\x00\x00" * 100),
    "a frame": (4, b"\x00\x0f\xff\xff\x02\x00\x00\x00", b"\0"),
}


def of_amqp(known: int, then: bytes) -> list[bytes]:
    """What a peer says at first: so many steps of the login, and this."""
    frames = pytest.importorskip("tests.transports.amqp_frames")
    login = [
        frames.SASL_HEADER,
        frames.frame_bytes("sasl-mechanisms", 0, mechanisms=frames.symbol("ANONYMOUS")),
        frames.frame_bytes("sasl-outcome", 0, code=0),
        frames.HEADER,
    ]
    return [*login[:known], *([then] if then else [])]


@pytest.fixture
def background() -> Iterator[Background]:
    others = Background()
    yield others
    others.join()


@pytest.fixture
def silent() -> Iterator[int]:
    """The port of a peer that takes connections; what it says is made up below the socket."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(params=[*ENDLESS, *ENDLESS_AMQP])
def url(request: pytest.FixtureRequest, silent: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """Of a peer of which there is always more to read: no read finds nothing."""
    if request.param in ENDLESS:
        scheme, (first, endless) = "stomp", ENDLESS[request.param]
    else:
        known, then, endless = ENDLESS_AMQP[request.param]
        scheme, first = "amqp", of_amqp(known, then)
    said: dict[int, Iterator[bytes]] = {}

    def chunks() -> Iterator[bytes]:
        yield from first
        while True:
            time.sleep(0.001)  # the machine is others', too
            yield endless

    monkeypatch.setattr(Stream, "receive", lambda stream: next(said.setdefault(id(stream), chunks())))
    return f"{scheme}://127.0.0.1:{silent}"


def test_a_connect_ends_at_its_time_out(url: str, background: Background) -> None:
    began = time.monotonic()
    result = background.start(lambda: redelivery.connect(url, connect_timeout=WAIT))
    with pytest.raises(ConnectError, match="within connect_timeout"):
        result()
    assert time.monotonic() - began < WAIT + 3  # another protocol is looked for


def test_a_task_s_connect_ends_at_its_time_out_and_others_have_their_turn(url: str) -> None:
    turns: list[float] = []

    async def other() -> None:
        while True:
            turns.append(time.monotonic())
            await asyncio.sleep(0.01)

    async def work() -> None:
        task = asyncio.create_task(other())
        with pytest.raises(ConnectError, match="within connect_timeout"):
            await redelivery.aio.connect(url, connect_timeout=WAIT)
        task.cancel()

    run(work())
    assert len(turns) > 5


class Flood:
    """Sends the same for ever, from now on, in a thread of its own."""

    def __init__(self, data: bytes) -> None:
        self._data = data * (65536 // len(data))

    def begin(self, end: BrokerEnd) -> None:
        threading.Thread(target=self._run, args=(end.sock,), daemon=True).start()

    def _run(self, sock: socket.socket) -> None:
        with suppress(OSError):
            while True:
                sock.sendall(self._data)


CALLS: dict[str, Callable[[redelivery.Session], object]] = {
    "subscribe": lambda session: session.consumer("orders"),
    "send": lambda session: session.producer("orders").send("x"),
    "close": lambda session: session.close(),
}


@pytest.mark.parametrize("call", list(CALLS))
def test_an_answer_is_waited_for_no_longer_than_it_may(call: str, background: Background) -> None:
    """Newlines are heart-beats, and a broker that sends nothing else answers nothing."""
    flood = Flood(b"\n")

    def script(end: BrokerEnd) -> None:
        end.log_in(heart_beat="0,0")
        flood.begin(end)
        with suppress(OSError):
            while end.sock.recv(65536):
                pass

    def work() -> object:
        with redelivery.connect(
            f"stomp://127.0.0.1:{broker.port}",
            request_timeout=WAIT,
            close_timeout=WAIT,
            exception_listener=lambda _: None,
        ) as connection:
            return CALLS[call](connection.session("client"))

    with ScriptedBroker(script) as broker:
        began = time.monotonic()
        result = background.start(work)
        with suppress(JMSError):
            result()
        assert time.monotonic() - began < SOON / 2


@pytest.mark.parametrize("scheme", ["stomp+ssl", "amqps"])
def test_newlines_instead_of_tls_end_the_connect(scheme: str, background: Background) -> None:
    if scheme == "amqps":
        pytest.importorskip("proton")
    flood = Flood(b"\n")

    def script(end: BrokerEnd) -> None:
        flood.begin(end)
        with suppress(OSError):
            while end.sock.recv(65536):
                pass

    with ScriptedBroker(script) as broker:
        result = background.start(
            lambda: redelivery.connect(f"{scheme}://127.0.0.1:{broker.port}", connect_timeout=WAIT)
        )
        with pytest.raises(ConnectError):
            result()
