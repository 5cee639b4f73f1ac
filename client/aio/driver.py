"""Drives a flow by a task: it awaits what the flow wishes, bounded; meanwhile the loop reads the wire."""

from __future__ import annotations

import asyncio
import logging
import os
import threading

from redelivery.client.session.epoch import Bare, Wired
from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError, RequestTimeoutError
from redelivery.transports.flows import Until
from redelivery.transports.runtime import OF_THE_PARENT
from redelivery.transports.seam import Arrival, Flow, InterruptedWait, Opening, Parked, Pending, T, Transport
from redelivery.transports.wire.aio.opening import fulfil
from redelivery.transports.wire.aio.runtime import LoopRuntime
from redelivery.transports.wire.aio.waiter import LoopWaiter
from redelivery.transports.wire.clock import monotonic, session_time

log = logging.getLogger(__name__)
NEVER = float("inf")


async def run(flow: Flow[T], wired: Wired, waiter: LoopWaiter, timeout: float, until: float = NEVER) -> T:
    """Drive ``flow`` to its end; each answer may take ``timeout`` seconds, and all together until ``until``.

    A cancellation is thrown into the flow as a time-out, so that its `finally` puts everything right, and then goes on.
    Its ``__cause__`` is what the flow made of it: the InDoubtError of a commit or send whose answer may still come, the
    TransactionRolledBackError of a commit that had not left.
    """
    error: JMSError | None = None
    try:
        while True:
            try:
                wish = next(flow) if error is None else flow.throw(error)
            except StopIteration as end:
                value: T = end.value
                return value
            if isinstance(wish, Pending):
                limit = timeout if until == NEVER else min(timeout, until - monotonic())
                error = await wait_for(wish, wired.transport, waiter, limit)
            elif isinstance(wish, Until):
                limit = min(wish.deadline - session_time(), until - monotonic())
                error = await wait_for(wish.answer, wired.transport, waiter, limit)
            else:
                error = await _fulfil(wish, wired, waiter)
    except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit) as ended:
        outcome = _give_up(flow)
        if outcome is None:
            raise
        log.warning("a task was cancelled: %s", outcome)
        raise ended from outcome


async def close_transport(transport: Transport, waiter: LoopWaiter) -> None:
    """See `Transport.close`; returns within `close_timeout`."""
    await run(transport.close(waiter), Bare(transport), waiter, NEVER, monotonic() + transport.options.close_timeout)


async def _fulfil(wish: Arrival | Parked | Opening, wired: Wired, waiter: LoopWaiter) -> JMSError | None:
    """Wait for it; the error is to be thrown into the flow."""
    if isinstance(wish, Parked):
        await waiter.wait(None if wish.deadline is None else wish.deadline - session_time())
        return None
    if not isinstance(wish, Arrival):
        await fulfil(wish)
        return None
    remaining = 0.0 if wish.poll else None if wish.deadline is None else wish.deadline - session_time()
    try:
        if remaining is not None and remaining <= 0:
            wired.transport.wait(waiter, 0)
            if not wish.poll:
                await asyncio.sleep(0)  # who asks for what is there again and again must not stop the loop
        else:
            wired.transport.flush(waiter)
            await waiter.wait(remaining)
    except ConnectionLostError as error:
        return error
    return None


async def wait_for(pending: Pending, transport: Transport, waiter: LoopWaiter, timeout: float) -> JMSError | None:
    """Wait until the broker has answered; the error is that no answer came (its own refusal is in the pending)."""
    if pending.done:
        return None
    now = monotonic()
    deadline = now + timeout
    patience = pending.patience
    again = NEVER if patience is None else now + patience
    waiter.awaits = True
    try:
        while now < deadline:
            if now >= again and patience is not None:
                again = now + patience
                pending.ask_again()
            transport.flush(waiter)
            if not pending.done:
                end = min(deadline, again)
                await waiter.wait(None if end == NEVER else end - now)
            if pending.done:
                return None
            now = monotonic()
    except ConnectionLostError as error:
        return None if pending.done else error
    finally:
        waiter.awaits = False
    return RequestTimeoutError(f"the broker did not answer within {max(0.0, timeout):.3g} s")


def _give_up(flow: Flow[T]) -> JMSError | None:
    cancelled = InterruptedWait("the task was cancelled while it waited for the broker")
    try:
        flow.throw(cancelled)
    except JMSError as outcome:
        return None if outcome is cancelled else outcome
    except StopIteration:
        return None
    flow.close()
    return None


def check_loop(runtime: LoopRuntime, action: str) -> None:
    """Raise IllegalStateError where the caller does not run in the connection's loop.

    Raises ConnectionLostError in a child after fork(), where asyncio says only that no loop runs.
    """
    if os.getpid() != runtime.process:
        raise ConnectionLostError(f"{action}: {OF_THE_PARENT}")
    if asyncio.get_running_loop() is runtime.loop:
        return
    if runtime.loop.is_closed():
        problem = "whose event loop is closed; close each connection before its loop ends, and make one in each loop"
    elif threading.get_ident() == runtime.thread:
        problem = "of another event loop; make one in this loop"
    else:
        problem = (
            "of the event loop of another thread; use asyncio.run_coroutine_threadsafe(…, loop), or a connection of "
            "this loop"
        )
    raise IllegalStateError(f"{action}: the connection is one {problem}")
