"""The way of a session over a loss: its operations wait, and it gets a channel and new links on the next connection."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import replace
from typing import Final

from redelivery.client.arguments import check_evaluates, check_selector
from redelivery.client.ledger import ConsumerState
from redelivery.client.ledger.stages import OPEN
from redelivery.client.lifecycle import SessionStage
from redelivery.client.observing.log_lines import CONNECTIONS
from redelivery.client.operations.channels import attach_anew, begins_late, open_next
from redelivery.client.operations.resend import away, send_again, send_deferred, unanswered
from redelivery.client.session.state import SessionState
from redelivery.client.session.subscriptions import begins_anew
from redelivery.model.errors import (
    ConnectError,
    ConnectionLostError,
    JMSError,
    RequestTimeoutError,
)
from redelivery.transports.seam import Arrival, Flow, Parked

log = logging.getLogger(CONNECTIONS)
_NEWS: Final = 0.05  # seconds until one who has met a loss looks again for the news of it
_AGAIN: Final = 0.1  # seconds until one who could not open a socket tries again


def await_return(s: SessionState, deadline: float | None = None, consumer: ConsumerState | None = None) -> Flow[bool]:
    """Done when the session has its channel and consumers on a connection.

    False: at ``deadline``, or once the session closes, or the ``consumer`` that waits.

    Raises:
        ConnectionLostError: there will be no other connection.
        JMSError: the other broker refuses the session.
    """
    while s.epoch.lost is not None:
        s.take_in()  # whatever woke the caller before it came here may have been the news
        until = deadline
        if s.epoch.successor is not None:
            if (yield from _reattached(s)):
                continue
            until = s.now() + _AGAIN if deadline is None else min(deadline, s.now() + _AGAIN)
        _check_hope(s)
        closed = s.closing or (consumer is not None and consumer.stage is not OPEN)
        if closed or (deadline is not None and s.now() >= deadline):
            return False
        yield Parked(until)
    return True


def come_back(s: SessionState, deadline: float) -> Flow[bool]:
    """On the connection that has come, unless it is lost again; False: that is still to be done."""
    s.take_in()
    if s.epoch.successor is not None and not s.life.ended:
        yield from await_return(s, deadline)
    return came_back(s)


def came_back(s: SessionState) -> bool:
    """Check whether it is on a connection, or there will be none for it."""
    return s.epoch.lost is None or s.lost is not None or s.life.ended


def connected(s: SessionState, action: str, deadline: float | None = None) -> Flow[None]:
    """Done when the session has its channel, at once as a rule; for a call that asks the broker, named ``action``.

    ``deadline``: None for `request_timeout` from now on.

    Raises:
        RequestTimeoutError: it is not there at the deadline.
        IllegalStateError: the session closes.
        ConnectionLostError, JMSError: as `await_return`.
    """
    if s.epoch.lost is None:
        return
    if not (yield from await_return(s, s.now() + s.options.request_timeout if deadline is None else deadline)):
        if s.life.ended:
            raise s.life.problem(action)
        raise RequestTimeoutError(
            f"{action}: the connection was lost, and was not there again within request_timeout="
            f"{s.options.request_timeout:g} s: {s.epoch.lost}"
        ) from s.epoch.lost


def connected_to_send(s: SessionState, action: str, said: str = "", began: float | None = None) -> Flow[None]:
    """The same for what is sent or committed, which waits for the `timeout` of the ReconnectPolicy.

    ``began``: since when; None: since now. ``said``: what the error says after the action.

    Raises:
        ConnectionLostError: it was not there in time, or there will be none.
        IllegalStateError, JMSError: as above.
    """
    if s.epoch.lost is None:
        return
    policy = s.options.reconnect
    timeout = None if policy is None else policy.timeout
    if not (yield from await_return(s, None if timeout is None else timeout + (s.now() if began is None else began))):
        if s.closing:
            raise s.life.problem(action)
        raise ConnectionLostError(f"{action}: {said}{away(timeout, s.epoch.lost)}") from s.epoch.lost


def await_loss(s: SessionState, error: ConnectionLostError | None = None, since: int | None = None) -> Flow[None]:
    """For one who has got a ConnectionLostError: done when the session knows of the loss, which is at once.

    ``since``: the number of the epoch in which the one began who was not inside the session all the while: it may have
    come back by now.

    Raises:
        ConnectionLostError: there will be no other connection, or no loss becomes known within close_timeout;
            ``error``, where there is one.
    """
    if error is not None and not s.comes_back:
        raise error
    s.take_in()
    until = s.now() + s.options.close_timeout
    _check_hope(s)
    while s.epoch.lost is None and since in (None, s.epoch.number):
        if s.now() >= until:
            raise error or ConnectionLostError("the connection was lost, and nothing is known of another one")
        yield Parked(s.now() + _NEWS)
        s.take_in()
        _check_hope(s)


def arrival(s: SessionState, wish: Arrival) -> Flow[None]:
    """The wish; where the connection is lost meanwhile, done when the session knows of it.

    Raises:
        ConnectionLostError: there will be no other connection.
    """
    try:
        yield wish
    except ConnectionLostError as error:
        yield from await_loss(s, error)


def reattach(s: SessionState) -> Flow[None]:
    """A channel on the connection that has come, and its consumers; nothing where that is lost meanwhile."""
    transport = s.epoch.successor
    assert transport is not None, "it has come"
    try:
        if s.epoch.transport is not transport:
            named = [each.link.spec.subscription for each in s.ledger.consumers]
            yield from open_next(s, transport, client_id=any(each is not None and each.durable for each in named))
            s.epoch.again = deque(unanswered(s))
        yield from send_again(s)
        yield from send_deferred(s)
        for consumer in [each for each in s.ledger.consumers if not each.attached]:
            late = begins_late(consumer.link.spec) and not consumer.listening
            if (yield from _renamed(s, consumer)) and not late:
                yield from _attach(s, consumer)  # one of 0 begins with its next receive
    except ConnectionLostError:
        if s.epoch.successor is transport:
            s.epoch.fail()
        return
    s.came_back()


def _renamed(s: SessionState, consumer: ConsumerState) -> Flow[bool]:
    """Consume from what the temporary destination is now; False, and the consumer has ended, where there is none."""
    link = consumer.link
    try:
        now = yield from s.temporaries.take(link.destination, s.epoch.transport, s.waiter)
    except (ConnectionLostError, RequestTimeoutError):
        raise
    except JMSError as error:
        _ended(s, consumer, error)
        return False
    link.spec = replace(link.spec, destination=now)
    return True


def _ended(s: SessionState, consumer: ConsumerState, error: JMSError) -> None:
    s.ledger.link_ended(consumer, error)
    s.report(error, deadly=consumer.listening and not begins_anew(consumer, s.options.reconnect))


def _attach(s: SessionState, consumer: ConsumerState) -> Flow[None]:
    try:
        # it may be another broker than the one before
        check_evaluates(s.epoch.transport.peer, check_selector(consumer.link.spec.selector))
        yield from attach_anew(s, consumer)
    except (ConnectionLostError, RequestTimeoutError):
        raise
    except JMSError as error:
        _ended(s, consumer, error)


def _reattached(s: SessionState) -> Flow[bool]:
    """False: the session needs a socket of its own, and got none; as the connection may be lost again, it is no end."""
    try:
        yield from reattach(s)
    except RequestTimeoutError:
        raise  # or an interrupt: it is tried again
    except ConnectError as error:
        log.debug("a session has no connection yet: %s", error)
        return False
    except JMSError as error:
        s.step("lose", "the other broker refused the session", error)
        s.report(error, deadly=s.listener is not None)
    return True


def _check_hope(s: SessionState) -> None:
    if s.lost is not None:
        raise ConnectionLostError(f"the connection was lost: {s.lost}") from s.lost
    if s.life.stage is SessionStage.LOST:
        raise s.life.problem("reconnect")
