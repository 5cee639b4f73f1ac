"""One session's conversation over STOMP: what is written when."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Final, cast

from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.base import Channel, Delivery, Flow, Link, Pending
from redelivery.transports.stomp import commits
from redelivery.transports.stomp.conversation import Conversation
from redelivery.transports.stomp.messages import StompDelivery
from redelivery.transports.stomp.names import to_wire
from redelivery.transports.stomp.subscriptions import PLAIN, Subscription, acks
from redelivery.transports.stomp.transactions import Parking, UnitOfWork

_identifiers: Final = count(1)  # never the same twice in a process: a subscription belongs to one connection
_LARGE: Final = 64 << 10  # bytes from which a body is not copied into its frame


class StompChannel(Channel):
    """See `Channel`. What differs between brokers is read from the dialect.

    Args:
        talk: the means to write and to ask.
        mode: of the session; in TRANSACTED and CLIENT mode what is handed out enters a transaction, chunk by chunk.
        report: is told of errors that no call waits for.
        stand_in: is called when an answer is awaited by nobody who reads.
    """

    def __init__(
        self, talk: Conversation, mode: AckMode, report: Callable[[JMSError], None], stand_in: Callable[[], None]
    ) -> None:
        self._talk = talk
        self._dialect = talk.dialect
        self._outbox = talk.outbox
        self._report = report
        self._stand_in = stand_in
        self._subscriptions: dict[Link, Subscription] = {}
        self._work = UnitOfWork()  # the session's transaction, in CLIENT mode a hidden one
        self._errors_before = 0  # the router's count at its BEGIN
        self._parking = Parking()
        self._enlists = talk.dialect.enlist_at_most > 0 and mode in (AckMode.TRANSACTED, AckMode.CLIENT)
        if self._enlists:
            talk.router.enlisting.add(self)

    def attach(self, link: Link) -> Flow[None]:
        """SUBSCRIBE, answered."""
        headers = self._subscribe_headers(link)
        destination = to_wire(link.destination, self._dialect)
        link.id = str(next(_identifiers))
        subscription = Subscription(link, self._talk.events, self._dialect, self._talk.version)
        pending, receipt = self._talk.ask()
        errors = self._talk.router.errors
        silent = link.destination.is_pattern and self._dialect.receipt_starves_patterns
        if silent:  # an empty transaction is answered instead
            frame = self._talk.control.subscribe(destination, link.id, headers) + commits.empty(receipt)
        else:
            frame = self._talk.control.subscribe(destination, link.id, {**headers, "receipt": receipt.decode()})
        self._talk.router.add(subscription)
        self._subscriptions[link] = subscription
        try:
            self._outbox.write(frame)
            yield from self._talk.answer(pending, receipt)
            if silent and self._talk.router.errors != errors:
                raise self._talk.router.last_error or JMSError(f"{link.destination}: the broker refuses the consumer")
        except JMSError as error:
            self._forget(subscription)
            if isinstance(error, RequestTimeoutError):  # it may exist, and nobody would take its messages
                self._outbox.write(self._talk.control.unsubscribe(link.id, receipt.decode()))
            raise

    def detach(self, link: Link) -> Flow[None]:
        """UNSUBSCRIBE, answered: what is not acknowledged goes back at once."""
        subscription = self._subscriptions.get(link)
        if subscription is not None:
            undo = self._unpark(each for each in self._parking.parked() if each.link is link)
            yield from self._unsubscribe(undo, [subscription])

    def handed_out(self, delivery: Delivery) -> None:
        """In a transaction, every so often, the ACKs of what was handed out: the broker would stop otherwise."""
        if self._enlists:
            ours: StompDelivery = delivery  # type: ignore[assignment]  # cast() costs a call per message
            subscription = ours.subscription
            held = subscription.held
            held.append(ours)
            alone = len(self._talk.router.enlisting) == 1
            if len(held) >= (subscription.mark if alone else subscription.window):
                subscription.held = []
                # another session's COMMIT would make the broker forget these: its list must not have them
                self._outbox.write(self._work.enlist(held) + (b"" if alone else commits.forget(self._talk)))

    def accept(self, deliveries: Sequence[Delivery], *, lazy: bool) -> None:
        """ACK, outside any transaction."""
        ours: Sequence[StompDelivery] = deliveries  # type: ignore[assignment]  # as above
        if self._work.enlisted:
            self._take_out(ours)
        subscription = ours[0].subscription
        data = subscription.ack(ours[0], PLAIN) if len(ours) == 1 else acks(ours)
        if not lazy:
            self._outbox.write(data)
            return
        subscription.lazy += len(ours)
        if subscription.lazy < subscription.half:
            self._outbox.later(data)
        else:  # or the broker would wait for us, and we for it
            subscription.lazy = 0
            self._outbox.write(data)

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """STOMP has no word for it: they go back at UNSUBSCRIBE."""

    def poison(self, delivery: Delivery, cause: str, copy: Message | None) -> Flow[None]:  # noqa: ARG002  # in the copy
        """NACK, which carries no cause; or the copy, and the ACK."""
        ours = cast(StompDelivery, delivery)
        self._take_out((ours,))
        if copy is not None:
            alone = not self._work.enlisted
            yield from commits.dead_letter(self._talk, self._parking, ours, copy, alone=alone)
            return
        if not self._dialect.nack_is_poison:
            raise UnsupportedError("on this broker NACK may delete: a dead letter must be a copy")
        pending, receipt = self._talk.ask()
        self._outbox.write(b"N" + ours.subscription.ack(ours, b"\nreceipt:%b\n\n\0" % receipt))
        yield from self._talk.answer(pending, receipt)

    def send(self, message: Message, *, transacted: bool, pending: Pending | None) -> None:
        """SEND. One in a transaction is answered too, so that a refused one is known before the COMMIT."""
        head, body = self._talk.encoder.encode(message)
        alone = pending is not None and pending.waiter is None
        if transacted:
            pending = self._in_transaction(pending)
            head = b"%b%btransaction:%b\n" % (self._begin(), head, self._work.name.encode())
        if pending is not None:
            head = b"%breceipt:%b\n" % (head, self._talk.router.expect(pending))
        if len(body) > _LARGE:
            self._outbox.write(head + b"\n", body, b"\0")
        elif transacted or alone:
            self._outbox.later(b"%b\n%b\0" % (head, body))
        else:
            self._outbox.write(b"%b\n%b\0" % (head, body))
        if alone:
            self._stand_in()

    def commit(self, deliveries: Sequence[Delivery]) -> Flow[None]:
        """COMMIT, with the ACKs that are still missing."""
        ours = cast(Sequence[StompDelivery], deliveries)
        self._hold_nothing()
        if self._work.enlisted and not self._work.enlisted.issubset(ours):
            self._take_out(self._work.enlisted.difference(ours))
        yield from commits.commit(self._talk, self._work, self._parking, ours, self._errors_before)

    def rollback(self) -> Flow[None]:
        """ABORT of what was begun; the deliveries stay with us, unacknowledged."""
        self._hold_nothing()
        self._talk.abort(self._work)
        yield from ()

    def park(self, deliveries: Sequence[Delivery]) -> None:
        """ACKs in a transaction that is never committed, where that frees the window."""
        if self._dialect.parks and deliveries:
            written = self._parking.park(cast(Sequence[StompDelivery], deliveries))
            if written:
                self._outbox.write(written)

    def unpark(self, deliveries: Sequence[Delivery]) -> None:
        """ABORT of that transaction."""
        undo = self._unpark(cast(Sequence[StompDelivery], deliveries))
        if undo:
            self._outbox.write(undo)

    def close(self) -> Flow[None]:
        """ABORTs and UNSUBSCRIBEs, answered; that no answer came is reported."""
        self._talk.router.enlisting.discard(self)
        try:
            undo = self._unpark(self._parking.parked())
            self._talk.abort(self._work)
            yield from self._unsubscribe(undo, list(self._subscriptions.values()))
        except ConnectionLostError:
            return  # then everything is the broker's again
        except JMSError as error:
            self._report(error)

    def _subscribe_headers(self, link: Link) -> dict[str, str]:
        dialect = self._dialect
        headers: dict[str, str] = {}
        if link.prefetch is None:
            link.prefetch = dialect.default_prefetch
        if dialect.prefetch_header is not None:
            headers[dialect.prefetch_header] = str(max(1, link.prefetch))  # 0 would never deliver
        if link.selector is not None:
            if not dialect.capabilities.selectors:
                raise UnsupportedError("this broker has no selectors over STOMP")
            headers["selector"] = link.selector
        if link.no_local:
            if dialect.no_local_header is None:
                raise UnsupportedError("this broker has no no_local over STOMP")
            headers[dialect.no_local_header] = "true"
        if dialect.map_transformation is not None:
            headers["transformation"] = dialect.map_transformation
        return headers

    def _unsubscribe(self, undo: bytes, subscriptions: list[Subscription]) -> Flow[None]:
        asked = [self._talk.ask() for _ in subscriptions]
        frames = [
            self._talk.control.unsubscribe(each.link.id, receipt.decode())
            for each, (_, receipt) in zip(subscriptions, asked, strict=True)
        ]
        for each in subscriptions:
            self._forget(each)
        if undo or frames:
            self._outbox.write(undo + b"".join(frames))
        for pending, receipt in asked:
            yield from self._talk.answer(pending, receipt)

    def _forget(self, subscription: Subscription) -> None:
        self._talk.router.remove(subscription)
        self._subscriptions.pop(subscription.link, None)

    def _in_transaction(self, pending: Pending | None) -> Pending | None:
        """The pending to ask for: our own, where the answer comes before the COMMIT."""
        if not self._dialect.receipt_in_transaction:
            return pending
        own = Pending(self._talk.events.waiter, None if pending is None else _passes_on_to(pending))
        self._work.sends.append(own)
        return own

    def _begin(self) -> bytes:
        if not self._work.begun:
            self._errors_before = self._talk.router.errors
        return self._work.begin()

    def _hold_nothing(self) -> None:
        for subscription in self._subscriptions.values():
            subscription.held = []

    def _take_out(self, deliveries: Iterable[StompDelivery]) -> None:
        """They must not be in the transaction; the others that are enlisted are acknowledged at its commit."""
        if self._work.needs_abort(deliveries):
            self._talk.abort(self._work)

    def _unpark(self, deliveries: Iterable[StompDelivery]) -> bytes:
        return self._parking.unpark(deliveries, self._talk.control.abort)


def _passes_on_to(other: Pending) -> Callable[[Pending], None]:
    def pass_on(pending: Pending) -> None:
        if pending.error is None:
            other.complete(pending.value)
        else:
            other.fail(pending.error)

    return pass_on
