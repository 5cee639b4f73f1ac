"""From nothing to CONNECTED, within one deadline."""

from __future__ import annotations

import ssl

from redelivery.model.errors import ConnectError, ConnectionLostError, ProtocolError
from redelivery.transports.seam import Flow, TransportOptions
from redelivery.transports.stomp.codec.reader import RawFrame
from redelivery.transports.stomp.connection.engine import StompEngine
from redelivery.transports.wire.cleartext import warn_of_cleartext
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.peek import AMQP_HELLO, answers_in
from redelivery.transports.wire.sockets import Stream, connect, go_on, read, until_writable
from redelivery.transports.wire.tls import refused_by_alert


def log_in(
    options: TransportOptions, port: int, engine: StompEngine, address: str | None = None
) -> Flow[tuple[Stream, list[RawFrame]]]:
    """Connect and shake hands; also the frames that came right after the answer. ``address``: of the host's, this one.

    Raises:
        ConnectError: nobody is there, nobody answers within `connect_timeout`, or the broker refuses.
        SecurityError, InvalidClientIDError: it refuses the login, or the client id.
        ProtocolError: the port speaks another protocol.
        ConfigError: the login holds what STOMP cannot carry.
    """
    deadline = monotonic() + options.connect_timeout
    hello = memoryview(engine.connect(options.username, options.password, options.client_id))  # no repr shows it
    tls = None
    if options.scheme.endswith("+ssl"):
        tls = options.tls or ssl.create_default_context()
    stream = yield from connect(options.host, port, tls, options.connect_timeout, options.request_timeout, address)
    if tls is None and options.password is not None:
        warn_of_cleartext(options.host, stream.address, "STOMP's CONNECT", "stomp+ssl://")
    try:
        frames = yield from _shake_hands(stream, engine, hello, deadline)
        return stream, frames
    except BaseException as error:
        stream.close()
        if isinstance(error, ConnectionLostError):
            alert = refused_by_alert(error.__cause__)
            wants = "TLS (stomp+ssl://) or not" if tls is None else "a client certificate"
            raise ConnectError(
                f"{stream.name}: {alert}"
                if alert
                else f"{error} instead of answering CONNECT: is it a STOMP port, and does it want {wants}?"
            ) from error
        if isinstance(error, TimeoutError):
            if tls is None and (yield from answers_in(options.host, port, AMQP_HELLO)) == "AMQP":
                raise ProtocolError(
                    f"{stream.name} does not speak STOMP, it speaks AMQP: use amqp://, or the broker's port for STOMP, "
                    "as a rule 61613"
                ) from None
            raise ConnectError(
                f"{stream.name} did not answer CONNECT within connect_timeout={options.connect_timeout:g} s"
            ) from error
        raise


def _shake_hands(stream: Stream, engine: StompEngine, rest: memoryview, deadline: float) -> Flow[list[RawFrame]]:
    while rest:
        rest = rest[stream.send(rest) :]
        if rest:
            yield from until_writable(stream, deadline)
    while True:
        data = yield from read(stream, deadline)
        frames = engine.connected(data, monotonic())
        if frames is not None:
            return frames
        yield from go_on(deadline)
