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
from redelivery.client.aio.publisher import Publisher
from redelivery.client.aio.requester import Requester
from redelivery.client.aio.session import Session
from redelivery.client.arguments import seconds
from redelivery.client.connection.reconnecting import Driven, ReconnectingConnection
from redelivery.client.connection.state import CLOSED
from redelivery.client.connection.weak import WeakConnectionEvents
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


class ConnectionCore(ReconnectingConnection):
    """The inside of a `redelivery.aio.Connection`; see there for what its methods are for."""

    def __init__(self, options: ConnectionOptions) -> None:
        self.runtime = LoopRuntime(asyncio.get_running_loop())
        super().__init__(options, self.runtime)
        self._sessions: dict[Session, SessionCore] = {}
        self._troubles: deque[JMSError] = deque()
        self.requester = Requester(self.replies)
        self._notifier: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._ended = asyncio.Event()  # closed or lost
        self._there = asyncio.Event()  # it is there, or over
        self._there.set()
        self._background: set[asyncio.Task[None]] = set()
        self._dialing: set[asyncio.Task[None]] = set()  # those of it that end with the connection

    async def open(self) -> None:
        """For `connect`. Raises as that; a cancelled one closes its socket."""
        self.opened(await run(self.dialer.open(again=False), self.dialer, cast(LoopWaiter, self.dialer.parked), NEVER))
        self._seek_priority()

    async def publisher(self) -> Publisher:
        """See Connection."""
        self.check_open("publisher")
        return Publisher(self.session, self.check_open, self.url)

    async def start(self) -> None:
        """See Connection."""
        self._check_loop("start")
        self.life.step("start")
        self.started = True
        for core in self._sessions.values():
            core.running = True
            core.waiter.wake()

    async def stop(self) -> None:
        """See Connection."""
        self._check_loop("stop")
        self.life.step("stop")
        self.started = False
        for core in self._sessions.values():
            core.running = False
        timeout = self.options.close_timeout
        if not all([await session._wait_until_idle(timeout) for session in list(self._sessions)]):
            raise RequestTimeoutError(f"stop: a listener did not return within close_timeout={timeout:g} s")

    async def close(self) -> None:
        """See Connection."""
        self._check_loop("close")
        if self._closing is None:
            with suppress(ConnectionLostError):  # a loss that nobody has read yet is a loss, not our close
                self.transport.wait(self.runtime.new_waiter(), 0)
            for session in list(self._sessions):
                if session._close_after_callback(self.close):
                    return
            self.life.step("close", "closed by close()")
            self._end_dialling()
            self.dialer.end()
            self.replies.closed()
            self._changed()
            self._closing = self.runtime.loop.create_task(self._close(), name="redelivery-close")
        await asyncio.shield(self._closing)

    async def wait(self, timeout: float | timedelta | None = None) -> bool:
        """See Connection."""
        self._check_loop("wait")
        try:
            async with asyncio.timeout(None if timeout is None else seconds("timeout", timeout)):
                await self._ended.wait()
        except TimeoutError:
            return False
        if self.life.stage in CLOSED:
            return True
        raise self.life.problem("wait") if self.life.ended or self.dead is None else self.dead

    def on_lost(self, error: JMSError, of: WeakConnectionEvents) -> None:
        """See ReconnectingConnection."""
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
            self.dead = self.dead or error
            self._ended.set()  # of those who wait
        if not self._notify(error, deadly=deadly) and not (deadly or logged):
            self._say_error(error)

    def _called_elsewhere(self, call: Callable[[], None]) -> bool:
        """Have the loop make the call where another thread is here (the embedded broker's); False: make it here."""
        if threading.get_ident() == self.runtime.thread:
            return False
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            self.runtime.loop.call_soon_threadsafe(call)
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

    async def session(self, ack_mode: AckMode | int | str = AckMode.AUTO) -> Session:
        """See Connection."""
        self._check_loop("session")
        until = session_time() + self.options.request_timeout
        while True:
            await self.await_connection("session", until)
            session = await self._new_session(self.session_mode(ack_mode))
            if session is not None:
                return session

    async def _new_session(self, mode: AckMode) -> Session | None:
        """None: the connection was lost meanwhile, and comes back."""
        self.check_open("session")
        core = SessionCore(self.transport, self.shared, mode, self.on_error, runtime=self.runtime)
        try:
            await core.do(open_first(core))
        except ConnectionLostError:
            self.check_open("session")  # it says since when, and why
            if not self._comes_back:
                raise
            await asyncio.sleep(0.01)  # the connection is about to hear of it
            return None
        self.check_open("session")  # what was opened meanwhile has ended with the connection
        if core.epoch.transport is not self.transport or not self._there.is_set():
            return None
        session = Session(core, self._forget)
        core.running = self.life.stage is ConnectionStage.RUNNING
        self._sessions[session] = core
        log.debug("%s: a session, %s", self.url, mode.name)
        return session

    async def _close(self) -> None:
        until = monotonic() + self.options.close_timeout
        for task in list(self._dialing):
            task.cancel()
        try:
            for session in list(self._sessions):
                await session._close_until(until)
            await close_transport(self.transport, self.runtime.new_waiter())
        finally:
            self.transport.abort()  # harmless after the goodbye; the loop may end with it
            self.say_closed()
        self.observe(ConnectionClosed(self.url))
        self.life.step("end")

    def _notify(self, error: JMSError, *, deadly: bool) -> bool:
        """See ReconnectingConnection."""
        if not self.listener_for(error, deadly=deadly):
            return False
        self._troubles.append(error)
        if self._notifier is None:
            self._notifier = self.runtime.loop.create_task(self._notify_listener(), name="redelivery-exceptions")
        return True

    def _cores(self) -> list[SessionCore]:
        return list(self._sessions.values())

    def _changed(self) -> None:
        if self.life.ended:
            self._ended.set()
        if self.life.stage is ConnectionStage.RECOVERING:
            self._there.clear()
        else:
            self._there.set()

    def _begin(self, name: str, flow: Flow[None], driven: Driven) -> None:
        running = run(flow, driven, cast(LoopWaiter, driven.parked), driven.patience)
        self._dialing.add(self._in_background(name, running))

    def _in_background(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self.runtime.loop.create_task(work, name=name)
        for tasks in (self._background, self._dialing):
            task.add_done_callback(tasks.discard)
        self._background.add(task)
        return task

    async def _notify_listener(self) -> None:
        while self._troubles:
            listener, error = self.exception_listener, self._troubles.popleft()
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
        check_loop(self.runtime, action)

    def _drop(self) -> None:
        """See ReconnectingConnection."""
        if getattr(self, "process", None) != os.getpid() or self.life.ended or not hasattr(self.transport, "peer"):
            return
        loop = self.runtime.loop
        if loop.is_closed():
            self.transport.abort()
        else:
            loop.call_soon_threadsafe(self.transport.abort)
        warnings.warn(f"{self!r} was dropped without close()", ResourceWarning, stacklevel=2, source=self)
