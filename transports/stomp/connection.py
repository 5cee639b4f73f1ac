"""An established STOMP connection: engine, way in, way out, and what the housekeeping thread does for it."""

from __future__ import annotations

import threading

from redelivery.model.errors import ConnectionLostError, JMSError
from redelivery.transports.base import ConnectionEvents, TransportOptions
from redelivery.transports.dialects.dialect import StompDialect
from redelivery.transports.stomp.engine import Engine
from redelivery.transports.stomp.reader import RawFrame
from redelivery.transports.stomp.router import Router
from redelivery.transports.wire.clock import monotonic
from redelivery.transports.wire.housekeeping import housekeeper
from redelivery.transports.wire.leader import Leader
from redelivery.transports.wire.outbox import Outbox
from redelivery.transports.wire.socket import Stream

_TOGETHER_FOR = 0.003  # seconds that acknowledgements and asynchronous sends wait for company
_STAND_IN_AFTER = 0.005  # seconds that an answer may wait for somebody who reads


class StompConnection:
    """From CONNECTED to the end. Thread-safe."""

    def __init__(
        self, stream: Stream, engine: Engine, dialect: StompDialect, options: TransportOptions, events: ConnectionEvents
    ) -> None:
        self._stream = stream
        self._engine = engine
        self._events = events
        self._mutex = threading.Lock()
        self._over = False
        self._heard = False
        self._stands_in = False  # `_stand_in` will come
        self.closing = False  # by our own will: then nobody is told
        self.router = Router(dialect, engine.version, events.on_error)
        self.outbox = Outbox(stream, options.request_timeout, self.lose, self._flush_soon, self._read_for_others)
        self.leader = Leader(stream, self._receive, self.lose, self._nobody_reads, self.outbox.close)

    def start(self, frames: list[RawFrame]) -> None:
        """Begin, with what came after CONNECTED. Raises as `Router.route`."""
        if frames:
            self.router.route(frames)
        housekeeper().enter(self)
        due = self._engine.next_deadline(monotonic())
        if due is not None:
            housekeeper().at(due, self._tick)

    def stand_in(self) -> None:
        """An answer is awaited by nobody who reads: soon the housekeeping thread does."""
        if not self._stands_in:
            self._stands_in = True
            housekeeper().at(monotonic() + _STAND_IN_AFTER, self._stand_in)

    def lose(self, error: JMSError) -> None:
        """The end, for whatever reason; only the first counts. Holds no lock while it tells."""
        with self._mutex:
            if self._over:
                return
            self._over = True
        said = self.router.last_error
        if said is not None and str(said) not in str(error):
            lost = ConnectionLostError(f"{error}; the last that it said was: {said}")
            lost.__cause__ = error
            error = lost
        self.outbox.refusal = error
        self.router.lose(error)
        self.leader.stop(error)
        housekeeper().leave(self, self._flush, self._tick, self._stand_in, watch=self._look)
        if not self.closing:
            self._events.on_lost(error)

    def orphan(self) -> None:
        """See `wire.housekeeping.Owner`."""
        error = ConnectionLostError("the connection was made before fork() and is the parent's: make one in the child")
        self._over = self.closing = True
        self.outbox.orphan(error)
        self.router.refuse(error)
        self.leader.orphan(error)

    def _receive(self, data: bytes) -> None:
        self._heard = True
        frames = self._engine.receive(data)
        if frames:
            self.router.route(frames)

    # called by the way out and the way in

    def _flush_soon(self) -> None:
        housekeeper().at(monotonic() + _TOGETHER_FOR, self._flush)

    def _read_for_others(self) -> None:
        housekeeper().watch(self._stream.fileno(), self._look)

    def _nobody_reads(self) -> None:
        if self.router.receipts or self.outbox.blocked:
            self.stand_in()

    # on the housekeeping thread

    def _flush(self, now: float) -> float | None:
        try:
            return now + _TOGETHER_FOR if self.outbox.flush_quietly() else None
        except ConnectionLostError as error:
            self.lose(error)
            return None

    def _stand_in(self, _: float) -> float | None:
        self._stands_in = False
        if self._look():
            self._read_for_others()
        return None

    def _look(self) -> bool:
        """Read what is there; whether to go on: only while nobody else reads, and there is something to wait for."""
        return self.leader.read_now() and bool(self.router.receipts or self.outbox.blocked)

    def _tick(self, now: float) -> float | None:
        if not self._heard:
            self.leader.read_now()
        heard, self._heard = self._heard, False
        wrote, self.outbox.wrote = self.outbox.wrote, False
        try:
            beat = self._engine.tick(now, heard=heard, wrote=wrote)
            if beat:
                self.outbox.flush_quietly(beat)
        except ConnectionLostError as error:
            self.lose(error)
        return None if self._over else self._engine.next_deadline(monotonic())
