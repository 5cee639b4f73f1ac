"""Loops over a bare socket at the fake AMQP peer, as `benchmarks.bare` has them over STOMP.

They know how the peer writes: a performative begins at the ninth byte of a frame with a code of one byte, a message is
one frame, and its body are the last bytes of it.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from urllib.parse import urlsplit

from benchmarks.bare import EACH, more
from benchmarks.machine import Spent, Stopwatch
from benchmarks.peers.amqp_feed import DIGITS, NUMBER, TAG, Encoded, described, frame, message, symbol, transfer, ubyte
from benchmarks.places import Place
from redelivery.transports.amqp.codec.values import read

SASL, AMQP = b"AMQP\x03\x01\x00\x00", b"AMQP\x00\x01\x00\x00"
OPEN, BEGIN, ATTACH, FLOW, TRANSFER, DISPOSITION, DETACH, END, CLOSE = range(0x10, 0x19)
WINDOW: Final = (1 << 31) - 1
_CREDIT: Final = 1000
_SIZE: Final = 1024
_CODE: Final = 10  # where the code of a performative is
_ACCEPTED: Final = described(0x24, [])
_FIRST, _LAST, _NAME = b"~fi~", b"~la~", b"~tx~"


class Session:
    """A connection with one session; handle 0 is its link to or from a queue. Nothing but its begin is waited for."""

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self._rest = b""
        self._granted = 0
        connection.sendall(SASL)
        self.say(0x41, symbol("ANONYMOUS"), b"", kind=1)
        connection.sendall(AMQP)
        self.say(OPEN, "bench")
        self.say(BEGIN, None, 0, WINDOW, WINDOW)
        self.wait(BEGIN)

    def say(self, code: int, *fields: object, payload: bytes = b"", kind: int = 0) -> None:
        """Write one performative."""
        self.socket.sendall(frame(described(code, list(fields)) + payload, 0, kind))

    def attach(self, queue: str, *, receives: bool) -> None:
        """Attach the link, and give it credit; the peer numbers what it sends from 0, and takes what comes."""
        ends = (described(0x28, [queue] if receives else []), described(0x29, [] if receives else [queue]))
        self.say(ATTACH, queue, 0, receives, ubyte(0), ubyte(0), *ends, None, None, 0)
        if receives:
            self.grant(0)

    def grant(self, taken: int) -> None:
        """Give more credit, where half of it is used up."""
        if self._granted - taken <= _CREDIT // 2:
            self.say(FLOW, taken, WINDOW, 0, WINDOW, 0, taken, _CREDIT)
            self._granted = taken + _CREDIT

    def frames(self) -> list[bytes]:
        """Return the whole frames of the next read."""
        data, at, found = self._rest + more(self.socket), 0, []
        while len(data) - at >= 8:
            end = at + (8 if data[at : at + 4] == b"AMQP" else int.from_bytes(data[at : at + 4], "big"))
            if end > len(data):
                break
            if end > at + 8:
                found.append(data[at:end])
            at = end
        self._rest = data[at:]
        return found

    def wait(self, code: int) -> None:
        """Read until there was such a performative; the others are dropped."""
        while not any(each[_CODE] == code for each in self.frames()):
            pass


@contextmanager
def session_at(url: str) -> Iterator[Session]:
    """Connect to a fake peer; close on leaving."""
    with socket.create_connection(("127.0.0.1", urlsplit(url).port), timeout=60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        session = Session(connection)
        yield session
        session.say(CLOSE)
        session.wait(CLOSE)


def _disposition(state: Encoded) -> bytes:
    numbers = (Encoded(b"\x70" + _FIRST), Encoded(b"\x70" + _LAST))
    return frame(described(DISPOSITION, [True, *numbers, True, state]))


def _request(body: Encoded) -> bytes:
    """Return a request to the coordinator, on handle 1."""
    return frame(transfer(1, first=True, more=False) + described(0x77, body))


_SETTLE: Final = _disposition(_ACCEPTED)
_ENLIST: Final = _disposition(described(0x34, [_NAME, _ACCEPTED]))
_DECLARE: Final = _request(described(0x31, []))
_DISCHARGE: Final = _request(described(0x32, [_NAME, False]))


def consume(place: Place, queue: str, count: int, *, ack: str, read: bool = True) -> Spent:
    """Read body and id of every message; one disposition for those of one read, or EACH in a write of its own."""
    taken = 0
    with session_at(place.url) as session:
        watch = Stopwatch()
        session.attach(queue, receives=True)
        while taken < count:
            first = taken
            for each in session.frames():
                if each[_CODE] != TRANSFER:
                    continue
                if read:
                    _read(each)
                if ack == EACH:
                    session.socket.sendall(_numbered(_SETTLE, taken, taken))
                taken += 1
            if ack != EACH and first < taken:
                session.socket.sendall(_numbered(_SETTLE, first, taken - 1))
            session.grant(taken)
        return watch.stop()


def commit(place: Place, queue: str, count: int, *, batch: int) -> Spent:
    """Read body and id; a batch's disposition, its discharge and the next declaration are one write."""
    taken = done = 0
    with session_at(place.url) as session:
        watch = Stopwatch()
        session.say(ATTACH, "coordinator", 1, False, ubyte(0), ubyte(0), described(0x28, []), described(0x30, []))
        session.attach(queue, receives=True)
        session.socket.sendall(_sent(_DECLARE, 0))
        requests, unanswered, name = 1, 1, b""
        while done < count:
            for each in session.frames():
                if each[_CODE] == TRANSFER:
                    _read(each)
                    taken += 1
                elif each[_CODE] == DISPOSITION:
                    unanswered -= 1
                    if not unanswered:
                        done += batch if name else 0
                        name = each[-4:]  # of the transaction that is declared
            if not unanswered and done + batch <= taken:
                parts = (
                    _numbered(_ENLIST, done, done + batch - 1).replace(_NAME, name),
                    _sent(_DISCHARGE, requests).replace(_NAME, name),
                    _sent(_DECLARE, requests + 1),
                )
                session.socket.sendall(b"".join(parts))
                requests, unanswered = requests + 2, 2
            session.grant(taken)
        return watch.stop()


def send(place: Place, queue: str, count: int, *, window: int) -> Spent:
    """Send confirmed messages, with at most ``window`` open."""
    head, body = message(_SIZE, "text", to=queue)
    template = frame(transfer(0, first=True, more=False) + head + body)
    with session_at(place.url) as session:
        watch = Stopwatch()
        session.attach(queue, receives=False)
        written = answered = 0
        while answered < count:
            able = range(written, min(count, answered + window))
            if able:
                frames = [_sent(template, each).replace(DIGITS, b"%08x" % each) for each in able]
                session.socket.sendall(b"".join(frames))
                written = able.stop
            for each in session.frames():
                if each[_CODE] == DISPOSITION:
                    answered = read(each, _CODE + 1)[0][2] + 1
        return watch.stop()


def _read(message: bytes) -> tuple[str, str]:
    at = message.index(b"ID:")
    return message[at : at + message[at - 1]].decode(), message[-_SIZE:].decode()


def _numbered(template: bytes, first: int, last: int) -> bytes:
    return template.replace(_FIRST, first.to_bytes(4, "big")).replace(_LAST, last.to_bytes(4, "big"))


def _sent(template: bytes, delivery: int) -> bytes:
    return template.replace(NUMBER, delivery.to_bytes(4, "big")).replace(TAG, delivery.to_bytes(4, "big"))
