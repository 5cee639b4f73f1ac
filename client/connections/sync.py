"""Connections: one transport, its sessions, and whom it notifies of trouble."""

from __future__ import annotations

import _thread
import logging
import os
import threading
import warnings
from contextlib import suppress
from datetime import timedelta
from typing import Final, cast

from redelivery.client.arguments import seconds
from redelivery.client.connection.coming_back import ComingBack, Driven
from redelivery.client.connection.dialing import GoesOn
from redelivery.client.connection.state import CLOSED
from redelivery.client.connection.threads import Elsewhere, Troubles, Watchers, interrupts
from redelivery.client.containers.sync import MakesContainers
from redelivery.client.lifecycle import ConnectionStage
from redelivery.client.observing.log_lines import CONNECTIONS
from redelivery.client.operations.channels import open_first
from redelivery.client.options import ConnectionOptions
from redelivery.client.sync.core import Closing, SessionCore
from redelivery.client.sync.driver import NEVER, close_transport, run
from redelivery.client.sync.listeners import ListenerExit
from redelivery.client.sync.publisher import Publishes, Requester
from redelivery.client.sync.session import Session
from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError
from redelivery.model.events import ConnectionClosed
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Flow
from redelivery.transports.wire.clock import monotonic, session_time
from redelivery.transports.wire.threads import guard
from redelivery.transports.wire.threads.waiter import ThreadWaiter

log = logging.getLogger(CONNECTIONS)
# Seconds after which `wait` looks again: a signal that comes as it begins to sleep does not wake it, so Python would
# not call the handler.
_LOOK: Final = 0.5
_TURN: Final = 0.05  # seconds that the thread which has reconnected waits for the one that has a session


class Connection(ComingBack, MakesContainers, Publishes, Closing):
    """A connection to one broker; thread-safe. Made by `connect` or a ConnectionFactory, already started by default.

    Leaving its ``with`` block closes it and everything made from it.
    """

    def __init__(self, options: ConnectionOptions) -> None:
        super().__init__(options)
        self._sessions: dict[Session, SessionCore] = {}
        self._troubles = Troubles(self)
        self._requester = Requester(self._replies)
        self._exit: BaseException | None = None  # that a listener has raised
        self._watchers = Watchers()
        self._elsewhere = Elsewhere()

    def open(self, goes_on: GoesOn | None = None) -> None:
        """For `connect`, and for who wants no connection any more while it is tried again. Raises as `connect`."""
        self._guard()
        try:
            opening = self.dialer.open(again=False, goes_on=goes_on)
            self._opened(run(opening, self.dialer, self.dialer.parked, NEVER))
        except BaseException:
            guard.leave(self)
            raise
        self._seek_priority()

    def session(self, ack_mode: AckMode | int | str = AckMode.AUTO) -> Session:
        """A new session.

        Raises:
            ConfigError: there is no such mode.
            UnsupportedError: the broker has no transactions, and the mode is TRANSACTED.
            IllegalStateError: the connection is closed.
            ConnectionLostError: the connection was lost.
            RequestTimeoutError: it was lost, and is not there again within request_timeout.
            ConnectError, SecurityError: where each session has a socket of its own (ActiveMQ Classic over STOMP), this
                one could not be opened within connect_timeout; the other sessions go on.
        """
        self._guard()  # another thread may have opened it
        until = session_time() + self._options.request_timeout
        while True:
            self.await_connection("session", until)
            mode = self._session_mode(ack_mode)
            core = self._new_core(mode)  # without the lock: it may have to connect
            if core is None:
                continue
            session = Session(core, self._forget)
            with self._lock:
                self._check_open()  # what was opened meanwhile has ended with the connection
                if core.epoch.transport is not self._transport or self._life.stage is ConnectionStage.RECOVERING:
                    continue
                core.running = self._life.stage is ConnectionStage.RUNNING
                self._sessions[session] = core
            break
        log.debug("%s: a session, %s", self.url, mode.name)
        return session

    def start(self) -> None:
        """Deliver messages (again). A wait for a redelivery is not shortened by it."""
        with self._lock:
            self._life.step("start")
            self._started = True
            cores = self._cores()
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
            self._started = False
            sessions, cores = list(self._sessions), self._cores()
        for core in cores:
            core.running = False
        timeout = self._options.close_timeout
        if not all(session.wait_until_idle(timeout) for session in sessions):
            raise RequestTimeoutError(f"stop: a listener did not return within close_timeout={timeout:g} s")

    def close(self) -> None:
        """Close all sessions within close_timeout, then the connection within another. Twice is harmless.

        Called from a listener it takes effect when the callback has returned. In a signal handler that has interrupted
        a call on this connection it returns at once, and another thread closes: the call ends as by any other close,
        and the end of the ``with`` block, or of the program, waits for it.
        """
        patience = 2 * self._options.close_timeout
        if interrupts((self, *self._cores())):
            self._elsewhere.begin(self._close, patience)
        else:
            self._elsewhere.join(patience)
            self._close()

    def _close(self) -> None:
        with suppress(ConnectionLostError):  # a loss that nobody has read yet is a loss, not our close
            self._transport.wait(self._transport.new_waiter(), 0)
        with self._lock:
            sessions = list(self._sessions)
            for session in sessions:
                if session.close_after_callback(self.close):
                    return
            if not self._life.step("close", "closed by close()"):
                return
        self._end_dialling()
        self.dialer.end()
        self._replies.closed()
        self._watchers.wake()
        until = monotonic() + self._options.close_timeout
        for session in sessions:
            session.close_until(until)
        close_transport(self._transport)
        self._say_closed()
        self._observe(ConnectionClosed(self.url))
        with self._lock:
            self._life.step("end")
            self._troubles.end()
        guard.leave(self)

    def _guard(self) -> None:
        if self._options.interrupts:
            guard.enter(self)

    def orphan(self) -> None:
        """See ComingBack."""
        self._watchers = Watchers()
        super().orphan()
        for session in list(self._sessions):
            session.orphan()

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
            JMSError: a listener is called no more, as the broker has ended its consumer (its queue was deleted, say).
            SystemExit: a listener has called ``sys.exit()``.
        """
        deadline = None if timeout is None else monotonic() + seconds("timeout", timeout)
        with self._watchers.waiter() as waiter:
            while True:
                if self._exit is not None:
                    raise self._exit
                if self._life.stage in CLOSED:
                    return True
                if self._life.ended:
                    raise self._life.problem("wait")
                if self._dead is not None:
                    raise self._dead
                remaining = None if deadline is None else deadline - monotonic()
                if remaining is not None and remaining <= 0:
                    return False
                remaining = _LOOK if remaining is None else min(remaining, _LOOK)
                if self._life.stage is ConnectionStage.RECOVERING:
                    waiter.wait(remaining)
                    continue
                with suppress(ConnectionLostError):  # seen above
                    self._transport.wait(waiter, remaining)

    def on_error(self, error: JMSError, *, deadly: bool = False, logged: bool = False) -> None:
        """See ConnectionEvents: passed to the exception listener, and to the log where there is none.

        ``deadly``: a listener is called no more because of it. ``logged``: the log has a line about it already.
        """
        if isinstance(error, ListenerExit):
            self._exit = self._exit or error.__cause__
            log.critical("%s: %s", self.url, error)
            self._watchers.wake()
            self._notify(error, deadly=False)
            return
        if deadly:
            self._dead = self._dead or error
            self._watchers.wake()
        if not self._notify(error, deadly=deadly) and not (deadly or logged):
            self._say_error(error)

    def _bring_back(self) -> None:
        cores = self._cores()
        while cores and self._life.stage in (ConnectionStage.RUNNING, ConnectionStage.STOPPED):
            cores = [core for core in cores if not self._come_back(core)]

    def _come_back(self, core: SessionCore) -> bool:
        try:
            return core.come_back(_TURN)
        except JMSError as error:
            self.on_error(error)
            return True

    def _notify(self, error: JMSError, *, deadly: bool) -> bool:
        """See ComingBack."""
        with self._lock:
            if not self._listener_for(error, deadly=deadly):
                return False
            self._troubles.put(error)
        return True

    def _cores(self) -> list[SessionCore]:
        return list(self._sessions.values())

    def _changed(self) -> None:
        self._watchers.wake()

    def _begin(self, name: str, flow: Flow[None], driven: Driven) -> None:
        threading.Thread(
            target=run, args=(flow, driven, driven.parked, driven.patience), name=name, daemon=True
        ).start()

    def await_connection(self, action: str, until: float = NEVER) -> None:
        """Wait while there is none, until ``until`` (see `session_time`).

        Raises:
            ConnectionLostError, IllegalStateError: there will be none.
            RequestTimeoutError: there is none yet.
        """
        self.check_open(action)
        if self._life.stage is not ConnectionStage.RECOVERING:
            return
        with self._watchers.waiter() as waiter:
            while self._life.stage is ConnectionStage.RECOVERING:
                left = until - session_time()
                if left <= 0:
                    raise RequestTimeoutError(f"{action}: the connection was lost, and has not come back in time")
                waiter.wait(min(_LOOK, left))
        self.check_open(action)

    def _new_core(self, mode: AckMode) -> SessionCore | None:
        """None: the connection was lost meanwhile, and comes back."""
        try:
            core = SessionCore(self._transport, self._shared, mode, self.on_error)
            core.do(open_first(core))
        except ConnectionLostError:
            self.check_open("session")  # it says since when, and why
            if self._comes_back:
                cast(ThreadWaiter, core.waiter).wait(_TURN)  # the connection is about to hear of it
                return None
            raise
        return core

    def _check_open(self) -> None:
        """By the holder of the lock."""
        if self._life.ended:
            raise self._life.problem("session")

    def _forget(self, session: Session) -> None:
        with self._lock:
            self._sessions.pop(session, None)

    def _drop(self) -> None:
        """See ComingBack."""
        if getattr(self, "_process", None) != os.getpid():
            return  # it was never open, or is the parent's
        self._troubles.end()
        self._end_dialling()
        if self._life.ended or (self._transport.lost and not self._comes_back):
            return  # or is about to be: the thread that has noticed the loss has still to say so
        with suppress(RuntimeError):  # the interpreter ends, and the sockets with it
            # Not here: any thread may collect us, one that holds a lock of the transport's too.
            # Not by `threading`, which has locks of its own.
            _thread.start_new_thread(self._transport.abort, ())
        warnings.warn(f"{self!r} was dropped without close()", ResourceWarning, stacklevel=2, source=self)
