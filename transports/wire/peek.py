"""Asking a silent peer what it speaks, on a connection of its own."""

from __future__ import annotations

from typing import Final

from redelivery.model.errors import JMSError
from redelivery.transports.seam import Flow, Readable
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.signatures import protocol_of
from redelivery.transports.wire.sockets import connect

AMQP_HELLO: Final = b"AMQP\x03\x01\x00\x00"
STOMP_HELLO: Final = b"CONNECT\naccept-version:1.2\nhost:localhost\n\n\0"
_PATIENCE: Final = 1.0  # seconds for an answer in another protocol


def answers_in(host: str, port: int, hello: bytes) -> Flow[str | None]:
    """The protocol of a peer that was silent, if it answers this on a new connection within a second; else None.

    Some brokers say nothing to what is not theirs (Artemis and HornetQ on either port, all four on that of STOMP).
    """
    try:
        stream = yield from connect(host, port, None, _PATIENCE)
    except JMSError:
        return None
    try:
        stream.send(hello)
        yield Readable(stream, monotonic() + _PATIENCE)
        data = stream.receive()
    except JMSError:
        return None
    finally:
        stream.close()
    return protocol_of(data or b"")
