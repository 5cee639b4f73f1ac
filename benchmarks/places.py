"""Where a case runs: the fake peer, or an ActiveMQ Classic. Both give a queue with messages and check it afterwards."""

from __future__ import annotations

import json
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRWPair
from itertools import count
from typing import Any, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

ANSWER_TIMEOUT = 60.0  # seconds


class Place(Protocol):
    """What a contender is let loose on."""

    kind: str
    name: str
    url: str

    def prepare(self, messages: int, size: int = 1024, kind: str = "text") -> str:
        """The name of a queue that holds so many messages; 0 for one to send to."""

    def finish(self, queue: str, *, sent: int | None = None, acked: int | None = None) -> None:
        """After the client has left: check what arrived and leave nothing behind. Raises BenchmarkError."""


class BenchmarkError(Exception):
    """A run that did not do its work: its time means nothing."""


def read_line(process: subprocess.Popen[bytes], what: str) -> str:
    """The next line that a child writes, waited for at most ANSWER_TIMEOUT."""
    assert process.stdout is not None, "started with a pipe"
    if not select.select([process.stdout], [], [], ANSWER_TIMEOUT)[0]:
        raise BenchmarkError(f"{what} wrote nothing for {ANSWER_TIMEOUT:.0f} s")
    line = process.stdout.readline()
    if not line:
        raise BenchmarkError(f"{what} has ended with code {process.wait()}")
    return line.decode()


class FakePlace:
    """`benchmarks.fake_peer` in its own process."""

    kind = "fake"
    name = "fake peer"

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.url = f"stomp://127.0.0.1:{int(read_line(process, 'the fake peer'))}"

    def prepare(self, messages: int, size: int = 1024, kind: str = "text") -> str:
        return f"bench.{messages}.{size}.{kind}"

    def finish(self, queue: str, *, sent: int | None = None, acked: int | None = None) -> None:
        counts: dict[str, Any] = json.loads(read_line(self.process, "the fake peer"))
        for name, wanted in (("SEND", sent), ("ACK", acked)):
            if wanted is not None and counts[name] != wanted:
                raise BenchmarkError(f"{queue}: the peer saw {counts[name]} {name} frames instead of {wanted}")


@contextmanager
def fake_place() -> Iterator[FakePlace]:
    """The fake peer, started and stopped."""
    command = [sys.executable, "-m", "benchmarks.fake_peer"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as process:  # noqa: S603  a fixed command
        try:
            yield FakePlace(process)
        finally:
            process.terminate()


class ClassicPlace:
    """A running ActiveMQ Classic; its queues are filled and drained by plain frames, outside the measured time."""

    kind = "classic"

    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.url = url
        self._prefix = f"redelivery.bench.{uuid4().hex[:8]}"
        self._numbers = count()

    def prepare(self, messages: int, size: int = 1024, kind: str = "text") -> str:
        assert kind == "text", "a real broker is given texts only"
        queue = f"{self._prefix}.{next(self._numbers)}"
        if messages:
            frame = b"SEND\ndestination:/queue/%b\npersistent:false\n%%b\n%b\0" % (queue.encode(), b"x" * size)
            with _conversation(self.url) as talk:
                for _ in range(messages - 1):
                    talk.write(frame % b"")
                talk.write(frame % b"receipt:all\n")
                talk.flush()
                _lines_to(talk, b"receipt-id:all")
        return queue

    def finish(self, queue: str, *, sent: int | None = None, acked: int | None = None) -> None:
        with _conversation(self.url) as talk:
            if acked is not None:
                talk.write(b"SUBSCRIBE\nid:1\ndestination:/queue/%b\nbrowser:true\n\n\0" % queue.encode())
                talk.flush()
                left = _lines_to(talk, b"browser:end").count(b"MESSAGE") - 1  # the end mark is one too
                if left:
                    raise BenchmarkError(f"{queue}: {left} messages or more were not acknowledged")
            if sent is not None:
                talk.write(b"SUBSCRIBE\nid:2\ndestination:/queue/%b\nack:auto\n\n\0" % queue.encode())
                talk.flush()
                for _ in range(sent):
                    _lines_to(talk, b"MESSAGE")


@contextmanager
def _conversation(url: str) -> Iterator[BufferedRWPair]:
    parts = urlsplit(url)
    with (
        socket.create_connection((parts.hostname, parts.port), timeout=ANSWER_TIMEOUT) as connection,
        connection.makefile("rwb") as talk,
    ):
        login = f"login:{parts.username}\npasscode:{parts.password}\n" if parts.username else ""
        talk.write(f"CONNECT\naccept-version:1.2\nhost:/\n{login}\n\0".encode())
        talk.flush()
        _lines_to(talk, b"CONNECTED")
        yield talk


def _lines_to(talk: BufferedRWPair, wanted: bytes) -> list[bytes]:
    """The lines up to one that is ``wanted``. Raises BenchmarkError for an ERROR or the end of the stream."""
    lines: list[bytes] = []
    while not lines or lines[-1] != wanted:
        line = talk.readline()
        if not line or line == b"ERROR\n":
            raise BenchmarkError(f"waiting for {wanted!r}, got {line!r} {talk.readline()!r}")
        lines.append(line.rstrip(b"\r\n"))
    return lines
