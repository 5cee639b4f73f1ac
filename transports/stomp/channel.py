"""One session's conversation over STOMP: what is written when."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count
from typing import Final, cast

from redelivery.model.destinations import Topic
from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.base import Channel, Delivery, Flow, Link, Pending
from redelivery.transports.stomp import commits
from redelivery.transports.stomp.browsing import Show, browse_headers
from redelivery.transports.stomp.conversation import Conversation
from redelivery.transports.stomp.messages import StompDelivery
from redelivery.transports.stomp.names import to_wire
from redelivery.transports.stomp.subscribing import end, give_back, move_aside, subscribe_headers
from redelivery.transports.stomp.subscriptions import PLAIN, Subscription, acks
from redelivery.transports.stomp.transactions import Parking, UnitOfWork
from redelivery.transports.stomp.windows import Window, window_size

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
        self._subscriptions: dict[Link, list[Subscription]] = {}
        self._work = UnitOfWork()  # the session's transaction, in CLIENT mode a hidden one
        self._errors_before = 0  # the router's count at its BEGIN
        self._parking = Parking()
        self._windows: dict[Link, Window] = {}
        commits = mode in (AckMode.TRANSACTED, AckMode.CLIENT)
        self._enlists = talk.dialect.enlist_at_most > 0 and commits
        self._withholds = talk.dialect.overflows and commits
        if self._enlists:
            talk.router.enlisting.add(self)

    def attach(self, link: Link) -> Flow[None]:
        """SUBSCRIBE, answered."""
        dialect = self._dialect
        # what is withheld from a topic's consumer would stop it, and a second one would get everything twice
        unlimited = self._withholds and isinstance(link.destination, Topic) and not dialect.fixed_window
        size = None if unlimited else window_size(link, dialect)
        if link.prefetch is None:
            link.prefetch = dialect.default_prefetch
        headers = subscribe_headers(link, dialect, size) | (browse_headers(dialect) if link.browse else {})
        destination = to_wire(link.destination, dialect)
        link.id = str(next(_identifiers))
        events = Show(self._talk.events) if link.browse else self._talk.events
        subscription = Subscription(link, events, dialect, self._talk.version)
        pending, receipt = self._talk.ask()
        errors = self._talk.router.errors
        silent = link.destination.is_pattern and dialect.receipt_starves_patterns
        if silent:  # an empty transaction is answered instead
            frame = self._talk.control.subscribe(destination, link.id, headers) + commits.empty(receipt)
        else:
            frame = self._talk.control.subscribe(destination, link.id, {**headers, "receipt": receipt.decode()})
        self._talk.router.add(subscription)
        self._subscriptions[link] = [subscription]
        if dialect.overflows:
            self._windows[link] = Window(dialect, size, subscription)
        try:
            self._outbox.write(frame)
            yield from self._talk.answer(pending, receipt)
            if silent and self._talk.router.errors != errors:
                raise self._talk.router.last_error or JMSError(f"{link.destination}: the broker refuses the consumer")
        except JMSError as error:
            self._forget((subscription,))
            if isinstance(error, RequestTimeoutError):  # it may exist, and nobody would take its messages
                self._outbox.write(self._talk.control.unsubscribe(link.id, receipt.decode()))
            raise

    def detach(self, link: Link) -> Flow[None]:
        """UNSUBSCRIBE, answered: what is not acknowledged goes back at once."""
        subscriptions = self._subscriptions.get(link)
        if subscriptions is not None:
            undo = self._unpark(each for each in self._parking.parked() if each.link is link)
            yield from self._unsubscribe(undo, subscriptions)

    def look(self, link: Link) -> Flow[bool]:
        """Until a message comes, or the broker's mark of the end."""
        return cast(Show, self._subscriptions[link][0].events).look(self._outbox)

    def handed_out(self, delivery: Delivery) -> None:
        """In a transaction, every so often, the ACKs of what was handed out: the broker would stop otherwise.

        Where no ACK may leave, a further subscription goes on.
        """
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
        elif self._withholds:
            self._take((delivery,))

    def accept(self, deliveries: Sequence[Delivery], *, lazy: bool) -> None:
        """ACK, outside any transaction."""
        ours: Sequence[StompDelivery] = deliveries  # type: ignore[assignment]  # as above
        if self._work.enlisted:
            self._take_out(ours)
        subscription = ours[0].subscription
        data = subscription.ack(ours[0], PLAIN) if len(ours) == 1 else acks(ours)
        if self._windows:
            self._settle(ours)
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
            self._settle((ours,))
            return
        if not self._dialect.nack_is_poison:
            raise UnsupportedError("on this broker NACK may delete: a dead letter must be a copy")
        pending, receipt = self._talk.ask()
        end = b"".join([b"\n%b:%b" % (name.encode(), value.encode()) for name, value in self._dialect.nack_headers])
        self._outbox.write(b"N" + ours.subscription.ack(ours, b"%b\nreceipt:%b\n\n\0" % (end, receipt)))
        yield from self._talk.answer(pending, receipt)
        self._settle((ours,))

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
        idle = [each for each in self._windows.values() if each.idle(ours)]
        yield from commits.commit(self._talk, self._work, self._parking, ours, self._errors_before)
        if self._windows:
            self._settle(ours)
            yield from self._shrink(idle)

    def rollback(self) -> Flow[None]:
        """ABORT of what was begun; the deliveries stay with us, unacknowledged."""
        self._hold_nothing()
        self._talk.abort(self._work)
        yield from ()

    def park(self, deliveries: Sequence[Delivery]) -> None:
        """ACKs in a transaction that is never committed, where that frees the window; or a further subscription."""
        if self._dialect.parks and deliveries:
            written = self._parking.park(cast(Sequence[StompDelivery], deliveries))
            if written:
                self._outbox.write(written)
        elif self._windows:
            self._take(deliveries)

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
            yield from self._unsubscribe(undo, [each for group in self._subscriptions.values() for each in group])
        except ConnectionLostError:
            return  # then everything is the broker's again
        except JMSError as error:
            self._report(error)

    def _unsubscribe(self, undo: bytes, subscriptions: Iterable[Subscription]) -> Flow[None]:
        subscriptions = tuple(subscriptions)
        if self._dialect.unsubscribe_keeps is None:
            self._forget(subscriptions)
        for each in subscriptions:
            each.stopping = True
        try:
            if self._dialect.unsubscribe_keeps is None:
                yield from end(self._talk, subscriptions, undo)
            else:
                yield from give_back(self._talk, subscriptions)
        finally:
            self._forget(subscriptions)

    def _forget(self, subscriptions: Iterable[Subscription]) -> None:
        for subscription in subscriptions:
            self._talk.router.remove(subscription)
            group = self._subscriptions.get(subscription.link, [])
            if subscription in group:
                group.remove(subscription)
            if not group:
                self._subscriptions.pop(subscription.link, None)
                self._windows.pop(subscription.link, None)

    def _take(self, deliveries: Iterable[Delivery]) -> None:
        """The application holds them, unacknowledged, for long."""
        for each in deliveries:
            window = self._windows.get(each.link)
            size = 0 if window is None else window.take(cast(StompDelivery, each))
            if window is not None and size:
                self._go_on(each.link, window, size)

    def _go_on(self, link: Link, window: Window, size: int) -> None:
        """A further subscription of that size; nobody waits for the answer."""
        if isinstance(link.destination, Topic):
            window.unlimited()
            self._report(
                UnsupportedError(
                    f"{link.destination}: the broker sends no more until some of what this consumer holds is "
                    "acknowledged; commit smaller batches"
                )
            )
            return
        identifier = str(next(_identifiers))
        subscription = Subscription(link, self._talk.events, self._dialect, self._talk.version, identifier)
        headers = subscribe_headers(link, self._dialect, size)
        frame = self._talk.control.subscribe(to_wire(link.destination, self._dialect), identifier, headers)
        if self._dialect.unsubscribe_keeps is not None:  # the one that is full ends
            frame = move_aside(self._talk, window.newest) + frame
            window.replace(subscription, size)
        else:
            window.grow(subscription, size)
        self._subscriptions[link].append(subscription)
        self._talk.router.add(subscription)
        self._outbox.write(frame)

    def _settle(self, deliveries: Iterable[StompDelivery]) -> None:
        for each in deliveries:
            window = self._windows.get(each.link)
            if window is not None:
                window.settle(each)

    def _shrink(self, idle: Collection[Window]) -> Flow[None]:
        """End the further subscriptions that are not needed any more; a refusal is reported."""
        ended: list[Subscription] = []
        for window in self._windows.values():
            group = [*window.over(), *(window.further() if window in idle else ())]
            if group and self._talk.router.retire(group):  # what is on its way to them goes back
                window.drop(group)
                ended += group
        if ended:
            self._forget(ended)
            try:
                yield from end(self._talk, ended)
            except JMSError as error:
                self._report(error)

    def _in_transaction(self, pending: Pending | None) -> Pending | None:
        """The pending to ask for: our own, where COMMIT waits for the answer, or is followed by it."""
        if not self._dialect.receipt_in_transaction and self._dialect.commit_confirms_sends:
            return pending
        own = Pending(self._talk.events.waiter, None if pending is None else pending.pass_on)
        self._work.sends.append(own)
        return own

    def _begin(self) -> bytes:
        if not self._work.begun:
            self._errors_before = self._talk.router.errors
        return self._work.begin()

    def _hold_nothing(self) -> None:
        for group in self._subscriptions.values():
            for subscription in group:
                subscription.held = []

    def _take_out(self, deliveries: Iterable[StompDelivery]) -> None:
        """They must not be in the transaction; the others that are enlisted are acknowledged at its commit."""
        if self._work.needs_abort(deliveries):
            self._talk.abort(self._work)

    def _unpark(self, deliveries: Iterable[StompDelivery]) -> bytes:
        return self._parking.unpark(deliveries, self._talk.control.abort)
