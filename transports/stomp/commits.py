"""The ends of a unit of work: COMMIT, and the dead letter that is sent and acknowledged as one.

1. BEGIN, ACKs and COMMIT leave in one write only when the transaction has no SEND: a broker commits the rest of a
   transaction of which it refused a SEND. So every SEND is answered first, and a refused one aborts.
2. Around a COMMIT nothing else is acknowledged in an open transaction, where the broker would forget it then.
3. An answer to COMMIT that does not come is in doubt; before COMMIT is written nothing is.
4. Where an ACK in a transaction counts at once, or COMMIT is not atomic, the ACKs wait until every SEND is confirmed. A
   crash in between leaves the sends done and brings the deliveries again: twice, never lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256

from redelivery.model.destinations import Topic
from redelivery.model.errors import ConnectionLostError, InDoubtError, JMSError, TransactionRolledBackError
from redelivery.model.messages import Message
from redelivery.transports.base import NO_ANSWER, Flow, Pending
from redelivery.transports.stomp.conversation import Conversation
from redelivery.transports.stomp.messages import StompDelivery
from redelivery.transports.stomp.subscriptions import PLAIN, acks
from redelivery.transports.stomp.transactions import Parking, UnitOfWork


def commit(
    talk: Conversation, work: UnitOfWork, parking: Parking, deliveries: Sequence[StompDelivery], errors_before: int
) -> Flow[None]:
    """Commit the SENDs, and acknowledge the deliveries: in the transaction, or after it where ACKs are not undone.

    ``errors_before`` is the router's count at BEGIN.

    Raises:
        TransactionRolledBackError, InDoubtError: see `Channel.commit`.
    """
    if not deliveries and not work.begun:
        return
    if not talk.dialect.ack_in_transaction:
        yield from _commit_then_acknowledge(talk, work, deliveries, errors_before)
        return
    try:
        yield from _confirm_sends(talk, work, errors_before)
        before, after = _around(talk, parking)
        enlisted = before + work.enlist(deliveries)
        pending, receipt = talk.ask()
    except ConnectionLostError as error:
        work.close()
        raise _undone(error) from error
    yield from _end(talk, work, enlisted + work.commit(receipt) + forget(talk) + after, pending, receipt)


def _commit_then_acknowledge(
    talk: Conversation, work: UnitOfWork, deliveries: Sequence[StompDelivery], errors_before: int
) -> Flow[None]:
    """The SENDs, confirmed, and then the ACKs: whoever dies between the two gets the deliveries again."""
    committed = work.begun
    try:
        if committed:
            yield from _confirm_sends(talk, work, errors_before)
            late = [] if talk.dialect.commit_confirms_sends else work.sends
            pending, receipt = talk.ask()
        first = acks(deliveries[:-1])  # may raise: before anything is done
    except ConnectionLostError as error:
        work.close()
        raise _undone(error) from error
    if committed:
        name = work.name
        yield from _end(talk, work, work.commit(receipt), pending, receipt)
        yield from _late_confirmations(late, name)
    if deliveries:
        yield from _acknowledge(talk, first, deliveries[-1], committed=committed)


def dead_letter(
    talk: Conversation, parking: Parking, delivery: StompDelivery, copy: Message, *, alone: bool
) -> Flow[None]:
    """The copy and the ACK in a transaction of their own; or the one after the other.

    That is where ACKs are not undone, or where the session's transaction has acknowledged something already
    (not ``alone``) and a COMMIT would make the broker forget it.

    Raises:
        JMSError: the broker refuses the copy; the delivery is still ours.
        InDoubtError: the answer to the COMMIT did not come.
    """
    head, body = talk.encoder.encode(copy)
    pending, receipt = talk.ask()
    if not talk.dialect.ack_in_transaction or (talk.dialect.commit_ends_parking and not alone):
        head += _duplicate_id(delivery)
        talk.outbox.write(b"%breceipt:%b\n\n" % (head, receipt), body, b"\0")
        yield from talk.answer(pending, receipt)
        talk.outbox.write(delivery.subscription.ack(delivery, PLAIN))
        return
    work = UnitOfWork()
    head = b"%b%breceipt:%b\ntransaction:%b\n\n" % (work.begin(), head, receipt, work.name.encode())
    talk.outbox.write(head, body, b"\0")
    try:
        yield from talk.answer(pending, receipt)
    except JMSError:
        talk.abort(work)
        raise
    before, after = _around(talk, parking)
    pending, receipt = talk.ask()
    written = before + work.enlist((delivery,)) + work.commit(receipt) + after
    yield from _end(talk, work, written, pending, receipt)


def _duplicate_id(delivery: StompDelivery) -> bytes:
    """The header by which a broker drops a second copy, made after the ACK of the first was lost; where it can.

    Of a topic's message every subscriber may make a copy of its own: it has none.
    """
    header, source = delivery.subscription.dialect.duplicate_id_header, delivery.header("destination")
    if header is None or isinstance(source, Topic):
        return b""
    text = f"{source}\n{delivery.broker_id()}"
    return f"{header}:{sha256(text.encode()).hexdigest()}\n".encode()


def empty(receipt: bytes) -> bytes:
    """A transaction of nothing, undone and answered: a question that every frame before it comes before."""
    work = UnitOfWork()
    return work.begin() + b"ABORT\nreceipt:%b" % receipt + work.end_of_frame()


def forget(talk: Conversation) -> bytes:
    """An empty transaction, undone: the broker's list of transacted messages of each subscription is empty after it.

    Without it that list grows with every commit, and each COMMIT walks through all of it.
    """
    work = UnitOfWork()
    return work.begin() + b"ABORT" + work.end_of_frame() if talk.dialect.commit_ends_parking else b""


def _around(talk: Conversation, parking: Parking) -> tuple[bytes, bytes]:
    return parking.around(talk.control.abort) if talk.dialect.commit_ends_parking else (b"", b"")


def _confirm_sends(talk: Conversation, work: UnitOfWork, errors_before: int) -> Flow[None]:
    """Wait until every SEND of the transaction is answered; one that failed undoes it all."""
    problem: JMSError | None = None
    try:
        for pending in work.sends if talk.dialect.receipt_in_transaction else ():
            if not pending.done:
                yield pending
            problem = problem or pending.error
    except NO_ANSWER as error:
        problem = error
    if work.begun and not talk.dialect.receipt_in_transaction and talk.router.errors != errors_before:
        problem = talk.router.last_error  # the answer to a SEND may be any ERROR
    if problem is not None:
        text = f"a send in the transaction failed, so all of it was undone: {problem}"
        with suppress(ConnectionLostError):  # undone by the broker then
            talk.abort(work)
        raise TransactionRolledBackError(text) from problem


def _end(talk: Conversation, work: UnitOfWork, written: bytes, pending: Pending, receipt: bytes) -> Flow[None]:
    name = work.close()
    try:
        talk.outbox.write(written)
        yield from talk.answer(pending, receipt)
    except NO_ANSWER as error:
        text = f"the broker's answer to the commit did not come: {error}"
        raise InDoubtError(text, transaction_id=name) from error
    except JMSError as error:
        raise TransactionRolledBackError(f"the commit was refused: {error}") from error


def _late_confirmations(sends: Sequence[Pending], name: str) -> Flow[None]:
    """Where each SEND is answered after the COMMIT: one that is refused does not undo the others."""
    problem: JMSError | None = None
    try:
        for pending in sends:
            if not pending.done:
                yield pending
            problem = problem or pending.error
    except NO_ANSWER as error:
        problem = error
    if problem is not None:
        raise InDoubtError(
            f"the sends of the transaction were not all confirmed, some may be done: {problem}", transaction_id=name
        ) from problem


def _acknowledge(talk: Conversation, first: bytes, last: StompDelivery, *, committed: bool) -> Flow[None]:
    """The ACKs, of which the last is answered, and with it all."""
    written = False
    try:
        pending, receipt = talk.ask()
        data = first + last.subscription.ack(last, b"\nreceipt:%b\n\n\0" % receipt)
        written = True
        talk.outbox.write(data)
        yield from talk.answer(pending, receipt)
    except JMSError as error:
        if not committed and not written:
            raise _undone(error) from error
        sent = "the sends are committed, but it" if committed else "it"
        raise InDoubtError(f"{sent} is not known which deliveries are acknowledged: {error}") from error


def _undone(error: JMSError) -> TransactionRolledBackError:
    return TransactionRolledBackError(f"the connection was lost before the commit: {error}")
