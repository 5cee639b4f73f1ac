"""Queues of a real broker filled and emptied by plain AMQP frames, outside the measured time."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit
from uuid import uuid4

from benchmarks.naming import AmqpNames
from benchmarks.peers.amqp_feed import DIGITS, frame, message
from benchmarks.peers.values import NULL, Encoded, Small, Symbol, described, descriptor, fields_of, number, scalar
from benchmarks.results import BenchmarkError

ANSWER_TIMEOUT = 60.0  # seconds
SASL, AMQP = b"AMQP\x03\x01\x00\x00", b"AMQP\x00\x01\x00\x00"
OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
REFUSALS = (DETACH, END, CLOSE)
WINDOW = (1 << 31) - 1
CREDIT = 100  # ActiveMQ Classic sleeps over more than it pages at once
BURST = 50  # transfers in one write


class Session:
    """One connection with one session and one link."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._rest = b""
        self._came: deque[tuple[int, list[bytes]]] = deque()

    def say(self, code: int, *fields: object, payload: bytes = b"", kind: int = 0) -> None:
        """Write one performative."""
        self.socket.sendall(frame(described(code, list(fields)) + payload, 0, kind))

    def log_in(self, host: str, user: str | None, password: str) -> None:
        """SASL, open, begin."""
        self.socket.sendall(SASL)
        self.header()
        self.next(0x40)
        secret = f"\0{user}\0{password}".encode() if user else b""
        self.say(0x41, Symbol("PLAIN" if user else "ANONYMOUS"), secret, kind=1)
        if number(self.next(0x44)[0]):
            raise BenchmarkError(f"the broker does not let {user or 'anonymous'} in")
        self.socket.sendall(AMQP)
        self.header()
        self.say(OPEN, f"bench-{uuid4().hex}", host)
        self.say(BEGIN, None, 0, WINDOW, WINDOW)
        self.next(BEGIN)

    def attach(self, names: AmqpNames, queue: str, *, receives: bool) -> int:
        """A link to or from the queue; the sender's delivery count."""
        capability = Symbol(names.capability) if names.capability else None
        here = names.there(queue) if receives else names.prefix + queue
        source = [here, *[None] * 9, capability] if receives else []
        target = [] if receives else [here, 1 if names.durable else None, *[None] * 4, capability]
        modes = (Small(0), Small(0))
        self.say(ATTACH, queue, 0, receives, *modes, described(0x28, source), described(0x29, target), None, None, 0)
        fields = self.next(ATTACH)
        return number(fields[9]) if len(fields) > 9 else 0

    def grant(self, received: int, count: int, credit: int) -> None:
        """Let so many more messages come."""
        self.say(FLOW, received, WINDOW, 0, WINDOW, 0, count, credit)

    def header(self) -> None:
        """Read the protocol's."""
        while len(self._rest) < 8:
            self._rest += self._receive()
        self._rest = self._rest[8:]

    def next(self, *wanted: int) -> list[bytes]:
        """The fields of the next performative that is wanted. Raises BenchmarkError for a refusal."""
        while True:
            self._parse()
            while self._came:
                code, fields = self._came.popleft()
                if code in wanted:
                    return fields
                if code in REFUSALS:
                    raise BenchmarkError(f"the broker ended the link: {b' '.join(fields)!r}")
            self._rest += self._receive()

    def more(self) -> bool:
        """Whether something has been read and not looked at."""
        return bool(self._came)

    def _parse(self) -> None:
        data, at = self._rest, 0
        while len(data) - at >= 8 and data[at : at + 4] != b"AMQP":
            size = int.from_bytes(data[at : at + 4], "big")
            if len(data) - at < size:
                break
            if size > 8:
                body = at + 4 * data[at + 4]
                code, inner = descriptor(data[body : body + 64])
                self._came.append((code, fields_of(data, body + inner)[0]))
            at += size
        self._rest = data[at:]

    def _receive(self) -> bytes:
        data = self.socket.recv(1 << 18)
        if not data:
            raise BenchmarkError("the broker closed the connection")
        return data


class PlainAmqp:
    """Of one broker; each call is a connection."""

    def __init__(self, url: str, names: AmqpNames) -> None:
        self._url, self._names = url, names

    def fill(self, queue: str, messages: int, size: int) -> None:
        """So many non-durable texts."""
        head, body = message(size, "text", durable=False, to=self._names.prefix + queue)
        with session_at(self._url) as session:
            count = session.attach(self._names, queue, receives=False)
            sent = confirmed = limit = window = 0
            while confirmed < messages:
                able = min(messages, limit, window, sent + BURST)
                if sent < able:
                    session.socket.sendall(b"".join(_transfer(each, head, body) for each in range(sent, able)))
                    sent = able
                    continue
                fields = session.next(FLOW, DISPOSITION)
                if scalar(fields[0]) is True:
                    confirmed += 1 + number(fields[2], number(fields[1])) - number(fields[1])
                    if descriptor(fields[4])[0] != 0x24:
                        raise BenchmarkError(f"the broker did not accept a message: {fields[4]!r}")
                else:
                    window = number(fields[0]) + number(fields[1])
                    if len(fields) > 6 and fields[4] != NULL:
                        limit = number(fields[5], count) + number(fields[6]) - count

    def empty(self, queue: str, messages: int) -> None:
        """Take so many messages away."""
        with session_at(self._url) as session:
            count = session.attach(self._names, queue, receives=True)
            frames = taken = granted = 0
            while taken < messages:
                if granted - taken < CREDIT // 2 and granted < messages:
                    granted = min(messages, taken + CREDIT)
                    session.grant(frames, count + taken, granted - taken)
                fields = session.next(TRANSFER)
                frames += 1
                if len(fields) > 5 and scalar(fields[5]) is True:
                    continue
                taken += 1
                if not session.more() or taken == messages:
                    session.say(DISPOSITION, True, 0, taken - 1, True, described(0x24, []))

    def is_empty(self, queue: str, patience: float) -> bool:
        """Whether nothing comes within that many seconds; what was left stays."""
        with session_at(self._url) as session:
            count = session.attach(self._names, queue, receives=True)
            session.grant(0, count, 1)
            session.socket.settimeout(patience)
            try:
                session.next(TRANSFER)
            except TimeoutError:
                return True
            finally:
                session.socket.settimeout(ANSWER_TIMEOUT)
            return False


@contextmanager
def session_at(url: str) -> Iterator[Session]:
    """Connected and logged in; closed on leaving."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    with socket.create_connection((host, parts.port), timeout=ANSWER_TIMEOUT) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session = Session(connection)
        session.log_in(host, unquote(parts.username) if parts.username else None, unquote(parts.password or ""))
        yield session
        session.say(CLOSE)
        session.next(CLOSE)


def _transfer(delivery: int, head: bytes, body: bytes) -> bytes:
    tag = Encoded(b"\xa0\x04" + delivery.to_bytes(4, "big"))
    payload = head.replace(DIGITS, b"%08x" % delivery) + body
    return frame(described(TRANSFER, [0, delivery, tag, 0, False, False]) + payload)
