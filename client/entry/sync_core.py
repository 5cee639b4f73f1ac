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
from redelivery.client.connection.dialing import GoesOn
from redelivery.client.connection.reconnecting import Driven, ReconnectingConnection
from redelivery.client.connection.state import CLOSED
from redelivery.client.connection.threads import Elsewhere, Troubles, Watchers, interrupts
from redelivery.client.lifecycle import ConnectionStage
from redelivery.client.observing.log_lines import CONNECTIONS
from redelivery.client.operations.channels import open_first
from redelivery.client.options import ConnectionOptions
from redelivery.client.sync.core import SessionCore
from redelivery.client.sync.driver import NEVER, close_transport, run
from redelivery.client.sync.listeners import ListenerExit
from redelivery.client.sync.publisher import Publisher
from redelivery.client.sync.requester import Requester
from redelivery.client.sync.session import Session
from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError
from redelivery.model.events import ConnectionClosed
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Flow
from redelivery.transports.wire.clock import monotonic, session_time
from redelivery.transports.wire.threads import guard
from redelivery.transports.wire.threads.guard import uninterruptible
from redelivery.transports.wire.threads.waiter import ThreadWaiter

log = logging.getLogger(CONNECTIONS)
# Seconds after which `wait` looks again: a signal that comes as it begins to sleep does not wake it, so Python would
# not call the handler.
_LOOK: Final = 0.5
_TURN: Final = 0.05  # seconds that the thread which has reconnected waits for the one that has a session


class ConnectionCore(ReconnectingConnection):
    """The inside of a `redelivery.Connection`; see there for what its methods are for."""

    def __init__(self, options: ConnectionOptions) -> None:
        super().__init__(options)
        self._sessions: dict[Session, SessionCore] = {}
        self._troubles = Troubles(self)
        self.requester = Requester(self.replies)
        self._exit: BaseException | None = None  # that a listener has raised
        self._watchers = Watchers()
        self._elsewhere = Elsewhere()

    def open(self, goes_on: GoesOn | None = None) -> None:
        """For `connect`, and for who wants no connection any more while it is tried again. Raises as `connect`."""
        self._guard()
        self._open(goes_on)

    @uninterruptible
    def _open(self, goes_on: GoesOn | None) -> None:
        try:
            opening = self.dialer.open(again=False, goes_on=goes_on)
            self.opened(run(opening, self.dialer, self.dialer.parked, NEVER))
        except BaseException:
            guard.leave(self)
            raise
        self._seek_priority()

    def session(self, ack_mode: AckMode | int | str = AckMode.AUTO) -> Session:
        """See Connection."""
        self._guard()  # another thread may have opened it
        return self._session(ack_mode)

    @uninterruptible
    def _session(self, ack_mode: AckMode | int | str) -> Session:
        until = session_time() + self.options.request_timeout
        while True:
            self.await_connection("session", until)
            mode = self.session_mode(ack_mode)
            core = self._new_core(mode)  # without the lock: it may have to connect
            if core is None:
                continue
            session = Session(core, self._forget)
            with self._lock:
                super().check_open("session")  # what was opened meanwhile has ended with the connection
                if core.epoch.transport is not self.transport or self.life.stage is ConnectionStage.RECOVERING:
                    continue
                core.running = self.life.stage is ConnectionStage.RUNNING
                self._sessions[session] = core
            break
        log.debug("%s: a session, %s", self.url, mode.name)
        return session

    def publisher(self) -> Publisher:
        """See Connection."""
        self.check_open("publisher")
        return Publisher(self.session, self.check_open, self.url, self.options.close_timeout)

    @uninterruptible
    def start(self) -> None:
        """See Connection."""
        with self._lock:
            self.life.step("start")
            self.started = True
            cores = self._cores()
        for core in cores:
            core.running = True
            core.waiter.wake()

    def stop(self) -> None:
        """See Connection."""
        timeout = self.options.close_timeout
        if not all(session._wait_until_idle(timeout) for session in self._hold_back()):
            raise RequestTimeoutError(f"stop: a listener did not return within close_timeout={timeout:g} s")

    @uninterruptible
    def _hold_back(self) -> list[Session]:
        with self._lock:
            self.life.step("stop")
            self.started = False
            sessions, cores = list(self._sessions), self._cores()
        for core in cores:
            core.running = False
        return sessions

    def close(self) -> None:
        """See Connection."""
        patience = 2 * self.options.close_timeout
        if interrupts((self, *self._cores())):
            self._elsewhere.begin(self._close, patience)
        else:
            self._elsewhere.join(patience)
            self._close()

    @uninterruptible
    def _close(self) -> None:
        with suppress(ConnectionLostError):  # a loss that nobody has read yet is a loss, not our close
            self.transport.wait(self.transport.new_waiter(), 0)
        with self._lock:
            sessions = list(self._sessions)
            for session in sessions:
                if session._close_after_callback(self.close):
                    return
            if not self.life.step("close", "closed by close()"):
                return
        self._end_dialling()
        self.dialer.end()
        self.replies.closed()
        self._watchers.wake()
        until = monotonic() + self.options.close_timeout
        for session in sessions:
            session._close_until(until)
        close_transport(self.transport)
        self.say_closed()
        self.observe(ConnectionClosed(self.url))
        with self._lock:
            self.life.step("end")
            self._troubles.end()
        guard.leave(self)

    def _guard(self) -> None:
        if self.options.interrupts:
            guard.enter(self)

    def orphan(self) -> None:
        """See ReconnectingConnection."""
        self._watchers = Watchers()
        super().orphan()
        for session in list(self._sessions):
            session._core.let_in()

    @uninterruptible
    def check_open(self, action: str) -> None:
        """Raise where it is closed or lost; the text says when and why."""
        with self._lock:
            if self.life.ended:
                raise self.life.problem(action)

    @uninterruptible
    def wait(self, timeout: float | timedelta | None = None) -> bool:
        """See Connection."""
        deadline = None if timeout is None else monotonic() + seconds("timeout", timeout)
        with self._watchers.waiter() as waiter:
            while True:
                if self._exit is not None:
                    raise self._exit
                if self.life.stage in CLOSED:
                    return True
                if self.life.ended:
                    raise self.life.problem("wait")
                if self.dead is not None:
                    raise self.dead
                remaining = None if deadline is None else deadline - monotonic()
                if remaining is not None and remaining <= 0:
                    return False
                remaining = _LOOK if remaining is None else min(remaining, _LOOK)
                if self.life.stage is ConnectionStage.RECOVERING:
                    waiter.wait(remaining)
                    continue
                with suppress(ConnectionLostError):  # seen above
                    self.transport.wait(waiter, remaining)

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
            self.dead = self.dead or error
            self._watchers.wake()
        if not self._notify(error, deadly=deadly) and not (deadly or logged):
            self._say_error(error)

    def _bring_back(self) -> None:
        cores = self._cores()
        while cores and self.life.stage in (ConnectionStage.RUNNING, ConnectionStage.STOPPED):
            cores = [core for core in cores if not self._come_back(core)]

    def _come_back(self, core: SessionCore) -> bool:
        try:
            return core.come_back(_TURN)
        except JMSError as error:
            self.on_error(error)
            return True

    def _notify(self, error: JMSError, *, deadly: bool) -> bool:
        """See ReconnectingConnection."""
        with self._lock:
            if not self.listener_for(error, deadly=deadly):
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
        if self.life.stage is not ConnectionStage.RECOVERING:
            return
        with self._watchers.waiter() as waiter:
            while self.life.stage is ConnectionStage.RECOVERING:
                left = until - session_time()
                if left <= 0:
                    raise RequestTimeoutError(f"{action}: the connection was lost, and has not come back in time")
                waiter.wait(min(_LOOK, left))
        self.check_open(action)

    def _new_core(self, mode: AckMode) -> SessionCore | None:
        """None: the connection was lost meanwhile, and comes back."""
        try:
            core = SessionCore(self.transport, self.shared, mode, self.on_error)
            core.do(open_first(core))
        except ConnectionLostError:
            self.check_open("session")  # it says since when, and why
            if self._comes_back:
                cast(ThreadWaiter, core.waiter).wait(_TURN)  # the connection is about to hear of it
                return None
            raise
        return core

    def _forget(self, session: Session) -> None:
        with self._lock:
            self._sessions.pop(session, None)

    def _drop(self) -> None:
        """See ReconnectingConnection."""
        if getattr(self, "process", None) != os.getpid():
            return  # it was never open, or is the parent's
        self._troubles.end()
        self._end_dialling()
        if self.life.ended or (self.transport.lost and not self._comes_back):
            return  # or is about to be: the thread that has noticed the loss has still to say so
        with suppress(RuntimeError):  # the interpreter ends, and the sockets with it
            # Not here: any thread may collect us, one that holds a lock of the transport's too.
            # Not by `threading`, which has locks of its own.
            _thread.start_new_thread(self.transport.abort, ())
        warnings.warn(f"{self!r} was dropped without close()", ResourceWarning, stacklevel=2, source=self)
