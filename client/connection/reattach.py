"""What a session does when its connection was lost and another one comes: a channel, and its consumers by new links."""

from __future__ import annotations

from functools import partial
from typing import Final

from redelivery.client.connection.lifecycle import SessionStage
from redelivery.client.connection.repeats import Repeatable
from redelivery.client.connection.unowned import UnownedSession
from redelivery.client.ledger import ConsumerState, Detach
from redelivery.client.state import SessionState
from redelivery.model.errors import ConnectionLostError, InvalidDestinationError, JMSError, RequestTimeoutError
from redelivery.transports.seam import Arrival, Flow, Parked, Transport, Wish

_NEWS: Final = 0.05  # seconds until one who has met a loss looks again for the news of it


def await_return(s: SessionState, deadline: float | None = None) -> Flow[bool]:
    """Done when the session has its channel and consumers on a connection; False at ``deadline``, or once it closes.

    Raises:
        ConnectionLostError: there will be no other connection.
        JMSError: the other broker refuses the session.
    """
    while s.away is not None:
        if s.returned is not None:
            yield from _reattached(s)
            continue
        _check_hope(s)
        if s.closing or (deadline is not None and s.now() >= deadline):
            return False
        yield Parked(deadline)
        s.take_in()
    return True


def await_loss(s: SessionState) -> Flow[None]:
    """For one who has got a ConnectionLostError: done when the session knows of the loss, which is at once.

    Raises:
        ConnectionLostError: there will be no other connection.
    """
    s.take_in()
    until = s.now() + s.options.close_timeout
    _check_hope(s)
    while s.away is None:
        if s.now() >= until:
            raise ConnectionLostError("the connection was lost, and nothing is known of another one")
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
    except ConnectionLostError:
        if not s.comes_back:
            raise
        yield from await_loss(s)


def reattach(s: SessionState) -> Flow[None]:
    """A channel on the connection that has come, and its consumers; nothing where that is lost meanwhile."""
    transport = s.returned
    assert transport is not None, "it has come"
    try:
        if s.transport is not transport:
            yield from _open_channel(s, transport)
            yield from _send_again(s)
        for consumer in [each for each in s.ledger.consumers if not each.attached]:
            if _renamed(s, consumer) and (consumer.link.window != 0 or consumer.listening):
                yield from _attach(s, consumer)  # one of 0 begins with its next receive
    except ConnectionLostError:
        if s.returned is transport:
            s.returned = None  # the news of the next one comes
        return
    s.came_back()


def _open_channel(s: SessionState, transport: Transport) -> Flow[None]:
    s.waiter.place = None
    s.channel = yield from transport.channel(s.mode, UnownedSession(s))
    s.transport = transport


def _send_again(s: SessionState) -> Flow[None]:
    """What the lost connection has not answered, in its order; see `repeats`."""
    unanswered = [each for each in s.unanswered if isinstance(each, Repeatable) and not each.done]
    for message, pending in [*((each, None) for each in s.sent), *((each.message, each) for each in unanswered)]:
        if message is not None:
            s.channel.send(message, transacted=pending is None, pending=pending)
            if s.channel.congested:
                yield from s.channel.room()


def _renamed(s: SessionState, consumer: ConsumerState) -> bool:
    """It consumes from what its temporary destination is now; False, and it has ended, where there is none."""
    link = consumer.link
    try:
        link.destination = s.temporaries.now(link.destination)
    except InvalidDestinationError as error:
        _ended(s, consumer, error)
        return False
    return True


def _ended(s: SessionState, consumer: ConsumerState, error: JMSError) -> None:
    s.ledger.link_ended(consumer, error)
    s.report(error, deadly=consumer.listening)


def _attach(s: SessionState, consumer: ConsumerState) -> Flow[None]:
    link = consumer.link
    try:
        yield from s.channel.attach(link)
    except ConnectionLostError:
        raise
    except (
        RequestTimeoutError,
        GeneratorExit,
    ):  # or interrupted: the next one is attached, and what comes of this one is nobody's
        consumer.renew()
        s.ledger.orders.append(Detach(link))
        raise
    except JMSError as error:
        _ended(s, consumer, error)
        return
    consumer.attached = True


def _reattached(s: SessionState) -> Flow[None]:
    try:
        yield from _whole(s, reattach(s))
    except RequestTimeoutError:
        raise  # or an interrupt: it is tried again
    except JMSError as error:
        s.step("lose", "the other broker refused the session", error)
        s.report(error, deadly=s.listener is not None)


def _whole(s: SessionState, flow: Flow[None]) -> Flow[None]:
    """The flow, of which no interrupt ends a step halfway, whatever drives it."""
    error: JMSError | None = None
    while True:
        wish = s.whole(partial(_step, flow, error))
        if wish is None:
            return
        error = None
        try:
            yield wish
        except JMSError as problem:
            error = problem


def _step(flow: Flow[None], error: JMSError | None) -> Wish | None:
    try:
        return next(flow) if error is None else flow.throw(error)
    except StopIteration:
        return None


def _check_hope(s: SessionState) -> None:
    if s.lost is not None:
        raise ConnectionLostError(f"the connection was lost: {s.lost}") from s.lost
    if s.life.stage is SessionStage.LOST:
        raise s.life.problem("reconnect")
