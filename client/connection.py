"""Connections: one transport, its sessions, and who is told of trouble."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue

from redelivery.client.closing import Closing
from redelivery.client.core import SessionCore
from redelivery.client.dead_letters import DeadLetters
from redelivery.client.lifecycle import Lifecycle, Stage
from redelivery.client.options import ExceptionListener, Options
from redelivery.client.session import Session
from redelivery.model.capabilities import Capabilities
from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError, UnsupportedError
from redelivery.model.modes import AckMode
from redelivery.transports.base import Transport
from redelivery.transports.registry import transport_class
from redelivery.transports.wire.clock import monotonic

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectionMetaData:
    """Who is at the other end, and what it can do."""

    provider_name: str
    provider_version: str
    protocol: str
    capabilities: Capabilities
    jmsx_property_names: tuple[str, ...] = ("JMSXDeliveryCount", "JMSXGroupID", "JMSXGroupSeq")


class Connection(Closing):
    """A connection to one broker; thread-safe. Made by `connect` or a ConnectionFactory, already started by default.

    Leaving its ``with`` block closes it and everything made from it.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._life = Lifecycle("connection")
        self._lock = threading.Lock()  # guards the list of sessions and the lifecycle
        self._sessions: list[Session] = []
        self._cores: list[SessionCore] = []
        self._dead_letters = DeadLetters(options.dead_letter_strategy)
        self._exception_listener = options.exception_listener
        self._troubles: SimpleQueue[JMSError | None] = SimpleQueue()
        self._teller: threading.Thread | None = None
        self._ended = False
        self._transport: Transport = transport_class(options.transport.scheme)(options.transport, self)
        self._transport.open()

    @property
    def client_id(self) -> str | None:
        """The JMS client id, if one was given."""
        return self._options.transport.client_id

    @property
    def metadata(self) -> ConnectionMetaData:
        """Who is at the other end, and what it can do."""
        peer = self._transport.peer
        return ConnectionMetaData(peer.provider_name, peer.provider_version, peer.protocol, peer.capabilities)

    @property
    def dialect(self) -> str:
        """Whose meaning of the protocol is spoken."""
        return self._transport.peer.dialect

    @property
    def url(self) -> str:
        """The URL that it was made with, the password masked."""
        return self._options.url.masked

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._life.stage is Stage.CLOSED

    @property
    def connected(self) -> bool:
        """Whether it is there: neither closed nor lost."""
        return not self._life.over

    @property
    def dropped_count(self) -> int:
        """How many messages a DiscardingDeadLetterStrategy has dropped."""
        return self._dead_letters.dropped

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """Called with a JMSError that no call waits for; one at a time, on a thread of its own."""
        return self._exception_listener

    @exception_listener.setter
    def exception_listener(self, listener: ExceptionListener | None) -> None:
        self._exception_listener = listener

    def session(self, ack_mode: AckMode | int | str = AckMode.AUTO) -> Session:
        """A new session.

        Raises:
            ConfigError: there is no such mode.
            UnsupportedError: the broker has no transactions, and the mode is TRANSACTED.
            IllegalStateError: the connection is closed.
            ConnectionLostError: the connection was lost.
        """
        mode = AckMode.parse(ack_mode)
        peer = self._transport.peer
        if mode == AckMode.TRANSACTED and not peer.capabilities.transactions:
            raise UnsupportedError(f"{peer.provider_name} over {peer.protocol} has no transactions")
        with self._lock:
            if self._life.over:
                raise self._life.problem("session")
            running = self._life.stage is Stage.STARTED
            core = SessionCore(self._transport, self._options, mode, self._dead_letters, self.on_error, running=running)
            session = Session(core, self._forget)
            self._sessions.append(session)
            self._cores.append(core)
        return session

    def start(self) -> None:
        """Deliver messages (again). A wait for a redelivery is not shortened by it."""
        with self._lock:
            self._life.step("start")
            cores = list(self._cores)
        for core in cores:
            core.running = True
            core.waiter.wake()

    def stop(self) -> None:
        """Hold deliveries back until `start`; returns when running listeners have returned, within close_timeout.

        Sends go on, and the time-out of a `receive` runs on.

        Raises:
            RequestTimeoutError: a listener did not return in time; deliveries are held back all the same.
        """
        with self._lock:
            self._life.step("stop")
            sessions, cores = list(self._sessions), list(self._cores)
        for core in cores:
            core.running = False
        timeout = self._options.close_timeout
        if not all(session.wait_until_idle(timeout) for session in sessions):
            raise RequestTimeoutError(f"stop: a listener did not return within close_timeout={timeout:g} s")

    def close(self) -> None:
        """Close all sessions within close_timeout, then the connection within another. Twice is harmless.

        Called from a listener it takes effect when the callback has returned.
        """
        with suppress(ConnectionLostError):  # a loss that nobody has read yet is a loss, and told, not our close
            self._transport.wait(self._transport.new_waiter(), 0)
        with self._lock:
            sessions = list(self._sessions)
            for session in sessions:
                if session.close_after_callback(self.close):
                    return
            if not self._life.step("close", "closed by close()"):
                return
        until = monotonic() + self._options.close_timeout
        for session in sessions:
            session.close_until(until)
        self._transport.close()
        with self._lock:
            self._ended = True
            if self._teller is not None:
                self._troubles.put(None)

    def on_lost(self, error: JMSError) -> None:
        """See ConnectionEvents: every session raises ConnectionLostError from now on."""
        with self._lock:
            if not self._life.over:
                self._life.step("lose", "the connection was lost", error)
            cores = list(self._cores)
        for core in cores:
            core.on_lost(error)
        self.on_error(error)

    def on_error(self, error: JMSError) -> None:
        """See ConnectionEvents: told to the exception listener, and to the log where there is none."""
        with self._lock:
            if self._exception_listener is None or self._ended:
                log.error("%s: %s", self.url, error)
                return
            self._troubles.put(error)
            if self._teller is None:
                self._teller = threading.Thread(target=self._tell, name="redelivery-exceptions", daemon=True)
                self._teller.start()

    def _tell(self) -> None:
        """The exception listener's thread: there from the first trouble to the connection's close."""
        while True:
            error = self._troubles.get()
            listener = self._exception_listener
            if error is None:
                return
            if listener is None:
                continue
            try:
                listener(error)
            except Exception:  # a guard of application code: its failure must not end the telling
                log.exception("the exception listener raised")

    def _forget(self, session: Session) -> None:
        with self._lock:
            if session in self._sessions:
                at = self._sessions.index(session)
                del self._sessions[at], self._cores[at]

    def __repr__(self) -> str:
        return f"<Connection {self.url} {self._life.stage.value}>"
