"""Queues of a real broker filled and emptied by plain STOMP frames, outside the measured time."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRWPair
from urllib.parse import urlsplit

from benchmarks.naming import StompNames
from benchmarks.results import BenchmarkError

ANSWER_TIMEOUT = 60.0  # seconds


class PlainStomp:
    """Of one broker; each call is a connection."""

    def __init__(self, url: str, names: StompNames) -> None:
        self._url, self._names = url, names

    def fill(self, queue: str, messages: int, size: int) -> None:
        """So many texts, non-persistent without a word: RabbitMQ takes ``persistent:false`` for one of the queue."""
        lines = _headers({"destination": self._names.prefix + queue} | dict(self._names.send))
        frame = b"SEND\n%b%%b\n%b\0" % (lines, b"x" * size)
        with self._logged_in() as (session, _):
            for _ in range(messages - 1):
                session.write(frame % b"")
            session.write(frame % b"receipt:all\n")
            session.flush()
            _lines_to(session, b"receipt-id:all")

    def empty(self, queue: str, messages: int) -> None:
        """Take so many messages away."""
        with self._logged_in() as (session, _):
            self._subscribe(session, queue)
            for _ in range(messages):
                _lines_to(session, b"MESSAGE")

    def is_empty(self, queue: str, patience: float) -> bool:
        """Whether nothing comes within that many seconds; otherwise what was left is lost."""
        with self._logged_in() as (session, connection):
            self._subscribe(session, queue)
            connection.settimeout(patience)
            try:
                _lines_to(session, b"MESSAGE")
            except TimeoutError:
                return True
            return False

    def _subscribe(self, session: BufferedRWPair, queue: str) -> None:
        headers = {"id": "1", "destination": self._names.there(queue), "ack": "auto"} | dict(self._names.subscribe)
        session.write(b"SUBSCRIBE\n%b\n\0" % _headers(headers))
        session.flush()

    @contextmanager
    def _logged_in(self) -> Iterator[tuple[BufferedRWPair, socket.socket]]:
        parts = urlsplit(self._url)
        with (
            socket.create_connection((parts.hostname, parts.port), timeout=ANSWER_TIMEOUT) as connection,
            connection.makefile("rwb") as session,
        ):
            login = {"login": parts.username, "passcode": parts.password or ""} if parts.username else {}
            session.write(b"CONNECT\n%b\n\0" % _headers({"accept-version": "1.2", "host": "/"} | login))
            session.flush()
            _lines_to(session, b"CONNECTED")
            yield session, connection


def _headers(headers: dict[str, str]) -> bytes:
    return "".join(f"{name}:{value}\n" for name, value in headers.items()).encode()


def _lines_to(session: BufferedRWPair, wanted: bytes) -> None:
    """Read up to a line that is ``wanted``. Raises BenchmarkError for an ERROR or the end of the stream."""
    while True:
        line = session.readline()
        if not line or line == b"ERROR\n":
            raise BenchmarkError(f"waiting for {wanted!r}, got {line!r} {session.readline()!r}")
        if line.strip(b"\0\r\n") == wanted:
            return
