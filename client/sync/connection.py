"""Connections: one transport, its sessions, and whom it notifies of trouble."""

from __future__ import annotations

import _thread
import logging
import os
import threading
import warnings
import weakref
from contextlib import suppress
from datetime import timedelta
from queue import SimpleQueue
from typing import Final

from redelivery.client.arguments import seconds
from redelivery.client.connection.lifecycle import ConnectionStage
from redelivery.client.connection.state import CLOSED, ConnectionState
from redelivery.client.connection.unowned import notify_all
from redelivery.client.options import ConnectionOptions
from redelivery.client.sync.closing import Closing
from redelivery.client.sync.core import SessionCore
from redelivery.client.sync.driver import close_transport, open_transport
from redelivery.client.sync.listeners import ListenerExit
from redelivery.client.sync.publisher import Publisher
from redelivery.client.sync.session import Session
from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError
from redelivery.model.events import ConnectionClosed, ConnectionLost
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Waiter
from redelivery.transports.wire.clock import monotonic, utc_now

log = logging.getLogger(__name__)
# Seconds after which `wait` looks again: a signal that comes as it begins to sleep does not wake it, so Python would
# not call the handler.
_LOOK: Final = 0.5


class Connection(ConnectionState, Closing):
    """A connection to one broker; thread-safe. Made by `connect` or a ConnectionFactory, already started by default.

    Leaving its ``with`` block closes it and everything made from it.
    """

    def __init__(self, options: ConnectionOptions) -> None:
        super().__init__(options)
        self._lock = threading.Lock()  # guards the list of sessions and the lifecycle
        self._sessions: list[Session] = []
        self._cores: list[SessionCore] = []
        self._troubles: SimpleQueue[JMSError | None] = SimpleQueue()
        self._teller: threading.Thread | None = None
        self._exit: BaseException | None = None  # that a listener has raised
        self._waiting: list[Waiter] = []  # of the threads in `wait`
        open_transport(self._transport)
        self._opened()

    def session(self, ack_mode: AckMode | int | str = AckMode.AUTO) -> Session:
        """A new session.

        Raises:
            ConfigError: there is no such mode.
            UnsupportedError: the broker has no transactions, and the mode is TRANSACTED.
            IllegalStateError: the connection is closed.
            ConnectionLostError: the connection was lost.
            ConnectError, SecurityError: where each session has a socket of its own (ActiveMQ Classic over STOMP), this
                one could not be opened within connect_timeout; the other sessions go on.
        """
        mode = self._session_mode(ack_mode)
        with self._lock:
            self._check_open()
        core = self._new_core(mode)  # without the lock: it may have to connect
        session = Session(core, self._forget)
        with self._lock:
            self._check_open()  # what was opened meanwhile has ended with the connection
            core.running = self._life.stage is ConnectionStage.RUNNING
            self._sessions.append(session)
            self._cores.append(core)
        log.debug("%s: a session, %s", self.url, mode.name)
        return session

    def publisher(self) -> Publisher:
        """What sends from any thread: ``publisher.send(body, destination, …)``. To be closed, or used in a ``with``.

        Raises:
            IllegalStateError: the connection is closed.
            ConnectionLostError: the connection was lost.
        """
        self.check_open("publisher")
        return Publisher(self.session, self.check_open, self.url)

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
        self._wake()
        until = monotonic() + self._options.close_timeout
        for session in sessions:
            session.close_until(until)
        close_transport(self._transport)
        log.info("%s: closed", self.url)
        self._observe(ConnectionClosed(self.url))
        with self._lock:
            self._life.step("end")
            if self._teller is not None:
                self._troubles.put(None)

    def check_open(self, action: str) -> None:
        """Raise where it is closed or lost; the text says when and why."""
        with self._lock:
            if self._life.ended:
                raise self._life.problem(action)

    def wait(self, timeout: float | timedelta | None = None) -> bool:
        """Block while the connection is there: what a program does whose listeners do the work.

        Args:
            timeout: seconds; None waits as long as it takes. A signal's handler may end the wait by raising, or by
                closing the connection.

        Returns:
            True when the connection was closed, False when the time is over.

        Raises:
            ConnectionLostError: the connection was lost, before or meanwhile.
            SystemExit: a listener has called ``sys.exit()``.
        """
        deadline = None if timeout is None else monotonic() + seconds("timeout", timeout)
        waiter = self._transport.new_waiter()
        with self._lock:
            self._waiting.append(waiter)
        try:
            while True:
                if self._exit is not None:
                    raise self._exit
                if self._life.stage in CLOSED:
                    return True
                if self._life.ended:
                    raise self._life.problem("wait")
                remaining = None if deadline is None else deadline - monotonic()
                if remaining is not None and remaining <= 0:
                    return False
                with suppress(ConnectionLostError):  # seen above
                    self._transport.wait(waiter, _LOOK if remaining is None else min(remaining, _LOOK))
        finally:
            with self._lock:
                self._waiting.remove(waiter)

    def on_lost(self, error: JMSError) -> None:
        """See ConnectionEvents: every session raises ConnectionLostError from now on."""
        at = utc_now()  # every session tells the same
        with self._lock:
            self._life.step("lose", "the connection was lost", error, at)
            cores = list(self._cores)
            listening = any(core.listener is not None for core in cores)
        log.warning("%s: the connection was lost: %s", self.url, error)
        self._observe(ConnectionLost(self.url, error, at))
        for core in cores:
            core.on_lost(error, at)
        self._notify(error, deadly=listening)
        self._wake()

    def on_error(self, error: JMSError, *, deadly: bool = False) -> None:
        """See ConnectionEvents: told to the exception listener, and to the log where there is none.

        ``deadly``: a listener is called no more because of it.
        """
        if isinstance(error, ListenerExit):
            self._exit = self._exit or error.__cause__
            log.critical("%s: %s", self.url, error)
            self._wake()
            self._notify(error, deadly=False)
        elif not self._notify(error, deadly=deadly) and not deadly:
            log.error("%s: %s", self.url, error)

    def _notify(self, error: JMSError, *, deadly: bool) -> bool:
        """Tell the exception listener; False where there is none, which is CRITICAL where it is ``deadly``."""
        with self._lock:
            if not self._listener_for(error, deadly=deadly):
                return False
            self._troubles.put(error)
            if self._teller is None:
                self._teller = threading.Thread(
                    target=notify_all,
                    args=(self._troubles, weakref.ref(self)),
                    name="redelivery-exceptions",
                    daemon=True,
                )
                self._teller.start()
        return True

    def _wake(self) -> None:
        with self._lock:
            waiting = list(self._waiting)
        for waiter in waiting:
            waiter.wake()

    def _new_core(self, mode: AckMode) -> SessionCore:
        try:
            core = SessionCore(
                self._transport, self._options, mode, self._dead_letters, self.on_error, connection=self._life
            )
            core.do_open(core.open_channel())
        except ConnectionLostError:
            self.check_open("session")  # it says since when, and why
            raise
        return core

    def _check_open(self) -> None:
        """By the holder of the lock."""
        if self._life.ended:
            raise self._life.problem("session")

    def _forget(self, session: Session) -> None:
        with self._lock:
            if session in self._sessions:
                at = self._sessions.index(session)
                del self._sessions[at], self._cores[at]

    def __del__(self) -> None:
        """Dropped without `close`: say so, and release the sockets. The broker redelivers what was unacknowledged."""
        if getattr(self, "_process", None) != os.getpid():
            return  # it was never open, or is the parent's
        self._troubles.put(None)
        if self._life.ended:
            return
        with suppress(RuntimeError):  # the interpreter ends, and the sockets with it
            # Not here: any thread may collect us, one that holds a lock of the transport's too.
            # Not by `threading`, which has locks of its own.
            _thread.start_new_thread(self._transport.abort, ())
        warnings.warn(f"{self!r} was dropped without close()", ResourceWarning, stacklevel=2, source=self)
