"""The ends of a unit of work: COMMIT, and the dead letter that is sent and acknowledged as one.

1. BEGIN, ACKs and COMMIT leave in one write only when the transaction has no SEND: a broker commits the rest of a
   transaction of which it refused a SEND. So every SEND is answered first, and a refused one aborts.
2. Around a COMMIT nothing else is acknowledged in an open transaction, where the broker would forget it then.
3. An answer to COMMIT that does not come is in doubt; before COMMIT is written nothing is.
4. An ACK asks for no answer, but an ERROR about one comes before the answer to COMMIT. Before COMMIT is written it
   undoes all; afterwards it is in doubt what is acknowledged.
5. One delivery and nothing else needs no transaction where its ACK, answered, is as good as a COMMIT.
6. Where an ACK in a transaction counts at once, or COMMIT is not atomic, the ACKs wait until every SEND is confirmed. A
   crash in between leaves the sends done and brings the deliveries again: twice, never lost. So does an answer to
   COMMIT that does not come.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256

from redelivery.model.destinations import Queue, Topic
from redelivery.model.errors import ConnectionLostError, InDoubtError, JMSError, TransactionRolledBackError
from redelivery.model.messages import Message
from redelivery.transports.finding import found, origin_notes
from redelivery.transports.seam import NO_ANSWER, Flow, Pending
from redelivery.transports.stomp.channel.context import StompChannelContext
from redelivery.transports.stomp.channel.transactions import Parking, UnitOfWork
from redelivery.transports.stomp.codec.frames import escape
from redelivery.transports.stomp.codec.names import to_wire
from redelivery.transports.stomp.connection.subscriptions import PLAIN, StompDelivery, acks


def commit(
    context: StompChannelContext, work: UnitOfWork, parking: Parking, deliveries: Sequence[StompDelivery]
) -> Flow[None]:
    """Commit the SENDs, and acknowledge the deliveries: in the transaction, or after it where ACKs are not undone.

    Raises:
        TransactionRolledBackError, InDoubtError: see `Channel.commit`.
    """
    if not context.dialect.ack_in_transaction:
        return _commit_then_acknowledge(context, work, deliveries)
    if work.begun:
        return _commit_begun(context, work, parking, deliveries)
    return _commit_at_once(context, work, parking, deliveries) if deliveries else _nothing()


def _nothing() -> Flow[None]:
    yield from ()


def _commit_begun(
    context: StompChannelContext, work: UnitOfWork, parking: Parking, deliveries: Sequence[StompDelivery]
) -> Flow[None]:
    try:
        yield from _confirm_sends(context, work)
    except ConnectionLostError as error:
        work.close()
        raise _undone(error, work) from error
    yield from _commit_at_once(context, work, parking, deliveries)


def _commit_at_once(
    context: StompChannelContext, work: UnitOfWork, parking: Parking, deliveries: Sequence[StompDelivery]
) -> Flow[None]:
    """All that is missing in one write, of which nothing has left before the flow begins."""
    begins = not work.begun
    try:
        # one ACK alone would take back the room that a parked one has made
        if begins and len(deliveries) == 1 and context.dialect.lone_ack_commits and not parking.parks:
            ack = deliveries[0].subscription.ack(deliveries[0], b"\nreceipt:")
            pending, receipt = context.ask()
            return _end(context, work, None, b"%b%b\n\n\0" % (ack, receipt), pending, receipt)
        before, after = _around(context, parking)
        enlisted = before + work.enlist(deliveries)
        pending, receipt = context.ask()
        written = enlisted + work.commit(receipt) + forget(context) + after
        return _end(context, work, work.close(), written, pending, receipt)
    except ConnectionLostError as error:
        work.close()
        raise _undone(error, work) from error
    except JMSError:
        raise
    except BaseException:  # an interrupt
        if begins:
            work.forget()
        raise


def _commit_then_acknowledge(
    context: StompChannelContext, work: UnitOfWork, deliveries: Sequence[StompDelivery]
) -> Flow[None]:
    """The SENDs, confirmed, and then the ACKs: after a crash between the two the deliveries are redelivered."""
    committed = work.begun
    try:
        if committed:
            yield from _confirm_sends(context, work)
            late = [] if context.dialect.commit_confirms_sends else work.sends
            pending, receipt = context.ask()
        asked = [each for each in deliveries if not each.subscription.automatic]
        acks(each for each in deliveries if each.subscription.automatic)  # nothing, but it may raise, as the next one:
        first = acks(asked[:-1])  # before anything is done
    except ConnectionLostError as error:
        work.close()
        raise _undone(error, work) from error
    if committed:
        name = work.name
        written = work.commit(receipt)
        try:
            yield from _end(context, work, work.close(), written, pending, receipt)
            yield from _late_confirmations(late, name)
        except InDoubtError as error:  # of the sends; where the connection is there, no delivery is acknowledged
            error.redelivered_by_client = bool(asked) and not isinstance(error.__cause__, ConnectionLostError)
            raise
    if asked:
        yield from _acknowledge(context, work, first, asked[-1], committed=committed)


def dead_letter(
    context: StompChannelContext, parking: Parking, delivery: StompDelivery, copy: Message, *, alone: bool
) -> Flow[None]:
    """The copy and the ACK in a transaction of their own; or the one after the other.

    That is where ACKs are not undone, or where the session's transaction has acknowledged something already
    (not ``alone``) and a COMMIT would make the broker forget it.

    Raises:
        JMSError: the broker refuses the copy; the delivery is still ours.
        InDoubtError: the answer to the COMMIT did not come; or the copy is written, and the ACK was refused.
    """
    yield from found(context.finder, copy.destination)
    head, body = context.encoder.encode(copy)
    head += _origin(context, delivery)
    pending, receipt = context.ask()
    if not context.dialect.ack_in_transaction or (context.dialect.commit_ends_parking and not alone):
        head += _duplicate_id(context, delivery)
        context.outbox.write(b"%breceipt:%b\n\n" % (head, receipt), body, b"\0")
        yield from context.answer(pending, receipt)
        if ack := delivery.subscription.ack(delivery, PLAIN):
            context.outbox.write(ack)
        return
    work = UnitOfWork(context.router)
    head = b"%b%breceipt:%b\ntransaction:%b\n\n" % (work.begin(), head, receipt, work.name.encode())
    context.outbox.write(head, body, b"\0")
    try:
        yield from context.answer(pending, receipt)
    except JMSError:
        context.abort(work)
        raise
    before, after = _around(context, parking)
    pending, receipt = context.ask()
    written = before + work.enlist((delivery,)) + work.commit(receipt) + after
    yield from _end(context, work, work.close(), written, pending, receipt)


def _origin(context: StompChannelContext, delivery: StompDelivery) -> bytes:
    """The headers by which the broker's console brings a dead letter home, as the broker's own have them.

    Only a broker with addresses has such a console.
    """
    dialect, version = context.dialect, context.version
    if dialect.origin_prefix is None or not dialect.capabilities.addresses:
        return b""
    sent_to, source = to_wire(delivery.sent_to(), dialect), context.name(delivery.link.destination)
    notes = origin_notes(sent_to, source, delivery.broker_id(), queue=isinstance(delivery.link.destination, Queue))
    lines = [f"{dialect.origin_prefix}{name}:{escape(value, version)}\n" for name, value in notes.items()]
    return "".join(lines).encode()


def _duplicate_id(context: StompChannelContext, delivery: StompDelivery) -> bytes:
    """The header by which a broker drops a second copy, made after the ACK of the first was lost; where it can.

    Of a topic's message every subscriber may make a copy of its own: it has none. So may a consumer of each queue of an
    address that has the message: it is one of its queue.
    """
    header, source = delivery.subscription.dialect.capabilities.duplicate_id_property, delivery.header("destination")
    if header is None or isinstance(source, Topic):
        return b""
    text = f"{context.name(delivery.link.destination)}\n{delivery.broker_id()}"
    return f"{header}:{sha256(text.encode()).hexdigest()}\n".encode()


def nack(context: StompChannelContext, delivery: StompDelivery) -> Flow[None]:
    """NACK, answered, where that dead-letters. Raises JMSError: it was refused."""
    pending, receipt = context.ask()
    end = b"".join([b"\n%b:%b" % (name.encode(), value.encode()) for name, value in context.dialect.nack_headers])
    context.outbox.write(b"N" + delivery.subscription.ack(delivery, b"%b\nreceipt:%b\n\n\0" % (end, receipt)))
    yield from context.answer(pending, receipt)


def empty(receipt: bytes) -> bytes:
    """A transaction of nothing, undone and answered: a question that every frame before it comes before."""
    work = UnitOfWork()
    return work.begin() + b"ABORT\nreceipt:%b" % receipt + work.end_of_frame()


def forget(context: StompChannelContext) -> bytes:
    """An empty transaction, undone: the broker's list of transacted messages of each subscription is empty after it.

    Without it that list grows with every commit, and each COMMIT walks through all of it.
    """
    work = UnitOfWork()
    return work.begin() + b"ABORT" + work.end_of_frame() if context.dialect.commit_ends_parking else b""


def _around(context: StompChannelContext, parking: Parking) -> tuple[bytes, bytes]:
    return parking.around(context.control.abort) if context.dialect.commit_ends_parking else (b"", b"")


def _confirm_sends(context: StompChannelContext, work: UnitOfWork) -> Flow[None]:
    """Wait until every SEND of the transaction is answered; one that failed undoes it all, as does a refused ACK."""
    problem: JMSError | None = None
    what = "a send in the transaction failed"
    try:
        for pending in work.sends if context.dialect.receipt_in_transaction else ():
            if not pending.done:
                yield pending
            problem = problem or pending.error
    except NO_ANSWER as error:
        problem = error
    if work.begun and not context.dialect.receipt_in_transaction:
        problem = work.last_error or problem  # the answer to a SEND may be any ERROR
    if problem is None and work.begun and context.dialect.ack_in_transaction and work.refused_ack is not None:
        problem, what = work.refused_ack, "the broker refused an acknowledgement in the transaction"
    if problem is not None:
        text = f"{what}, so all of it was undone: {problem}"
        with suppress(ConnectionLostError):  # undone by the broker then
            context.abort(work)
        raise TransactionRolledBackError(text) from problem


def _end(
    context: StompChannelContext, work: UnitOfWork, name: str | None, written: bytes, pending: Pending, receipt: bytes
) -> Flow[None]:
    """``name``: of the transaction, which is closed; None where there is none."""
    try:
        context.outbox.write(written)
        yield from context.answer(pending, receipt)
    except NO_ANSWER as error:
        text = f"the broker's answer to the {work.verb} did not come: {error}"
        raise InDoubtError(text, transaction_id=name) from error
    except JMSError as error:
        if context.dialect.ack_in_transaction and name is not None:
            yield from _undo(context, name)
        raise TransactionRolledBackError(f"the {work.verb} was refused: {error}") from error
    refused = work.refused_ack if context.dialect.ack_in_transaction and name is not None else None
    if refused is not None:
        text = (
            f"the broker has committed, but refused an acknowledgement; what was received may be redelivered: {refused}"
        )
        raise InDoubtError(text, transaction_id=name) from refused


def _undo(context: StompChannelContext, name: str) -> Flow[None]:
    """ABORT after a COMMIT that was refused: the broker may still hold what was acknowledged in the transaction.

    One that knows the transaction no more answers with an ERROR, which says no less.
    """
    with suppress(JMSError):
        pending, receipt = context.ask()
        context.outbox.write(b"ABORT\ntransaction:%b\nreceipt:%b\n\n\0" % (name.encode(), receipt))
        yield from context.answer(pending, receipt)


def _late_confirmations(sends: Sequence[Pending], name: str) -> Flow[None]:
    """Wait for the answers to SENDs after the COMMIT: one that is refused does not undo the others."""
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


def _acknowledge(
    context: StompChannelContext, work: UnitOfWork, first: bytes, last: StompDelivery, *, committed: bool
) -> Flow[None]:
    """The ACKs, of which the last is answered, and with it all."""
    written = False
    unasked = context.router.unasked
    try:
        pending, receipt = context.ask()
        data = first + last.subscription.ack(last, b"\nreceipt:%b\n\n\0" % receipt)
        written = True
        context.outbox.write(data)
        yield from context.answer(pending, receipt)
    except JMSError as error:
        if not committed and not written:
            raise _undone(error, work) from error
        sent = "the sends are committed, but it" if committed else "it"
        raise InDoubtError(f"{sent} is not known which deliveries are acknowledged: {error}") from error
    if context.router.unasked != unasked:
        refused = context.router.last_unasked
        text = f"the broker refused an acknowledgement; what was received may be redelivered: {refused}"
        raise InDoubtError(text) from refused


def _undone(error: JMSError, work: UnitOfWork) -> TransactionRolledBackError:
    return TransactionRolledBackError(f"the connection was lost before the {work.verb}: {error}")
