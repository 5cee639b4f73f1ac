"""What ends a unit of work: commit, rollback, acknowledge. Called by the holder of the session."""

from __future__ import annotations

from redelivery.client.core import SessionCore
from redelivery.client.ledger.entries import RETURNED
from redelivery.model.errors import ConnectionLostError, IllegalStateError, InDoubtError, TransactionRolledBackError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.base import Delivery
from redelivery.transports.wire.clock import monotonic

_SILENCE = 0.02  # seconds without an answer after which a commit looks first whether the connection is still there


def commit(core: SessionCore) -> None:
    """Commit a transaction, or acknowledge everything held in CLIENT mode, which is the same at the broker.

    Raises:
        ConnectionLostError: the connection was lost before; nothing was committed.
        TransactionRolledBackError: the deliveries come again, by the policy.
        InDoubtError: they are forgotten; ``sent`` and ``received`` are filled in.
    """
    covered = core.ledger.covered()
    sent = tuple(core.sent)
    if not covered and not sent and core.mode == AckMode.CLIENT:
        return
    if monotonic() - core.heard > _SILENCE:
        core.transport.wait(core.waiter, 0)  # a connection that is known to be gone is no doubt: nothing was committed
    if core.lost is not None:
        raise ConnectionLostError(f"commit: nothing was committed, the connection was lost: {core.lost}") from core.lost
    core.sent.clear()
    try:
        core.do(core.channel.commit(covered))
    except TransactionRolledBackError as error:
        if error.redelivered_by_broker:
            core.ledger.settled(covered)
        else:
            core.ledger.rollback(monotonic(), error)
        core.carry_out()
        raise
    except InDoubtError as error:
        core.ledger.settled(covered)
        error.sent = sent
        error.received = tuple(_message(delivery) for delivery in covered)
        if core.lost is None:
            core.carry_out()
        raise
    except BaseException:
        core.ledger.settled(covered)  # interrupted: nobody will know, as with a lost answer
        raise
    core.ledger.settled(covered)
    core.heard = monotonic()
    core.carry_out()


def rollback(core: SessionCore, cause: BaseException | None) -> None:
    """Undo the sends; what is held comes again or is dead-lettered. `recover` is the same where nothing is sent."""
    core.sent.clear()
    core.do(core.channel.rollback())
    core.ledger.rollback(monotonic(), cause)
    core.carry_out()


def acknowledge_one(core: SessionCore, message: Message) -> None:
    """INDIVIDUAL mode: this message; a stale object or a second time does nothing."""
    delivery: Delivery = message.source  # type: ignore[assignment]  # of a receipt of ours; others are in no ledger
    if core.ledger.acknowledge(delivery, message.local_redeliveries):
        core.channel.accept((delivery,), lazy=True)
    elif delivery is None or delivery.state is RETURNED:
        raise IllegalStateError(
            "acknowledge: the message was not received here, or its consumer was closed and it is the broker's again"
        )


def close_books(core: SessionCore) -> None:
    """The session ends: a transacted one counts what it held as rolled back, then everything is the broker's again."""
    if core.inbox:
        core.take_in()
    try:
        if core.mode == AckMode.TRANSACTED:
            core.sent.clear()
            core.do(core.channel.rollback())
        core.ledger.close(monotonic())
        core.carry_out()
    finally:
        for channel in (*core.browsing, core.channel):
            core.do(channel.close())


def _message(delivery: Delivery) -> Message:
    return Message.received(delivery, delivery.redeliveries, None)
