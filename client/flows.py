"""How a thread drives a flow of the transport: it waits for each answer, bounded, and may read the wire meanwhile."""

from __future__ import annotations

from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError
from redelivery.transports.base import Flow, Pending, T, Transport, Waiter
from redelivery.transports.wire.clock import monotonic

NEVER = float("inf")


def run(flow: Flow[T], transport: Transport, waiter: Waiter, timeout: float, until: float = NEVER) -> T:
    """Drive ``flow`` to its end; each answer may take ``timeout`` seconds, and all together until ``until``.

    An interrupt (KeyboardInterrupt, SystemExit) is told to the flow as a time-out, so that the transport's books
    stay right, and then goes on.
    """
    try:
        pending = next(flow)
        while True:
            try:
                error = wait_for(pending, transport, waiter, min(timeout, until - monotonic()))
            except (KeyboardInterrupt, SystemExit):
                _give_up(flow)
                raise
            pending = next(flow) if error is None else flow.throw(error)
    except StopIteration as end:
        value: T = end.value
        return value


def wait_for(pending: Pending, transport: Transport, waiter: Waiter, timeout: float) -> JMSError | None:
    """Wait until the broker has answered; the error is that no answer came (its own refusal is in the pending)."""
    if pending.done:
        return None
    timeout = max(0.0, timeout)
    deadline = monotonic() + timeout
    patience = NEVER if pending.patience is None else pending.patience
    again = deadline - timeout + patience
    while not pending.done:
        now = monotonic()
        if now >= deadline:
            return RequestTimeoutError(f"the broker did not answer within {timeout:.3g} s")
        try:
            if now >= again:
                again = now + patience
                pending.ask_again()
            transport.wait(waiter, min(deadline, again) - now)
        except ConnectionLostError as error:
            return None if pending.done else error
    return None


def _give_up(flow: Flow[T]) -> None:
    try:
        flow.throw(RequestTimeoutError("interrupted while waiting for the broker"))
    except (JMSError, StopIteration):
        pass
    else:
        flow.close()
