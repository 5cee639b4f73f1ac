"""Drives a flow by a thread: it waits for what the flow wishes, bounded, and may read the wire meanwhile."""

from __future__ import annotations

from typing import cast

from redelivery.client.session.epoch import Bare, Wired
from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError
from redelivery.transports.flows import Until
from redelivery.transports.seam import (
    Arrival,
    Flow,
    InterruptedWait,
    Opening,
    Parked,
    Pending,
    T,
    Transport,
    Waiter,
)
from redelivery.transports.wire.clock import monotonic, session_time
from redelivery.transports.wire.threads.guard import handle_noted, later, noted, protected
from redelivery.transports.wire.threads.opening import fulfil
from redelivery.transports.wire.threads.waiter import ThreadWaiter

NEVER = float("inf")


def run(flow: Flow[T], wired: Wired, waiter: Waiter, timeout: float, until: float = NEVER) -> T:
    """Drive ``flow`` to its end; each answer may take ``timeout`` seconds, and all together until ``until``.

    An interrupt (KeyboardInterrupt, SystemExit) ends a wait, never a step. It is thrown into the flow as a time-out, so
    that its `finally` puts everything right, and then goes on.
    """
    try:
        return _drive(flow, wired, waiter, timeout, until)
    finally:
        if noted:
            handle_noted()


@protected
def _drive(flow: Flow[T], wired: Wired, waiter: Waiter, timeout: float, until: float) -> T:
    try:
        wish = next(flow)
        while True:
            if isinstance(wish, Pending):
                limit = timeout if until == NEVER else min(timeout, until - monotonic())
                error = _wait_for(wish, wired.transport, waiter, limit)
            elif isinstance(wish, Until):
                limit = min(wish.deadline - session_time(), until - monotonic())
                error = _wait_for(wish.answer, wired.transport, waiter, limit)
            else:
                error = _fulfil(wish, wired, waiter)
            wish = next(flow) if error is None else flow.throw(error)
    except StopIteration as end:
        value: T = end.value
        return value
    except JMSError:
        raise
    except BaseException:  # an interrupt
        _give_up(flow)
        raise


def close_transport(transport: Transport) -> None:
    """See `Transport.close`; returns within `close_timeout`."""
    waiter = transport.new_waiter()
    run(transport.close(waiter), Bare(transport), waiter, NEVER, monotonic() + transport.options.close_timeout)


def _fulfil(wish: Arrival | Parked | Opening, wired: Wired, waiter: Waiter) -> JMSError | None:
    """Wait for it; the error is to be thrown into the flow."""
    if isinstance(wish, Parked):
        cast(ThreadWaiter, waiter).wait(None if wish.deadline is None else wish.deadline - session_time())
        return None
    if not isinstance(wish, Arrival):
        fulfil(wish)
        return None
    remaining = 0.0 if wish.poll else None if wish.deadline is None else max(0.0, wish.deadline - session_time())
    try:
        wired.transport.wait(waiter, remaining)
    except ConnectionLostError as error:
        return error
    return None


def _wait_for(pending: Pending, transport: Transport, waiter: Waiter, timeout: float) -> JMSError | None:
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
            try:
                transport.wait(waiter, (deadline if deadline < again else again) - now)
            except Exception:
                raise
            except BaseException as error:
                if not pending.done or not later(error):  # it has come too late for this wait
                    raise
            if pending.done:
                return None
            now = monotonic()
    except ConnectionLostError as error:
        return None if pending.done else error
    finally:
        waiter.awaits = False
    return RequestTimeoutError(f"the broker did not answer within {max(0.0, timeout):.3g} s")


def _give_up(flow: Flow[T]) -> None:
    try:
        flow.throw(InterruptedWait("interrupted while waiting for the broker"))
    except (JMSError, StopIteration):
        pass
    else:
        flow.close()
