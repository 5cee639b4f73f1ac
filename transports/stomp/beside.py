"""Questions to the broker on a connection of their own, since the answer may be its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from redelivery.model.errors import ConnectionLostError, JMSError
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.seam import Flow
from redelivery.transports.stomp.codec.frames import Frame, encode
from redelivery.transports.stomp.codec.reader import RawFrame
from redelivery.transports.stomp.connection.engine import StompEngine
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.sockets import Stream, read, until_writable

Login: TypeAlias = tuple[Stream, StompEngine, list[RawFrame]]  # the frames came right after CONNECTED
_MAPS: Final = "redelivery-maps"  # of the transaction before it, and the receipts


def ask(login: Login, question: bytes, receipt: str, deadline: float) -> Flow[Frame]:
    """Send frames, and wait for the RECEIPT of that name, or an ERROR, until ``deadline`` (monotonic seconds).

    Raises:
        ConnectionLostError: the broker ends the connection.
        TimeoutError: it does not answer.
    """
    stream, engine, frames = login
    yield from _send(stream, question, deadline)
    while True:
        for each in frames:
            frame = Frame(*each)
            if frame.command == "ERROR" or (frame.command == "RECEIPT" and frame.headers.get("receipt-id") == receipt):
                return frame
        frames = engine.receive((yield from read(stream, deadline)))


def _send(stream: Stream, frames: bytes, deadline: float) -> Flow[None]:
    data = memoryview(frames)
    while data:
        data = data[stream.send(data) :]
        if data:
            yield from until_writable(stream, deadline)


def answers(login: Login, question: bytes, is_all: Callable[[list[Frame]], bool], deadline: float) -> Flow[list[Frame]]:
    """Send frames, and return those that come until they are all, before ``deadline`` (monotonic seconds).

    Raises:
        ConnectionLostError: the broker ends the connection.
        TimeoutError: it does not send them.
    """
    stream, engine, frames = login
    yield from _send(stream, question, deadline)
    found: list[Frame] = []
    while True:
        found += [Frame(*each) for each in frames]
        if is_all(found):
            return found
        frames = engine.receive((yield from read(stream, deadline)))


def closes_at_maps(log_in: Flow[Login], dialect: StompDialect, timeout: float) -> Flow[bool]:
    """Check whether the broker closes a connection, without a word, at a SUBSCRIBE that asks for maps.

    Such a SUBSCRIBE without a destination is refused by a broker that has got that far, so that nothing is made. What
    comes before it must be answered. False, too, where nothing is known, since the broker is not there, or takes more
    than ``timeout`` seconds.
    """
    try:
        login = yield from log_in
    except JMSError:
        return False
    stream, engine, _ = login
    deadline = monotonic() + timeout
    transaction, receipt = ("transaction", _MAPS), ("receipt", _MAPS)
    maps = [("id", _MAPS), ("transformation", dialect.map_transformation or ""), receipt]
    before, question = (
        b"".join(encode(command, headers, version=engine.version) for command, headers in frames)
        for frames in (
            (("BEGIN", [transaction]), ("ABORT", [transaction, receipt])),
            (("SUBSCRIBE", maps),),
        )
    )
    try:
        if (yield from ask(login, before, _MAPS, deadline)).command == "ERROR":
            return False
        try:
            yield from ask((stream, engine, []), question, _MAPS, deadline)
        except ConnectionLostError:
            return True
        return False
    except (JMSError, TimeoutError):
        return False
    finally:
        stream.close()
