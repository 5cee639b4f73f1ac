"""Connections: one transport under an event loop, its sessions, and whom it notifies of trouble."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import warnings
from collections import deque
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from functools import partial
from inspect import isawaitable
from typing import Any, Final, cast

from redelivery.client.aio.core import SessionCore
from redelivery.client.aio.driver import NEVER, check_loop, close_transport, run
from redelivery.client.aio.made import Closing, Made
from redelivery.client.aio.publisher import Publishes, Requester
from redelivery.client.aio.session import Session
from redelivery.client.arguments import seconds
from redelivery.client.connection.coming_back import ComingBack, Driven
from redelivery.client.connection.state import CLOSED
from redelivery.client.connection.weak import WeakConnectionEvents
from redelivery.client.containers.aio import MakesContainers
from redelivery.client.lifecycle import ConnectionStage
from redelivery.client.observing.log_lines import CONNECTIONS
from redelivery.client.operations.channels import open_first
from redelivery.client.options import ConnectionOptions
from redelivery.model.errors import (
    ConnectionLostError,
    JMSError,
    RequestTimeoutError,
)
from redelivery.model.events import ConnectionClosed
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Flow
from redelivery.transports.wire.aio.runtime import LoopRuntime
from redelivery.transports.wire.aio.waiter import LoopWaiter
from redelivery.transports.wire.clock import monotonic, session_time

log = logging.getLogger(CONNECTIONS)
_LOOK: Final = 0.5  # seconds after which one who waits for a connection looks how late it is


class Connection(ComingBack, MakesContainers, Publishes, Closing):
    """A connection to one broker, of the event loop in which it was made; the same as `redelivery.Connection`.

    Made by `connect`, already started by default. Leaving its ``async with`` block closes it and everything made from
    it.
    """

    def __init__(self, options: ConnectionOptions) -> None:
        self._runtime = LoopRuntime(asyncio.get_running_loop())
        super().__init__(options, self._runtime)
        self._sessions: dict[Session, SessionCore] = {}
        self._troubles: deque[JMSError] = deque()
        self._requester = Requester(self._replies)
        self._notifier: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()  # closed or lost
        self._there = asyncio.Event()  # it is there, or over
        self._there.set()
        self._background: set[asyncio.Task[None]] = set()
        self._dialing: set[asyncio.Task[None]] = set()  # those of it that end with the connection

    async def open(self) -> None:
        """For `connect`. Raises as that; a cancelled one closes its socket."""
        self._opened(await run(self.dialer.open(again=False), self.dialer, cast(LoopWaiter, self.dialer.parked), NEVER))
        self._seek_priority()

    def session(self, ack_mode: AckMode | int | str = AckMode.AUTO) -> Made[Session]:
        """A new session: ``await`` it, or ``async with``; see `redelivery.Connection.session`.

        Raises, when awaited:
            ConfigError: there is no such mode.
            UnsupportedError: the broker has no transactions, and the mode is TRANSACTED.
            IllegalStateError: the connection is closed, or of another event loop.
            ConnectionLostError: the connection was lost.
            RequestTimeoutError: it was lost, and is not there again within request_timeout.
            ConnectError, SecurityError: where each session has a socket of its own (ActiveMQ Classic over STOMP), this
                one could not be opened within connect_timeout; the other sessions go on.
        """
        return Made(self._session(ack_mode))

    async def start(self) -> None:
        """Deliver messages (again). A wait for a redelivery is not shortened by it."""
        self._check_loop("start")
        self._life.step("start")
        self._started = True
        for core in self._sessions.values():
            core.running = True
            core.waiter.wake()

    async def stop(self) -> None:
        """Hold deliveries back until `start`; returns when running listeners have returned, within close_timeout.

        Sends go on, and the time-out of a `receive` runs on.

        Raises:
            RequestTimeoutError: a listener did not return in time; deliveries are held back all the same.
        """
        self._check_loop("stop")
        self._life.step("stop")
        self._started = False
        for core in self._sessions.values():
            core.running = False
        timeout = self._options.close_timeout
        if not all([await session.wait_until_idle(timeout) for session in list(self._sessions)]):
            raise RequestTimeoutError(f"stop: a listener did not return within close_timeout={timeout:g} s")

    async def close(self) -> None:
        """Close all sessions within close_timeout, then the connection within another. Twice is harmless.

        Called from a listener it takes effect when the callback has returned. A close that is cancelled goes on.
        """
        self._check_loop("close")
        if self._closing is None:
            with suppress(ConnectionLostError):  # a loss that nobody has read yet is a loss, not our close
                self._transport.wait(self._runtime.new_waiter(), 0)
            for session in list(self._sessions):
                if session.close_after_callback(self.close):
                    return
            self._life.step("close", "closed by close()")
            self._end_dialling()
            self.dialer.end()
            self._replies.closed()
            self._changed()
            self._closing = self._runtime.loop.create_task(self._close(), name="redelivery-close")
        await asyncio.shield(self._closing)

    def check_open(self, action: str) -> None:
        """Raise where it is closed or lost; the text says when and why."""
        if self._life.ended:
            raise self._life.problem(action)

    async def wait(self, timeout: float | timedelta | None = None) -> bool:
        """Wait while the connection is there: what a program does whose listeners do the work.

        Args:
            timeout: seconds; None waits as long as it takes.

        Returns:
            True when the connection was closed, False when the time is over.

        Raises:
            ConnectionLostError: the connection was lost, before or meanwhile.
            JMSError: a listener is called no more, as the broker has ended its consumer (its queue was deleted, say).
        """
        self._check_loop("wait")
        try:
            async with asyncio.timeout(None if timeout is None else seconds("timeout", timeout)):
                await self._ended.wait()
        except TimeoutError:
            return False
        if self._life.stage in CLOSED:
            return True
        raise self._life.problem("wait") if self._life.ended or self._dead is None else self._dead

    def on_lost(self, error: JMSError, of: WeakConnectionEvents) -> None:
        """See ComingBack."""
        if not self._called_elsewhere(partial(self.on_lost, error, of)):
            super().on_lost(error, of)

    def _bring_back(self) -> None:
        for core in self._cores():
            self._in_background("redelivery-come-back", core.come_back())

    def on_error(self, error: JMSError, *, deadly: bool = False, logged: bool = False) -> None:
        """See ConnectionEvents: passed to the exception listener, and to the log where there is none.

        ``deadly``: a listener is called no more because of it. ``logged``: the log has a line about it already.
        """
        if self._called_elsewhere(partial(self.on_error, error, deadly=deadly, logged=logged)):
            return
        if deadly:
            self._dead = self._dead or error
            self._ended.set()  # of those who wait
        if not self._notify(error, deadly=deadly) and not (deadly or logged):
            self._say_error(error)

    def _called_elsewhere(self, call: Callable[[], None]) -> bool:
        """Have the loop make the call where another thread is here (the embedded broker's); False: make it here."""
        if threading.get_ident() == self._runtime.thread:
            return False
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            self._runtime.loop.call_soon_threadsafe(call)
        return True

    async def await_connection(self, action: str, until: float = NEVER) -> None:
        """Wait while there is none, until ``until`` (see `session_time`).

        Raises:
            ConnectionLostError, IllegalStateError: there will be none, or the caller is of another event loop.
            RequestTimeoutError: there is none yet.
        """
        self._check_loop(action)
        while not self._there.is_set():
            left = until - session_time()
            if left <= 0:
                raise RequestTimeoutError(f"{action}: the connection was lost, and has not come back in time")
            with suppress(TimeoutError):
                async with asyncio.timeout(min(_LOOK, left)):
                    await self._there.wait()
        self.check_open(action)

    async def _session(self, ack_mode: AckMode | int | str) -> Session:
        self._check_loop("session")
        until = session_time() + self._options.request_timeout
        while True:
            await self.await_connection("session", until)
            session = await self._new_session(self._session_mode(ack_mode))
            if session is not None:
                return session

    async def _new_session(self, mode: AckMode) -> Session | None:
        """None: the connection was lost meanwhile, and comes back."""
        self.check_open("session")
        core = SessionCore(self._transport, self._shared, mode, self.on_error, runtime=self._runtime)
        try:
            await core.do(open_first(core))
        except ConnectionLostError:
            self.check_open("session")  # it says since when, and why
            if not self._comes_back:
                raise
            await asyncio.sleep(0.01)  # the connection is about to hear of it
            return None
        self.check_open("session")  # what was opened meanwhile has ended with the connection
        if core.epoch.transport is not self._transport or not self._there.is_set():
            return None
        session = Session(core, self._forget)
        core.running = self._life.stage is ConnectionStage.RUNNING
        self._sessions[session] = core
        log.debug("%s: a session, %s", self.url, mode.name)
        return session

    async def _close(self) -> None:
        until = monotonic() + self._options.close_timeout
        for task in list(self._dialing):
            task.cancel()
        try:
            for session in list(self._sessions):
                await session.close_until(until)
            await close_transport(self._transport, self._runtime.new_waiter())
        finally:
            self._transport.abort()  # harmless after the goodbye; the loop may end with it
            self._say_closed()
        self._observe(ConnectionClosed(self.url))
        self._life.step("end")

    def _notify(self, error: JMSError, *, deadly: bool) -> bool:
        """See ComingBack."""
        if not self._listener_for(error, deadly=deadly):
            return False
        self._troubles.append(error)
        if self._notifier is None:
            self._notifier = self._runtime.loop.create_task(self._notify_listener(), name="redelivery-exceptions")
        return True

    def _cores(self) -> list[SessionCore]:
        return list(self._sessions.values())

    def _changed(self) -> None:
        if self._life.ended:
            self._ended.set()
        if self._life.stage is ConnectionStage.RECOVERING:
            self._there.clear()
        else:
            self._there.set()

    def _begin(self, name: str, flow: Flow[None], driven: Driven) -> None:
        running = run(flow, driven, cast(LoopWaiter, driven.parked), driven.patience)
        self._dialing.add(self._in_background(name, running))

    def _in_background(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._runtime.loop.create_task(work, name=name)
        for tasks in (self._background, self._dialing):
            task.add_done_callback(tasks.discard)
        self._background.add(task)
        return task

    async def _notify_listener(self) -> None:
        while self._troubles:
            listener, error = self._exception_listener, self._troubles.popleft()
            try:
                result: object = None if listener is None else listener(error)
                if isawaitable(result):
                    await result
            except Exception:  # a guard of application code: its failure must not end what follows
                log.exception("the exception listener raised")
        self._notifier = None

    def _forget(self, session: Session) -> None:
        self._sessions.pop(session, None)

    def _check_loop(self, action: str) -> None:
        check_loop(self._runtime, action)

    def _drop(self) -> None:
        """See ComingBack."""
        if getattr(self, "_process", None) != os.getpid() or self._life.ended or not hasattr(self._transport, "peer"):
            return
        loop = self._runtime.loop
        if loop.is_closed():
            self._transport.abort()
        else:
            loop.call_soon_threadsafe(self._transport.abort)
        warnings.warn(f"{self!r} was dropped without close()", ResourceWarning, stacklevel=2, source=self)
