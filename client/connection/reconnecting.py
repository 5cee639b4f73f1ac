"""A connection that is lost and comes back, or is moved to another broker; who dials meanwhile is the shell's."""

from __future__ import annotations

import logging
import sys
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final, Protocol

from redelivery.client.connection.dialing import redial
from redelivery.client.connection.priority import PriorityBackup, move
from redelivery.client.connection.state import ConnectionState
from redelivery.client.connection.weak import WeakConnectionEvents
from redelivery.client.lifecycle import ConnectionStage
from redelivery.client.observing.log_lines import CONNECTIONS
from redelivery.client.options import ConnectionOptions
from redelivery.client.session.epoch import Wired
from redelivery.client.session.state import SessionState
from redelivery.model.errors import ConnectionLostError, JMSError
from redelivery.model.events import ConnectionLost, Reconnected
from redelivery.transports.runtime import Runtime
from redelivery.transports.seam import Flow, Transport, Waiter
from redelivery.transports.wire.clock import session_time, utc_now

log = logging.getLogger(CONNECTIONS)
_THERE: Final = (ConnectionStage.STOPPED, ConnectionStage.RUNNING)


class Driven(Wired, Protocol):
    """The owner of a flow in the background.

    Attributes:
        parked: where its driver waits.
        patience: seconds that an answer may take.
    """

    parked: Waiter
    patience: float


class ReconnectingConnection(ConnectionState):
    """See above."""

    def __init__(self, options: ConnectionOptions, runtime: Runtime | None = None) -> None:
        super().__init__(options, runtime)
        self._lock = threading.Lock()  # guards the list of sessions and the lifecycle
        self._dialling = False  # somebody dials
        self._backup: PriorityBackup | None = None  # the latest search for a priority broker

    # what the shells do

    @abstractmethod
    def _bring_back(self) -> None:
        """The sessions, on the connection that is there now, unless it is lost again meanwhile."""

    @abstractmethod
    def _cores(self) -> Sequence[SessionState]:
        """The sessions. By the holder of the lock."""

    @abstractmethod
    def _changed(self) -> None:
        """Wake those who wait for the connection."""

    @abstractmethod
    def _begin(self, name: str, flow: Flow[None], driven: Driven) -> None:
        """Drive it in the background, under a name."""

    @abstractmethod
    def _drop(self) -> None:
        """Say that it was dropped without `close`, and release the sockets."""

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        """See `_drop`. The broker redelivers what was unacknowledged."""
        try:
            self._drop()
        except (AttributeError, ImportError, TypeError):
            if not ending():  # modules are taken apart, what we call is gone, and the sockets with the process
                raise

    @abstractmethod
    def _notify(self, error: JMSError, *, deadly: bool) -> bool:
        """Notify the exception listener; False where there is none, which is CRITICAL where it is ``deadly``."""

    # a loss

    def on_lost(self, error: JMSError, of: WeakConnectionEvents) -> None:
        """See `Adopter`: another one is dialled, or every session raises ConnectionLostError from now on."""
        at = utc_now()  # every session says the same
        with self._lock:
            if of is not self.events:
                return  # it was left
            suspicious = self.shared.suspects.lost(session_time(), self.transport.peer.capabilities.hangs_up)
            self.dialer.lost(suspicious=bool(self.shared.suspects.remark))
            error = _with(error, self.shared.suspects.remark)
            self.replies.lost(error)
            lost = self.last_loss = ConnectionLost(self.url, error, at)
            comes_back = self._comes_back
            if comes_back:
                for core in self._cores():  # first: who sees that it is not `connected` gets nothing any more
                    core.on_lost(error, at, comes_back=True)
                self.life.step("interrupt")
        if not comes_back:
            self._lose(error, at)
            self.observe(lost)
            return
        self.observe(lost)
        self._say_lost(error, again=True)
        if suspicious:
            log.warning("%s: %s", self.url, self.shared.suspects.remark)
        self._notify(error, deadly=False)
        self._changed()
        self._recover()

    def _lose(self, error: JMSError, at: datetime) -> None:
        """There will be no other connection."""
        with self._lock:
            cores = self._cores()
            for core in cores:  # first, as above
                core.on_lost(error, at)
            self.life.step("lose", "the connection was lost", error, at)
            listening = any(core.listener is not None for core in cores)
        for core in cores:
            core.unanswered.lose(error)
        self._say_lost(error, again=False)
        self._notify(error, deadly=listening)
        self._changed()

    @property
    def sessions(self) -> Sequence[SessionState]:
        """The sessions that there are; a guess from other threads."""
        return self._cores()

    @property
    def _comes_back(self) -> bool:
        """Check whether a loss now is followed by another connection."""
        return self.comes_back and (self.life.stage in _THERE or self.life.stage is ConnectionStage.RECOVERING)

    def _recover(self) -> None:
        with self._lock:
            if self._backup is not None:
                self._backup.end()
                self._backup = None
            if not self._dialling:
                self._dialling = True
                self._begin("redelivery-reconnect", redial(weakref.ref(self)), self.dialer)

    # another connection

    def _returned(self, transport: Transport, events: WeakConnectionEvents) -> bool:
        """There is another transport; False where nobody wants it any more."""
        with self._lock:
            if self.life.stage is not ConnectionStage.RECOVERING:
                transport.abort()
                return False
            self.transport, self.events = transport, events
            self.dialer.adopted()
            self.epoch += 1
            self.life.step("return")
            if self.started:
                self.life.step("start")
            for core in self._cores():
                core.running = self.started
                core.on_returned(transport)
        self._say_connected()
        self.observe(Reconnected(self.url, self.metadata, utc_now()))
        events.adopt()
        self._changed()
        self._seek_priority()
        return True

    def reconnected(self, transport: Transport, events: WeakConnectionEvents) -> bool:
        """For the one who has dialled it: there is another transport. False: it is lost again."""
        if self._returned(transport, events):
            self._bring_back()
        with self._lock:
            if self.life.stage is ConnectionStage.RECOVERING:
                return False
            self._dialling = False
            return True

    def not_reconnected(self, error: JMSError) -> None:
        """For the one who has dialled: there will be no other transport."""
        with self._lock:
            self._dialling = False
        if not self.dialer.ended:  # else it is closed, which is no loss, and its sessions are closed with it
            self._lose(error, utc_now())

    # a better one

    def _seek_priority(self) -> None:
        """Look for a priority broker, where it has another one."""
        with self._lock:
            if self.life.stage in _THERE and not self.dialer.prior:
                self._backup = backup = PriorityBackup(self.dialer)
                self._begin("redelivery-priority", move(weakref.ref(self), backup), backup)

    @property
    def at_rest(self) -> bool:
        """True: no session has a transaction or an unacknowledged message, and no reply or answer is awaited."""
        with self._lock:
            return self.replies.none_awaited and all(core.at_rest for core in self._cores())

    @property
    def left(self) -> bool:
        """See `priority.Movable`."""
        with self._lock:
            return all(core.left for core in self._cores())

    def leave(self, error: JMSError) -> Transport | None:
        """See `priority.Movable`."""
        at = utc_now()
        with self._lock:
            if self.life.stage not in _THERE:
                return None
            self.life.step("interrupt")
            self.events = None
            cores = self._cores()
        self.replies.lost(error)
        log.info("%s: %s", self.url, error)
        for core in cores:
            core.on_lost(error, at, comes_back=True, planned=True)
        self.observe(ConnectionLost(self.url, error, at, planned=True))
        self._changed()
        return self.transport

    def moved(self, transport: Transport, events: WeakConnectionEvents) -> None:
        """See `priority.Movable`."""
        if self._returned(transport, events):
            self._bring_back()

    def not_moved(self, error: JMSError) -> None:
        """See `priority.Movable`."""
        if self._comes_back:
            self._recover()
        elif not self.dialer.ended:
            self._lose(error, utc_now())

    # its end

    def _end_dialling(self) -> None:
        """Nobody wants a connection any more. Takes no lock."""
        for each in (self.dialer, self._backup):
            if each is not None:
                each.ended = True
                each.parked.wake()

    def orphan(self) -> None:
        """See ConnectionState; a thread of the parent's may have held the lock."""
        self._lock = threading.Lock()
        super().orphan()


def _with(error: JMSError, remark: str) -> JMSError:
    if not remark:
        return error
    more = ConnectionLostError(f"{error}; {remark}")
    more.__cause__ = error
    return more
