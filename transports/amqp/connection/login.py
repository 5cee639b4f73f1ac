"""From nothing to the peer's open, within one deadline."""

from __future__ import annotations

import ssl
import uuid
from dataclasses import replace
from typing import Any, Final

import proton
from cproton_ffi import lib

from redelivery.model.errors import (
    ConfigError,
    ConnectError,
    ConnectionLostError,
    InvalidClientIDError,
    JMSError,
    ProtocolError,
    SecurityError,
)
from redelivery.model.suggestions import unknown_option
from redelivery.transports.amqp.codec.errors import broker_error
from redelivery.transports.amqp.connection.sasl import HEADER, Sasl, mechanisms
from redelivery.transports.amqp.engine import AmqpEngine
from redelivery.transports.dialects.detect import amqp_virtual_host
from redelivery.transports.dialects.rabbitmq import OLD_PROTOCOL, closed_after_login
from redelivery.transports.dialects.refusals import AMQP_DENIED_AT_FIRST
from redelivery.transports.seam import Flow, Pause, TransportOptions
from redelivery.transports.wire.cleartext import warn_of_cleartext
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.peek import STOMP_HELLO, answers_in
from redelivery.transports.wire.signatures import protocol_of
from redelivery.transports.wire.sockets import Stream, connect, go_on, read, until_writable
from redelivery.transports.wire.tls import refused_by_alert

VHOST: Final = "amqp.vhost"
MAX_FRAME: Final = "amqp.maxFrameSize"
IDLE: Final = "amqp.idleTimeout"
MECHANISMS: Final = "amqp.saslMechanisms"
_KNOWN: Final = (VHOST, MAX_FRAME, IDLE, MECHANISMS)
_SOLE: Final = "sole-connection-for-container"
_TAKEN: Final = "amqp:invalid-field"
_MOST: Final = 2**32 - 1
_OLD: Final = (b"\x00\x00\x09\x01", b"\x01\x01\x00\x09", b"\x01\x01\x00\x0a")  # AMQP 0-9-1, 0-9, 0-10
_DEFAULT_FRAME: Final = 1 << 20  # Qpid JMS's
_PAUSES: Final = (0.25, 0.5, 1.0)  # seconds, before it is asked again


def log_in(options: TransportOptions, port: int) -> Flow[tuple[Stream, AmqpEngine]]:
    """Connect, authenticate, and open.

    Raises:
        ConnectError: nobody is there, nobody answers within `connect_timeout`, or the broker refuses.
        SecurityError, InvalidClientIDError: it refuses the login, or the client id.
        ProtocolError: the port speaks another protocol.
        ConfigError: an option of the URL is not known, or malformed.
        UnsupportedError: a mechanism of SASL is asked for that we do not have.
    """
    deadline = monotonic() + options.connect_timeout
    for pause in _PAUSES:
        try:
            return (yield from _try_to_log_in(options, port))
        except SecurityError as error:
            if AMQP_DENIED_AT_FIRST not in str(error) or monotonic() + pause >= deadline:
                raise
        yield Pause(pause)
        options = replace(options, connect_timeout=deadline - monotonic())
    return (yield from _try_to_log_in(options, port))


def _try_to_log_in(options: TransportOptions, port: int) -> Flow[tuple[Stream, AmqpEngine]]:
    deadline = monotonic() + options.connect_timeout
    engine, sasl = _engine(options), _sasl(options)
    tls = None
    if options.scheme == "amqps":
        tls = options.tls or ssl.create_default_context()
    stream = yield from connect(options.host, port, tls, options.connect_timeout, options.request_timeout)
    try:
        yield from _shake_hands(stream, engine, sasl, deadline, options.host if tls is None else None)
    except BaseException as error:
        stream.close()
        engine.dispose()
        if isinstance(error, ConnectionLostError) and sasl.done:
            why = closed_after_login(options.username, options.params.get(VHOST, options.vhost))
            raise ConnectError(f"{error}, after it had taken the login: {why}") from error
        if isinstance(error, ConnectionLostError):
            alert = refused_by_alert(error.__cause__)
            wants = "TLS (amqps://) or not" if tls is None else "a client certificate"
            raise ConnectError(
                f"{stream.name}: {alert}"
                if alert
                else f"{error} instead of answering: is it an AMQP 1.0 port, and does it want {wants}?"
            ) from error
        if isinstance(error, TimeoutError):
            if tls is None and sasl.silent and (yield from answers_in(options.host, port, STOMP_HELLO)) == "STOMP":
                raise ProtocolError(_wrong_port(stream, "speaks STOMP")) from None
            raise ConnectError(
                f"{stream.name} did not answer within connect_timeout={options.connect_timeout:g} s: "
                "is it an AMQP 1.0 port?"
            ) from None
        raise
    return stream, engine


def check_params(options: TransportOptions) -> None:
    """Raise ConfigError where an option of the URL is not ours, or malformed."""
    for name in options.params:
        if name not in _KNOWN:
            raise ConfigError(unknown_option(name, _KNOWN, of=f"{options.scheme}://"))
    _number(options, MAX_FRAME, _DEFAULT_FRAME, least=512)  # AMQP 1.0 §2.4.1
    _number(options, IDLE, 0, least=0)
    _sasl(options)


def _engine(options: TransportOptions) -> AmqpEngine:
    check_params(options)
    engine = AmqpEngine()
    transport, connection = engine.transport, engine.connection
    connection.container = options.client_id or f"redelivery-{uuid.uuid4()}"
    if options.client_id is not None:  # JMS: it is one connection's; brokers that are not asked take a second one
        connection.desired_capabilities = proton.SymbolList([_SOLE])
    connection.hostname = _virtual_host(options)
    transport.max_frame_size = _number(options, MAX_FRAME, _DEFAULT_FRAME, least=512)
    # of what the peer is asked for: it must send something twice as often
    idle = _number(options, IDLE, 0, least=0) / 1000 if IDLE in options.params else 2 * options.heartbeat
    if idle:
        transport.idle_timeout = idle
    engine.bind()
    connection.open()
    return engine


def _sasl(options: TransportOptions) -> Sasl:
    choice = mechanisms(options.params.get(MECHANISMS, ""), options.username, encrypted=options.scheme == "amqps")
    return Sasl(choice, options.username, options.password, _virtual_host(options))


def _virtual_host(options: TransportOptions) -> str:
    named = options.host if options.vhost is None else amqp_virtual_host(options.dialect, options.vhost)
    return options.params.get(VHOST, named)


def _number(options: TransportOptions, name: str, default: int, *, least: int) -> int:
    digits = options.params.get(name, str(default))
    if not digits.isdecimal() or len(digits) > 10 or not least <= int(digits) <= _MOST:
        raise ConfigError(f"{name}={digits[:40]!r} must be an integer from {least} to {_MOST}")
    return int(digits)


class _Answer:
    """The answer of the peer's first frames."""

    def __init__(self, engine: AmqpEngine) -> None:
        self.opened = False
        self.error: JMSError | None = None
        self._engine = engine
        self.handlers = {
            lib.PN_CONNECTION_REMOTE_OPEN: self._on_open,
            lib.PN_CONNECTION_REMOTE_CLOSE: self._on_close,
            lib.PN_TRANSPORT_ERROR: self._on_error,
        }

    def _on_open(self, _: Any) -> None:
        self.opened = True

    def _on_close(self, _: Any) -> None:
        condition, connection = self._engine.connection.remote_condition, self._engine.connection
        error = broker_error(condition, "connecting")
        if condition is not None and condition.name == _TAKEN and connection.desired_capabilities:
            # what we have asked for beside, as Qpid JMS reads it; Artemis says no more
            error = InvalidClientIDError(f"client id {connection.container!r} is another connection's: {error}")
        known = isinstance(error, (SecurityError, InvalidClientIDError))
        self.error = error if known else ConnectError(str(error))

    def _on_error(self, _: Any) -> None:
        self.error = ProtocolError(f"connecting: the broker breaks the rules of AMQP 1.0: {self._engine.failure}")


def _shake_hands(
    stream: Stream, engine: AmqpEngine, sasl: Sasl, deadline: float, cleartext_to: str | None
) -> Flow[None]:
    yield from _write(stream, HEADER, deadline)
    start = b""
    while not sasl.done:
        data = yield from read(stream, deadline)
        if len(start) < len(HEADER):
            start += data
            _check_protocol(stream, start)
        answers = memoryview(sasl.receive(data))  # which shows no password
        if sasl.mechanism == "PLAIN" and cleartext_to is not None:
            warn_of_cleartext(cleartext_to, stream.address, "SASL PLAIN", "amqps://")
        yield from _write(stream, answers, deadline)
        yield from go_on(deadline)
    answer = _Answer(engine)
    data = sasl.rest
    while True:
        if data:
            try:
                engine.receive(data)
            finally:
                engine.dispatch(answer.handlers)
                if answer.error is not None:
                    raise answer.error
            if answer.opened and not _refusal_follows(engine):
                return
        while view := engine.output()[0]:
            yield from _write(stream, view, deadline)
            engine.written(len(view))
        yield from go_on(deadline)
        data = yield from read(stream, deadline)


def _write(stream: Stream, data: bytes | memoryview, deadline: float) -> Flow[None]:
    while data:
        sent = stream.send(data)
        if not sent:
            yield from until_writable(stream, deadline)
        data = data[sent:]


def _refusal_follows(engine: AmqpEngine) -> bool:
    """Check whether the open is only there to carry a close (AMQP 1.0 management of refusals: Classic and Artemis)."""
    properties = engine.connection.remote_properties or {}
    return bool(properties.get(proton.symbol("amqp:connection-establishment-failed")))


def _check_protocol(stream: Stream, start: bytes) -> None:
    if not HEADER.startswith(start[:4]):
        known = protocol_of(start)
        if known == "STOMP":
            raise ProtocolError(_wrong_port(stream, "speaks STOMP"))
        raise ProtocolError(
            f"{stream.name} does not speak AMQP 1.0, it {f'speaks {known}' if known else 'says'} {start[:40]!r}"
        )
    if start[4:8] in _OLD:
        raise ProtocolError(f"{stream.name} speaks AMQP 0-9-1, not AMQP 1.0: {OLD_PROTOCOL}")


def _wrong_port(stream: Stream, speaks: str) -> str:
    return (
        f"{stream.name} does not speak AMQP 1.0, it {speaks}: use stomp://, or the broker's port for AMQP, "
        "as a rule 5672"
    )
