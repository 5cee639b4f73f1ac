"""Sockets where `select` has no poll, as on Windows: in a process of its own, from which it was taken."""

from __future__ import annotations

import asyncio
import os
import select
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.versions.taken import CLIENTS, on_windows

from redelivery import UnsupportedError
from redelivery.transports.wire import polls
from redelivery.transports.wire.aio.runtime import LoopRuntime
from redelivery.transports.wire.polls import READABLE, WRITABLE, Selecting

SESSION = """
import asyncio, threading, time, redelivery, redelivery.aio
from redelivery.broker import EmbeddedBroker

broker = EmbeddedBroker("polled", stomp_port=0).start()
lost, back, again = threading.Event(), threading.Event(), redelivery.ReconnectPolicy(initial_delay=0.01)
def observe(event):
    if isinstance(event, redelivery.events.Reconnected):
        back.set()
"""
LARGE = """
body = bytes(8 << 20)  # more than the system takes at once
with redelivery.connect(broker.stomp_url) as connection, connection.session() as session:
    session.producer("large").send(body)
    assert session.consumer("large").receive(timeout=60).body == body
"""
RECONNECT = """
with redelivery.connect(broker.stomp_url, reconnect=again, observer=observe) as connection:
    with connection.session() as session:
        consumer = session.consumer("orders")
        broker.faults.drop("SEND")
        producer = session.producer("orders")
        try:
            producer.send("first")
        except redelivery.InDoubtError as error:
            print(type(error).__name__)
        assert back.wait(60)
        producer.send("second")
        assert consumer.receive(timeout=60).body == "second"
"""
CLOSE = """
def until_it_waits(thread):
    while True:
        frame = sys._current_frames().get(thread.ident)
        while frame is not None:
            if frame.f_code.co_qualname == "Selecting.poll":
                return
            frame = frame.f_back
        time.sleep(0.005)

with redelivery.connect(broker.stomp_url) as connection:
    consumer = connection.session().consumer("nothing")
    got = []
    thread = threading.Thread(target=lambda: got.append(consumer.receive()))
    thread.start()
    until_it_waits(thread)
    consumer.close()
    thread.join(60)
    assert got == [None], got
    consumer = connection.session().consumer("nothing")
    thread = threading.Thread(target=lambda: got.append(consumer.receive()))
    thread.start()
    until_it_waits(thread)
thread.join(60)
assert got == [None, None], got
"""
HEARD = """
got = threading.Event()
with redelivery.connect(broker.stomp_url) as connection:
    connection.session().consumer("heard").listen(lambda message: got.set())
    with redelivery.connect(broker.vm_url) as other, other.session() as session:
        session.producer("heard").send("it")
    assert got.wait(60)
"""
TASKS = """
class Proactor(asyncio.SelectorEventLoop):
    def add_reader(self, *arguments):
        if sys._getframe(1).f_globals["__name__"].startswith("redelivery"):
            raise NotImplementedError
        super().add_reader(*arguments)

    add_writer = add_reader

async def tasks(url):
    async with redelivery.aio.connect(url) as connection, connection.session() as session:
        await (await session.producer("orders")).send("it")
        return (await (await session.consumer("orders")).receive(timeout=60)).body

with asyncio.Runner(loop_factory=Proactor) as runner:
    assert runner.run(tasks(broker.vm_url)) == "it"
    try:
        runner.run(tasks(broker.stomp_url))
    except redelivery.UnsupportedError as error:
        print(error)
"""


class Proactor(asyncio.SelectorEventLoop):
    def add_reader(self, *_: object) -> Any:
        raise NotImplementedError

    def add_writer(self, *_: object) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("watch", [LoopRuntime.watch, LoopRuntime.when_writable])
def test_a_loop_that_cannot_watch_says_so_at_the_first_socket(watch: Callable[..., None]) -> None:
    """Where nothing had to be waited for while the connection was opened, its reader is the first."""

    async def begin() -> None:
        watch(LoopRuntime(asyncio.get_running_loop()), 0, bool)

    with asyncio.Runner(loop_factory=Proactor) as runner, pytest.raises(UnsupportedError, match="Proactor cannot"):
        runner.run(begin())


def test_stomp_without_poll(tmp_path: Path) -> None:
    """One process for all: it takes two seconds to begin."""
    parts = {"a large body": LARGE, "reconnect": RECONNECT, "close": CLOSE, "a listener": HEARD, "a loop": TASKS}
    code = "".join(f"{each}\nprint({name!r})\n" for name, each in parts.items())
    assert on_windows(f"{SESSION}{code}broker.close()", tmp_path, CLIENTS) == [
        "a large body",
        "InDoubtError",
        "reconnect",
        "close",
        "a listener",
        "asyncio's Proactor cannot watch sockets: use asyncio.Runner(loop_factory=asyncio.SelectorEventLoop);"
        " vm:// needs none",
        "a loop",
    ]


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_select_says_what_poll_says(ends: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = ends
    poller = Selecting()
    poller.register(ours.fileno(), READABLE)
    assert poller.poll(0) == poller.poll(1) == []
    theirs.send(b"!")
    assert poller.poll(None) == [(ours.fileno(), READABLE)]
    writes = Selecting()
    writes.register(ours.fileno(), WRITABLE)
    assert writes.poll(None) == [(ours.fileno(), WRITABLE)]


def test_a_descriptor_that_was_closed_ends_the_wait(ends: tuple[socket.socket, socket.socket]) -> None:
    poller = Selecting()
    for each in ends:
        poller.register(each.fileno(), READABLE)
    closed = ends[0].fileno()
    ends[0].close()
    assert closed in [descriptor for descriptor, _ in poller.poll(None)]


def test_a_connect_that_failed_shows_in_the_third_list_alone(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    poller = Selecting()
    poller.register(ends[0].fileno(), WRITABLE)

    def as_on_windows(
        _inputs: list[int], _outputs: list[int], failures: list[int], _seconds: float
    ) -> tuple[list[int], list[int], list[int]]:
        return [], [], failures

    monkeypatch.setattr(select, "select", as_on_windows)
    assert poller.poll(None) == [(ends[0].fileno(), WRITABLE)]


def test_more_sockets_are_waited_for_than_select_takes_at_once(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polls, "_AT_ONCE", 1)
    poller = Selecting()
    for each in ends:
        poller.register(each.fileno(), READABLE)
    assert poller.poll(1) == []
    ends[0].send(b"!")
    assert poller.poll(None) == [(ends[1].fileno(), READABLE)]


def test_a_number_that_select_does_not_take_is_refused(ends: tuple[socket.socket, socket.socket]) -> None:
    resource = pytest.importorskip("resource")
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] <= 2000:
        pytest.skip("no process here has so many files")
    os.dup2(ends[0].fileno(), 2000)
    try:
        with pytest.raises(UnsupportedError, match=r"too many open files: .* 2000"):
            Selecting().register(2000, READABLE)
    finally:
        os.close(2000)


@pytest.mark.long_form
def test_the_conformance_of_stomp_without_poll() -> None:
    taken = (
        "import select, sys\nfor name in ('poll', 'epoll', 'POLLIN', 'POLLOUT', 'POLLRDHUP'): delattr(select, name)\n"
    )
    files = [
        f"tests/conformance/test_{name}.py" for name in ("ack_modes", "close", "reconnect", "threads", "listeners")
    ]
    arguments = ["-q", "-n", "0", "-p", "no:cacheprovider", "-k", "stomp-embedded", *files]
    run = subprocess.run(  # noqa: S603  # our own text
        [sys.executable, "-c", f"{taken}import pytest; sys.exit(pytest.main({arguments!r}))"],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=170,
    )
    assert run.returncode == 0, run.stdout[-3000:]
