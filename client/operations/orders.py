"""Handles what failed, and carries out the ledger's orders, by the session's holder."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from redelivery.client.dead_letters import DeadLetterPlan, otherwise
from redelivery.client.ledger import Detach, Order, Park, Poison, Received, Release, Unpark
from redelivery.client.observing.log_lines import say_redelivered, says_redelivered
from redelivery.client.operations.reattach import await_loss
from redelivery.client.session.state import NEVER, SessionState
from redelivery.model.errors import ConnectionLostError, InDoubtError, JMSError, RequestTimeoutError
from redelivery.transports.flows import Until
from redelivery.transports.seam import NO_ANSWER, Flow, InterruptedWait, Pending, T

_GRACE: Final = 0.5  # seconds that a dead letter may take beyond its caller's time, before it is left to itself


def performed(s: SessionState, operation: Flow[T]) -> Flow[T]:
    """An operation, and what the ledger has ordered because of it; an interrupt leaves that to the next call."""
    try:
        result = yield from operation
    except JMSError as error:
        if s.lost is None and not _interrupted(error):
            yield from carry_out(s)
        raise
    if s.ledger.orders:
        yield from carry_out(s)
    return result


def _interrupted(error: BaseException | None) -> bool:
    """Check whether it is what a flow has made of an interrupt."""
    while error is not None and not isinstance(error, InterruptedWait):
        error = error.__cause__ or error.__context__
    return error is not None


def catch_up(s: SessionState) -> Flow[None]:
    """Take in what has come, such as the close of a consumer, and carry out what that orders."""
    s.take_in()
    yield from carry_out(s)


def carry_out(s: SessionState, deadline: float | None = None) -> Flow[bool]:
    """Carry out the ledger's orders; False: one is left to itself, as the caller's time is over."""
    while s.unfinished or s.ledger.orders:
        if not s.unfinished and not isinstance(s.ledger.orders[0], Poison):
            yield from _carry_out_first(s)
        elif not (yield from finish(s, deadline)):
            return False
    return True


def finish(s: SessionState, deadline: float | None = None) -> Flow[bool]:
    """Make the dead letter that has begun, or the first one; at ``deadline``, or if interrupted, others go on with it.

    It is made to its end, as nobody could know whether the broker has it, and another one would be made.
    """
    flow, wish = s.unfinished.pop() if s.unfinished else (_carry_out_first(s), None)
    pause = NEVER if deadline is None else max(deadline, s.now() + _GRACE)
    try:
        wish = next(flow) if wish is None else wish
        while True:
            limit = min(pause, s.now() + s.options.request_timeout)
            error: JMSError | None = None
            try:
                yield Until(wish, limit) if isinstance(wish, Pending) else wish
            except JMSError as met:
                error = met
            if isinstance(error, RequestTimeoutError) and (isinstance(error, InterruptedWait) or s.now() >= pause):
                s.unfinished.append((flow, wish))
                s.finish_later()
                if isinstance(error, InterruptedWait):
                    raise error
                return False
            wish = next(flow) if error is None else flow.throw(error)
    except StopIteration:
        return True


def _carry_out_first(s: SessionState) -> Flow[None]:
    """Carry out the first; a dead letter that cannot be written is reported and tried again later.

    An order is done with in the step that begins it: an interrupt leaves the others, for the next call.
    """
    order = s.ledger.orders.pop(0)
    if s.epoch.lost is not None and s.epoch.successor is not s.epoch.transport:
        return  # there is nothing at the broker; there may be where an interrupt ended the attaching to the next one
    try:
        yield from _carry_out(s, order)
    except ConnectionLostError as error:
        yield from await_loss(s, error)


def _carry_out(s: SessionState, order: Order) -> Flow[None]:
    match order:
        case Poison():
            yield from _poison(s, order)
        case Detach(link):
            yield from s.epoch.channel.detach(link)
        case Park(deliveries):
            s.epoch.channel.park(deliveries)
        case Unpark(deliveries):
            s.epoch.channel.unpark(deliveries)
        case Release(deliveries):
            s.epoch.channel.release(deliveries)


def _poison(s: SessionState, order: Poison) -> Flow[None]:
    verdict: DeadLetterPlan | None = None
    channel = s.epoch.channel
    until = s.history.put_off_until(order.delivery)
    if until > s.now() and s.ledger.put_off(order, until):
        return
    try:
        verdict = s.dead_letters.decide(order, s.epoch.transport.peer, s.wall(), channel.check)
        try:
            yield from _dead_letter(s, order, verdict)
        except JMSError as error:
            if (other := otherwise(verdict, error)) is None:
                raise
            verdict = other
            yield from _dead_letter(s, order, verdict)
    except ConnectionLostError as error:
        s.dead_letters.failed(order, verdict, error, "if not, the broker redelivers it")
        if order.delivery.earlier:  # it is not shown once more for that
            s.history.note_failed((order.delivery,))
        raise
    except JMSError as error:
        if verdict is not None and isinstance(error, InDoubtError) and not isinstance(error.__cause__, NO_ANSWER):
            # the copy is there, and the broker knows the delivery no more: another copy would end no better
            s.dead_letters.done(order, verdict)
            s.history.forget((order.delivery,))
            s.report(error)
            return
        _stays(s, order, verdict, error)


def _stays(s: SessionState, order: Poison, verdict: DeadLetterPlan | None, error: JMSError) -> None:
    delivery, now = order.delivery, s.now()
    wait = s.ledger.poison_failed(order, now)
    s.dead_letters.stays(s.ledger)
    outlook = "it stays unacknowledged, and goes back to the broker"  # its consumer is closed
    if wait is not None:
        s.history.put_off(delivery, now + wait)
        outlook = f"it stays unacknowledged, and is tried again in {wait:.3g} s"
    s.dead_letters.failed(order, verdict, error, outlook)
    problem = JMSError(f"a message of {delivery.link.destination} could not be dead-lettered; {outlook}: {error}")
    problem.__cause__ = error
    s.report(problem, logged=True)


def _dead_letter(s: SessionState, order: Poison, verdict: DeadLetterPlan) -> Flow[None]:
    if verdict.drop:
        s.epoch.channel.accept((order.delivery,), batched=False)
    else:
        yield from s.epoch.channel.poison(order.delivery, order.cause, verdict.copy, expired=order.expired)
    s.dead_letters.done(order, verdict)
    s.history.forget((order.delivery,))
    if s.observed is not None:
        where = None if verdict.copy is None else verdict.copy.destination
        s.observed.poisoned(s.number, order, where, dropped=verdict.drop)


def fail(s: SessionState, decide: Callable[[float], None]) -> None:
    """Have what failed redelivered: the ledger decides, the log and the observer are notified.

    ``decide(now)`` is what the ledger does with what the application holds.
    """
    ledger, now = s.ledger, s.now()
    failed = ledger.covered() if s.observed is not None or says_redelivered() else ()
    known = len(ledger.orders)
    decide(now)
    while ledger.problems:
        s.report(ledger.problems.pop(0))
    s.poisoned += sum(isinstance(order, Poison) for order in ledger.orders[known:])
    if not failed:
        return
    due_times: dict[Received, float] = {delivery: entry[0] for entry in ledger.delayed for delivery in entry[3]}
    for consumer in ledger.consumers:
        due_times.update(dict.fromkeys(consumer.ready, consumer.not_before))
    again = [(delivery, max(0.0, due_times[delivery] - now)) for delivery in failed if delivery in due_times]
    say_redelivered(again, s.lines)
    if s.observed is not None:
        at = s.wall()
        for delivery, wait in again:
            s.observed.rolled_back(s.number, delivery, at + timedelta(seconds=wait))
