"""STOMP on an established connection: frames in, to the router; frames out, by the outbox; signs of life both ways."""

from __future__ import annotations

from typing import TypeAlias

from redelivery.model.errors import ConnectionLostError, JMSError
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.runtime import Runtime
from redelivery.transports.seam import ConnectionEvents, TransportOptions
from redelivery.transports.stomp.codec.control import ControlFrames
from redelivery.transports.stomp.codec.reader import RawFrame
from redelivery.transports.stomp.connection.engine import StompEngine
from redelivery.transports.stomp.connection.router import Router
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.connection import WireConnection
from redelivery.transports.wire.outbox import Outbox
from redelivery.transports.wire.protocol import WireOwner
from redelivery.transports.wire.sockets import Stream
from redelivery.transports.wire.threads.runtime import THREADS


class StompProtocol:
    """See `WireProtocol`."""

    def __init__(self, engine: StompEngine, router: Router, stream: Stream, owner: WireOwner) -> None:
        self._engine = engine
        self._owner = owner
        self._heard = False
        self.router = router
        self.outbox = Outbox(stream, owner)
        self.flush_now = self.outbox.flush

    @property
    def version(self) -> str:
        """The version of STOMP, as agreed on."""
        return self._engine.version

    @property
    def session(self) -> str:
        """The broker's name for this connection; empty where it does not say."""
        return self._engine.session

    def control(self) -> ControlFrames:
        """Frames of this version, for one thread."""
        return ControlFrames(self._engine.version, self._engine.host)

    def receive(self, data: bytes) -> None:
        """See `WireProtocol.receive`."""
        self._heard = True
        receipt = self._engine.reader.lone_receipt(data)
        if receipt is not None and self.router.confirm(receipt):
            return
        frames = self._engine.receive(data)
        if frames:
            self.router.route(frames)
            ending = self.router.ending
            if ending is not None and self.outbox.refusal is None:
                self.outbox.refusal = ending
                self._owner.ends()

    def flush(self) -> bool:
        """See `WireProtocol.flush`."""
        return self.router.ending is None and self.outbox.flush_quietly()

    def next_deadline(self, now: float) -> float | None:
        """See `WireProtocol.next_deadline`."""
        return self._engine.next_deadline(now)

    def quiet(self, now: float) -> bool:  # noqa: ARG002  # since the last tick
        """See `WireProtocol.quiet`."""
        return not self._heard

    def tick(self, now: float) -> float | None:
        """See `WireProtocol.tick`: a heart-beat, where it is time for one."""
        heard, self._heard = self._heard, False
        wrote, self.outbox.wrote = self.outbox.wrote, False
        beat = self._engine.tick(now, heard=heard, wrote=wrote)
        if beat and self.router.ending is None:  # as in `flush`
            self.outbox.flush_quietly(beat)
        return self._engine.next_deadline(monotonic())

    @property
    def blocked(self) -> bool:
        """See `WireProtocol.blocked`."""
        return self.outbox.blocked

    @property
    def awaits(self) -> bool:
        """See `WireProtocol.awaits`."""
        return bool(self.router.receipts or self.outbox.blocked or self.router.ending)

    def fail(self, error: JMSError) -> JMSError:
        """See `WireProtocol.fail`."""
        said = self.router.last_error
        if self.router.ending is not None:
            error = self.router.ending
        elif said is not None and str(said) not in str(error):
            error = _lost(f"{error}; the last that it said was: {said}", error)
        elif silent := self.router.closed_silently(error):
            error = _lost(f"{error}; {silent}", error)
        if hint := self.router.hint:
            error = _lost(f"{error}; {hint}", error)
        self.outbox.refusal = error
        self.router.lose(error)
        return error

    def orphan(self, error: JMSError) -> None:
        """See `WireProtocol.orphan`."""
        self.outbox.orphan(error)
        self.router.refuse(error)

    def dispose(self) -> None:
        """See `WireProtocol.dispose`."""
        self.outbox.close()


StompWire: TypeAlias = WireConnection[StompProtocol]


def stomp_wire(
    stream: Stream,
    engine: StompEngine,
    frames: list[RawFrame],
    dialect: StompDialect,
    options: TransportOptions,
    events: ConnectionEvents,
    runtime: Runtime = THREADS,
) -> StompWire:
    """A connection that begins with the frames that came right after CONNECTED.

    Raises:
        ProtocolError: as `Router.route`.
        ConnectionLostError: the broker says ERROR, and that ends the connection.
    """
    router = Router(dialect, engine.version, events.on_error)
    wire = WireConnection(
        stream, lambda owner: StompProtocol(engine, router, stream, owner), events, options.request_timeout, runtime
    )
    if frames:
        router.route(frames)
    if router.ending is not None:
        raise router.ending
    wire.start()
    return wire


def _lost(text: str, cause: JMSError) -> ConnectionLostError:
    error = ConnectionLostError(text)
    error.__cause__ = cause
    return error
