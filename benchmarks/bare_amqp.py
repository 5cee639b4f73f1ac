"""A loop over a bare socket at the fake AMQP peer: what `benchmarks.bare` is over STOMP.

It knows how the peer writes: a performative begins at the ninth byte of a frame with a code of one byte, a message is
one frame, and its body are the last bytes of it.
"""

from __future__ import annotations

import socket
from typing import Final

from benchmarks.bare import more
from benchmarks.naming import AMQP
from benchmarks.peers.amqp_feed import DIGITS, NUMBER, TAG, frame, message, transfer
from benchmarks.peers.values import Encoded, Small, described, fields_of, number
from benchmarks.places import Place
from benchmarks.plain_amqp import ATTACH, DISPOSITION, FLOW, TRANSFER, Session, session_at
from benchmarks.stopwatch import Spent, Stopwatch

_CREDIT: Final = 1000
_SIZE: Final = 1024
_CODE: Final = 10  # where the code of a performative is
_ACCEPTED: Final = described(0x24, [])
_FIRST, _LAST, _NAME = b"~fi~", b"~la~", b"~tx~"


def _disposition(state: Encoded) -> bytes:
    numbers = (Encoded(b"\x70" + _FIRST), Encoded(b"\x70" + _LAST))
    return frame(described(DISPOSITION, [True, *numbers, True, state]))


def _request(body: Encoded) -> bytes:
    """To the coordinator, on handle 1."""
    return frame(transfer(1, first=True, more=False) + described(0x77, body))


_SETTLE: Final = _disposition(_ACCEPTED)
_ENLIST: Final = _disposition(described(0x34, [_NAME, _ACCEPTED]))
_DECLARE: Final = _request(described(0x31, []))
_DISCHARGE: Final = _request(described(0x32, [_NAME, False]))


def consume(place: Place, queue: str, count: int, *, each: bool = False, read: bool = True) -> Spent:
    """Body and id of every message; one disposition for those of one read, or ``each`` in a write of its own."""
    length = taken = 0
    with session_at(place.url) as session:
        watch = Stopwatch()
        receiver = _Receiver(session, queue)
        while taken < count:
            first = taken
            for each_frame in receiver.frames():
                if each_frame[_CODE] != TRANSFER:
                    continue
                if read:
                    length += _read(each_frame)
                if each:
                    session.socket.sendall(_numbered(_SETTLE, taken, taken))
                taken += 1
            if not each and first < taken:
                session.socket.sendall(_numbered(_SETTLE, first, taken - 1))
            receiver.grant(taken)
        return watch.stop()


def commit(place: Place, queue: str, count: int, *, batch: int) -> Spent:
    """Body and id of every message; a batch's disposition, its discharge and the next declaration in one write."""
    length = taken = done = 0
    with session_at(place.url) as session:
        watch = Stopwatch()
        session.say(ATTACH, "coordinator", 1, False, Small(0), Small(0), described(0x28, []), described(0x30, []))
        session.next(ATTACH)
        session.next(FLOW)
        receiver = _Receiver(session, queue)
        session.socket.sendall(_sent(_DECLARE, 0))
        requests, unanswered, name = 1, 1, b""
        while done < count:
            for each in receiver.frames():
                if each[_CODE] == TRANSFER:
                    length += _read(each)
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
            receiver.grant(taken)
        return watch.stop()


def send(place: Place, queue: str, count: int, *, window: int) -> Spent:
    """Confirmed, with at most ``window`` open."""
    head, body = message(_SIZE, "text", to=queue)
    template = frame(transfer(0, first=True, more=False) + head + body)
    with session_at(place.url) as session:
        watch = Stopwatch()
        session.attach(AMQP[place.broker], queue, receives=False)
        session.next(FLOW)
        frames = _Frames(session.socket)
        written = answered = 0
        while answered < count:
            able = range(written, min(count, answered + window))
            if able:
                session.socket.sendall(
                    b"".join([_sent(template, each).replace(DIGITS, b"%08x" % each) for each in able])
                )
                written = able.stop
            for each in frames.next():
                if each[_CODE] == DISPOSITION:
                    _, _, last = fields_of(each, _CODE + 1, 3)[0]
                    answered = number(last) + 1
        return watch.stop()


class _Frames:
    def __init__(self, connection: socket.socket) -> None:
        self._connection, self._rest = connection, b""

    def next(self) -> list[bytes]:
        """The whole frames of the next read."""
        data, at, found = self._rest + more(self._connection), 0, []
        while len(data) - at >= 8:
            end = at + int.from_bytes(data[at : at + 4], "big")
            if end > len(data):
                break
            found.append(data[at:end])
            at = end
        self._rest = data[at:]
        return found


class _Receiver:
    """Handle 0; the peer numbers what it sends from 0."""

    def __init__(self, session: Session, queue: str) -> None:
        session.attach(AMQP["fake"], queue, receives=True)
        self._session, self._granted = session, 0
        self.frames = _Frames(session.socket).next
        self.grant(0)

    def grant(self, taken: int) -> None:
        """More credit, where half of it is used up."""
        if self._granted - taken <= _CREDIT // 2:
            self._session.grant(taken, taken, _CREDIT)
            self._granted = taken + _CREDIT


def _read(message: bytes) -> int:
    at = message.index(b"ID:")
    return len(message[at : at + message[at - 1]].decode()) + len(message[-_SIZE:].decode())


def _numbered(template: bytes, first: int, last: int) -> bytes:
    return template.replace(_FIRST, first.to_bytes(4, "big")).replace(_LAST, last.to_bytes(4, "big"))


def _sent(template: bytes, delivery: int) -> bytes:
    return template.replace(NUMBER, delivery.to_bytes(4, "big")).replace(TAG, delivery.to_bytes(4, "big"))
