"""Ends a unit of work: commit, rollback, recover, and acknowledge in CLIENT mode."""

from __future__ import annotations

import logging
from collections.abc import Callable

from redelivery.client.ledger import BY_POLICY, Ledger, Received, Ruling, parking
from redelivery.client.ledger.history import trace
from redelivery.client.observing.traced import traced
from redelivery.client.operations.acknowledge import STRANDED, give_up_stranded, too_late
from redelivery.client.operations.orders import fail
from redelivery.client.operations.reattach import arrival, await_loss, connected_to_send
from redelivery.client.operations.send import patiently, send_confirmed
from redelivery.client.session.state import SILENCE, SessionState
from redelivery.model.errors import ConnectionLostError, InDoubtError, JMSError, TransactionRolledBackError
from redelivery.model.events import Committed, InDoubt
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.finding import found
from redelivery.transports.seam import Arrival, Flow

log = logging.getLogger(__name__)
_DONE = {"commit": "committed", "acknowledge": "acknowledged"}


def commit(s: SessionState, action: str = "commit") -> Flow[None]:
    """`_commit`, as it says. Called by the one who drives it, who is asked here whether he follows it."""
    flow = _commit(s, action)
    if s.tracer is None or not (s.ledger.held or s.sent):
        return flow
    return traced(s.tracer.settling(action, s.ledger.covered(), len(s.sent)), flow)


def _commit(s: SessionState, action: str) -> Flow[None]:
    """Commit a transaction, or acknowledge everything held in CLIENT mode, which is the same at the broker.

    Raises:
        ConnectionLostError: the connection was lost before; nothing was committed.
        TransactionRolledBackError: the deliveries are redelivered, by the policy; or by the broker, where the
            connection was lost since the transaction began.
        InDoubtError: they are forgotten, unless `redelivered_by_client`; ``sent`` and ``received`` are filled in.
        JMSError: in CLIENT mode: the broker has ended the consumer of some of them.
    """
    s.take_in()  # what was released is not covered
    if s.now() - s.heard > SILENCE and s.epoch.lost is None and (s.mode != AckMode.CLIENT or s.ledger.held):
        # a connection that is known to be gone is no doubt: nothing was committed
        yield from arrival(s, Arrival(poll=True))
        s.take_in()
    if s.sent and s.epoch.rollback_only is None:
        yield from connected_to_send(s, "commit")
    if s.epoch.rollback_only is not None:
        yield from _refuse_rollback_only(s, action, s.epoch.rollback_only)
    too_late(s, s.epoch.from_lost_connection)
    covered = s.ledger.covered()
    sent = tuple(s.sent)
    if not covered and not sent and (s.mode == AckMode.CLIENT or s.epoch.lost is not None):
        return
    if s.lost is not None:
        raise ConnectionLostError(
            f"{action}: nothing was {_DONE[action]}, the connection was lost: {s.lost}"
        ) from s.lost
    if s.ledger.link_has_ended and (stranded := s.ledger.stranded()) is not None:
        yield from _refuse_stranded(s, action, stranded)
    s.sent.clear()
    try:
        yield from _committing(s, covered)
        s.ledger.settled(covered)
        s.settled(covered)  # not every protocol and mode has an answer
    except BaseException as error:  # an interrupt is a time-out here
        _not_committed(s, covered, error)
        if _in_vain(s, covered, error):
            return
        if not (yield from _made_again(s, action, sent, covered, error)):
            raise
    s.heard = s.now()
    _say_committed(s, len(sent), covered)


def _made_again(
    s: SessionState, action: str, sent: tuple[Message, ...], covered: tuple[Received, ...], error: BaseException
) -> Flow[bool]:
    """Commit once more, where it had only sent; False: it was not. Raises InDoubtError with what is known."""
    if sent and not covered and _repeatable(s, error):
        yield from _commit_again(s, sent)
        return True
    if isinstance(error, InDoubtError):
        raise _say_in_doubt(s, action, sent, covered, error) from error.__cause__
    return False


def _in_vain(s: SessionState, covered: tuple[Received, ...], error: BaseException) -> bool:
    """CLIENT mode: whether an acknowledgement met the loss of a connection that comes back, as `acknowledge_one`'s may.

    They were acknowledged, or just not: events, when the loss has been taken in.
    """
    if s.mode != AckMode.CLIENT or not isinstance(error, ConnectionLostError) or not s.comes_back:
        return False
    s.epoch.acked_after_loss += covered
    s.take_in()
    return True


def _say_in_doubt(
    s: SessionState, action: str, sent: tuple[Message, ...], covered: tuple[Received, ...], error: InDoubtError
) -> InDoubtError:
    doubt = _in_doubt(error, action)
    doubt.sent = sent
    doubt.received = tuple(_message(delivery) for delivery in covered)
    if s.observed is not None:
        s.observed.notify(InDoubt(s.number, doubt.sent, doubt.received, doubt))
    return doubt


def _committing(s: SessionState, covered: tuple[Received, ...]) -> Flow[None]:
    committing = s.epoch.channel.commit(covered)
    return patiently(s, committing) if _repeats(s) and not covered else committing


def _repeats(s: SessionState) -> bool:
    """Check whether a transaction that has only sent is committed again where the answer went with the connection."""
    return s.options.deduplicate_sends and s.comes_back


def _repeatable(s: SessionState, error: BaseException) -> bool:
    unanswered = isinstance(error, (InDoubtError, TransactionRolledBackError))
    return unanswered and _repeats(s) and isinstance(error.__cause__, ConnectionLostError)


def _commit_again(s: SessionState, sent: tuple[Message, ...]) -> Flow[None]:
    """A transaction that has only sent, and whose answer went with the connection: once more, as a whole.

    A broker that refuses that has committed it. Not every one says so; each message is sent by itself then, and the
    broker drops it.

    Raises:
        InDoubtError: there is no answer either.
    """
    try:
        refused = yield from _sent_as_a_whole(s, sent)
        if refused:
            for message in sent:
                yield from send_confirmed(s, message)
    except InDoubtError:
        raise
    except JMSError as error:
        text = f"the broker's answer to the commit did not come, and what was sent could not be sent again: {error}"
        raise InDoubtError(text) from error


def _sent_as_a_whole(s: SessionState, sent: tuple[Message, ...]) -> Flow[bool]:
    """False: it is committed; True: it was refused."""
    while True:
        yield from await_loss(s)
        yield from connected_to_send(s, "commit")
        try:
            for message in sent:  # all of them first: a look waits, and a half of them must not be sent
                yield from found(s.epoch.channel.finder, message.destination)
            for message in sent:
                s.epoch.channel.send(message, transacted=True, pending=None)
            yield from patiently(s, s.epoch.channel.commit(()))
        except ConnectionLostError:
            continue
        except (InDoubtError, TransactionRolledBackError) as error:
            if _repeatable(s, error):
                continue
            if isinstance(error, InDoubtError):
                raise
            return True
        return False


def _not_committed(s: SessionState, covered: tuple[Received, ...], error: BaseException) -> None:
    """Have the ledger know that a commit failed."""
    rolled_back = isinstance(error, TransactionRolledBackError) and not error.redelivered_by_broker
    if rolled_back or (isinstance(error, InDoubtError) and error.redelivered_by_client):
        _fail(s, error)
        return
    s.ledger.settled(covered)  # by an error of another kind nobody knows
    if isinstance(error, JMSError):  # the broker may have them still
        s.history.note([trace(each, had=True) for each in covered], error)
    if isinstance(error, TransactionRolledBackError) and s.observed is not None:
        s.observed.released(s.number, covered)


def _refuse_stranded(s: SessionState, action: str, error: JMSError) -> Flow[None]:
    """Acknowledge nothing, as what the application holds cannot be acknowledged as a whole.

    Raises:
        TransactionRolledBackError: the transaction is rolled back.
        JMSError: in CLIENT mode, of the class of the broker's error; the rest is held still.
    """
    if s.mode == AckMode.TRANSACTED:
        problem = TransactionRolledBackError(f"nothing was committed: {STRANDED}: {error}")
        yield from _rollback(s, problem, BY_POLICY)
        raise problem from error
    raise give_up_stranded(s, action, error)


def _refuse_rollback_only(s: SessionState, action: str, error: JMSError) -> Flow[None]:
    """The connection was lost since the transaction began: nothing of it is at the broker.

    Raises:
        TransactionRolledBackError: always; what came of the next connection is rolled back with it.
    """
    problem = TransactionRolledBackError(
        f"{action}: nothing was {_DONE[action]}: the connection was lost since the transaction began; what was received"
        f" is redelivered: {error}"
    )
    yield from _rollback(s, problem, BY_POLICY)
    raise problem from error


def _in_doubt(error: InDoubtError, action: str) -> InDoubtError:
    if action == "commit" or action in str(error):
        return error
    reason = error.__cause__ or error
    return InDoubtError(
        f"{action}: the broker's answer did not come, so the messages may or may not be acknowledged: {reason}",
        transaction_id=error.transaction_id,
    )


def rollback(s: SessionState, cause: BaseException | None, ruling: Ruling = BY_POLICY) -> Flow[None]:
    """Undo the sends; what is held is redelivered or dead-lettered. `recover` is the same where nothing is sent."""
    flow = _rollback(s, cause, ruling)
    if s.tracer is None or not (s.ledger.held or s.sent):
        return flow
    action = "rollback" if s.mode == AckMode.TRANSACTED else "recover"
    return traced(s.tracer.settling(action, s.ledger.covered(), len(s.sent)), flow)


def _rollback(s: SessionState, cause: BaseException | None, ruling: Ruling) -> Flow[None]:
    yield from _undo(s)
    fail(s, lambda now: s.ledger.rollback(now, cause, ruling))


def put_back(s: SessionState) -> Flow[None]:
    """Undo the sends; what is held is delivered again at once, as if it had not been."""
    yield from _undo(s)
    _released(s, _put_back)


def park(s: SessionState) -> Flow[None]:
    """The same, but that others are delivered first: until `recall` it does not come."""
    yield from _undo(s)
    _released(s, parking.park)


def recall(s: SessionState) -> Flow[None]:
    """Deliver next what was set aside."""
    s.take_in()
    parking.recall(s.ledger)
    yield from ()


def _released(s: SessionState, change: Callable[[Ledger], None]) -> None:
    held = s.ledger.covered()
    change(s.ledger)
    if s.observed is not None:
        s.observed.released(s.number, held)


def _put_back(ledger: Ledger) -> None:
    for delivery in reversed(ledger.covered()):
        ledger.put_back(delivery)


def _undo(s: SessionState) -> Flow[None]:
    s.take_in()
    s.sent.clear()
    s.epoch.settle()
    if s.epoch.lost is None:
        try:
            yield from s.epoch.channel.rollback()
        except ConnectionLostError as error:
            yield from await_loss(s, error)  # which is a rollback
            s.epoch.rollback_only = None


def _say_committed(s: SessionState, sent: int, covered: tuple[Received, ...]) -> None:
    received = len(covered)
    if log.isEnabledFor(logging.DEBUG):
        if s.mode == AckMode.CLIENT:
            log.debug("%s: acknowledged %d", s.options.url, received)
        else:
            log.debug("%s: committed %d sent, %d received", s.options.url, sent, received)
    if s.observed is not None:
        s.observed.acknowledged(s.number, covered)
        if s.mode == AckMode.TRANSACTED:
            s.observed.notify(Committed(s.number, sent, received))


def _fail(s: SessionState, cause: BaseException | None) -> None:
    fail(s, lambda now: s.ledger.rollback(now, cause))


def _message(delivery: Received) -> Message:
    return Message.received(delivery, delivery.redeliveries, None)
