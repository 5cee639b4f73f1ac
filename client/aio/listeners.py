"""Asynchronous delivery: a task per session with a listener, which waits as `receive` does and awaits the callback."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from inspect import isawaitable, isfunction, ismethod
from typing import Any, Final, TypeAlias, cast

from redelivery.client.aio.core import SessionCore
from redelivery.client.aio.made import Message
from redelivery.client.ledger import ConsumerState, Received
from redelivery.client.lifecycle import SessionStage
from redelivery.client.operations.acknowledge import dispatched
from redelivery.client.operations.attach import attach_late
from redelivery.client.operations.listen import Comebacks, dispatch, returned
from redelivery.client.operations.orders import catch_up
from redelivery.client.operations.reattach import await_return
from redelivery.client.session.inbox import CloseAsked
from redelivery.client.session.state import ended
from redelivery.model.callables import (
    ASYNC_GENERATOR,
    GENERATOR,
    check_takes_one,
    deferred,
    name_of,
    not_run,
    unrun,
)
from redelivery.model.content.typed.variable import BodyT
from redelivery.model.errors import ConfigError, ConnectionLostError, JMSError, RequestTimeoutError
from redelivery.model.messages import Receipt
from redelivery.transports.seam import T
from redelivery.transports.wire.aio.waiter import LoopWaiter
from redelivery.transports.wire.clock import session_time

log = logging.getLogger(__name__)
_NEWS: Final = 0.05  # seconds until one who has met a loss looks again for the news of it
MessageListener: TypeAlias = Callable[[Message[BodyT]], Awaitable[object]]


class ListenerLoop:
    """The listeners of one session, served in turn. The task is there while a listener is."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._listeners: dict[ConsumerState, tuple[MessageListener[Any], Receipt]] = {}
        self._comebacks = Comebacks(core)
        self._next_served = 0
        self._task: asyncio.Task[None] | None = None
        self._idle = asyncio.Event()  # no callback is running
        self._idle.set()
        self.after_callback: list[Callable[[], Awaitable[None]]] = []  # closes that a callback asked for

    async def set_listener(
        self, consumer: ConsumerState, callback: MessageListener[Any] | None, receipt: Receipt
    ) -> None:
        """Set, change or (None) remove the listener of one consumer."""
        core = self._core

        async def change() -> None:
            core.check_open("listen")
            if callback is None:
                self._listeners.pop(consumer, None)
                core.handlers.pop(consumer, None)
            else:
                core.take_in()
                if consumer.error is not None and consumer not in self._listeners:
                    raise ended(consumer, "listen")
                if not consumer.attached and consumer.error is None:
                    await core.do(attach_late(core, consumer))
                self._listeners[consumer] = (callback, receipt)
                core.handlers[consumer] = name_of(callback)
            consumer.listening = callback is not None
            self._serve()

        await self.inside("listen", change)
        if callback is None and not self._listeners:
            await self._end_task()

    async def inside(self, action: str, step: Callable[[], Awaitable[T]]) -> T:
        """`SessionCore.inside`; while a listener is set, the caller takes his turn like its callbacks.

        Raises:
            IllegalStateError: as there.
            RequestTimeoutError: the turn did not come within `close_timeout`.
        """
        core = self._core
        if core.listener is None:
            return await core.inside(action, step)

        async def turn() -> T:
            core.check_open(action)
            return await step()

        return await core.inside_patiently(action, turn)

    async def close_consumer(self, consumer: ConsumerState, *, in_callback: bool) -> None:
        """Close one consumer from any task; deferred by the ledger where it holds something.

        ``in_callback``: for one of our callbacks, which this must not wait for.
        """
        core = self._core
        core.inbox.notify(CloseAsked(consumer))  # the one whose turn it is sees it at once, if it waits
        if core.life.stage in (SessionStage.CLOSED, SessionStage.LOST) or core.lost is not None:
            return

        async def close() -> None:
            self._listeners.pop(consumer, None)
            core.handlers.pop(consumer, None)
            await core.do(catch_up(core))

        await core.inside_patiently("close", close)
        if not self._listeners and not in_callback:
            await self._end_task()

    async def wait_until_idle(self, timeout: float) -> bool:
        """Wait for a running callback; True where none is running any more. True at once inside a callback."""
        if self._core.listens or self._idle.is_set():
            return True
        try:
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def end(self, timeout: float) -> None:
        """End the task, as soon as its callback returns; one that does not return in time is cancelled."""
        self._listeners.clear()
        self._core.waiter.wake()
        task = self._task
        if task is None or task is asyncio.current_task() or await _done(task, timeout):
            return
        task.cancel()
        await _done(task, 1.0)
        log.warning("close: a listener did not return within close_timeout; it was cancelled")

    def _serve(self) -> None:
        core = self._core
        if self._listeners and self._task is None:
            core.step("listen")
            self._task = core.listener = core.runtime.loop.create_task(self._run(), name="redelivery-listener")
        core.waiter.wake()

    async def _end_task(self) -> None:
        task = self._task
        if task is None or self._core.listens:
            return  # the task sees for itself that no listener is left
        self._core.waiter.wake()
        if not await _done(task, self._core.options.close_timeout):
            raise RequestTimeoutError("listen(None): the running callback did not return within close_timeout")

    async def _run(self) -> None:
        core = self._core
        leaves = False  # the connection is lost, or this task is cancelled: by `end`, or as the loop ends
        try:
            while not core.life.ended and self._listeners and not leaves:
                try:
                    delivery = await self._next()
                    if delivery is not None:
                        await self._call(delivery)
                except ConnectionLostError:
                    leaves = not core.comes_back  # the connection has notified its exception listener
                except JMSError as error:  # of an order of the ledger: the session goes on
                    core.report(error)
        except BaseException:
            leaves = True
            raise
        finally:
            core.listener = None
            self._task = None
            core.step("unlisten")
            if self._listeners and not core.life.ended and not leaves:
                self._serve()  # set again while this task was on its way out
            self._idle.set()
            await self._after_callback()

    async def _next(self) -> Received | None:
        """The next delivery for any listener, now held; None after a wait."""
        core = self._core
        await core.turn.take_within(None)
        try:
            if core.lost is not None:
                core.ledger.transport_lost()
                raise ConnectionLostError(str(core.lost)) from core.lost
            core.take_in()
            if core.epoch.successor is not None:
                await core.do(await_return(core))
            ended = self._comebacks.poll_once(self._listeners)
            if ended is not None:
                await core.do(self._comebacks.attach_again(ended, self._listeners))
            if not self._listeners or ended is not None:
                return None
            self._idle.clear()
            delivery, remaining = await self._dispatch()
            if delivery is not None:
                return delivery
            self._idle.set()
        finally:
            core.turn.release()
        try:
            if core.epoch.lost is None:
                core.epoch.transport.flush(core.waiter)
        except ConnectionLostError:
            if not core.comes_back:
                raise
            remaining = _NEWS
        await cast(LoopWaiter, core.waiter).wait(remaining)
        return None

    async def _dispatch(self) -> tuple[Received | None, float | None]:
        """The next delivery for any listener, now held; or for how many seconds there will be none, None for ever."""
        core = self._core
        now, due = session_time(), self._comebacks.due
        if not core.running or core.epoch.lost is not None:
            return None, None if due == float("inf") else max(0.0, due - now)
        if core.ledger.delayed and core.ledger.delayed[0][0] <= now:
            core.epoch.transport.wait(core.waiter, 0)  # what the wire has brought goes first
            core.take_in()
        core.ledger.tick(now)
        delivery, self._next_served = dispatch(core, list(self._listeners), self._next_served, now)
        try:
            await core.carry_out()
        except BaseException:  # of what stands before the delivery, which was not delivered
            if delivery is not None:
                core.ledger.put_back(delivery)
            raise
        if core.inbox:  # it came with an answer to one of those orders, and wakes nobody any more
            return delivery, 0.0
        until = min(core.ledger.next_deadline(), due)
        return delivery, None if until == float("inf") else max(0.0, until - now)

    async def _call(self, delivery: Received) -> None:
        core = self._core
        consumer = delivery.link.consumer
        entry = self._listeners.get(consumer)
        if entry is None:  # removed between dispatch and here
            core.ledger.put_back(delivery)
            self._idle.set()
            return
        callback, receipt = entry
        try:
            dispatched(core, delivery)
        except BaseException as problem:
            core.ledger.put_back(delivery)
            self._idle.set()
            if isinstance(problem, ConnectionLostError) and core.comes_back:
                return
            raise
        message = Message.received(delivery, delivery.redeliveries, receipt)
        if core.tracer is None:
            error = await self._called(callback, message, delivery)
        else:
            with core.tracer.processing(delivery) as work:
                error = await self._called(callback, message, delivery)
                work.ended(error)
        await core.turn.take_within(None)
        try:
            returned(core, delivery, consumer, error)
            await core.carry_out()
            if core.lost is None:
                await core.relieve()
        except ConnectionLostError:
            pass  # seen at the next turn
        finally:
            core.turn.release()
            self._idle.set()
        await self._after_callback()

    async def _called(
        self, callback: MessageListener[Any], message: Message, delivery: Received
    ) -> BaseException | None:
        """Await it; what it raised. A cancellation of its task is not the message's failure, and goes on."""
        task = cast(asyncio.Task[object], asyncio.current_task())
        cancelled = task.cancelling()  # before, and passed over by a callback
        try:
            result: object = callback(message)
            await returned_by(callback, result)
        except (asyncio.CancelledError, SystemExit, KeyboardInterrupt, GeneratorExit) as raised:
            if task.cancelling() > cancelled or not isinstance(raised, asyncio.CancelledError):
                # the session, the loop or the application ends, and the message is not the reason
                self._core.release((delivery,))
                raise
            return raised
        except BaseException as raised:  # noqa: BLE001  a listener's failure is a fact for the ledger, whatever its class
            return raised
        return None

    async def _after_callback(self) -> None:
        actions, self.after_callback = self.after_callback, []
        for action in actions:
            await action()


def check_callback(callback: object) -> None:
    """Raise ConfigError where it cannot be a listener."""
    if callback is None:
        return
    if not callable(callback):
        raise ConfigError(f"listen({callback!r}): give an `async def` that takes a message, or None")
    check_awaitable(callback, "listen")
    check_takes_one(callback, "listen", "the message")


def check_awaitable(callback: object, call: str) -> None:
    """Raise ConfigError, which names the ``call``, where it is a function that gives nothing to await."""
    function: Any = callback
    while isinstance(function, functools.partial):
        function = function.func
    kind = deferred(callback)
    plain = kind is None and (isfunction(function) or ismethod(function))
    if kind in (GENERATOR, ASYNC_GENERATOR):
        raise ConfigError(f"{call}({name_of(callback)}): {kind} runs nothing; give an `async def` without `yield`")
    if plain and function.__name__ != "<lambda>":  # which may call an `async def`
        raise ConfigError(
            f"{call}({name_of(callback)}): give an `async def`; what blocks would stop the loop, so let it call "
            "asyncio.to_thread(…)"
        )


async def returned_by(callback: object, result: object) -> object:
    """Await what a callback has returned; what came of it. Raises TypeError: that is nothing that was done."""
    if not isawaitable(result):
        unrun(result)
        raise TypeError(f"{name_of(callback)} returned a {type(result).__name__}, which cannot be awaited")
    found = await result
    kind = None if found is None else unrun(found)
    if kind is not None:
        raise TypeError(not_run(callback, kind))
    return found


async def _done(task: asyncio.Task[None], timeout: float) -> bool:
    """Wait up to ``timeout`` seconds; True: it has ended."""
    done, _ = await asyncio.wait((task,), timeout=max(0.0, timeout))
    return bool(done)
