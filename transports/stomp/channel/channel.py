"""One session at the broker over STOMP: what is written when."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, cast

from redelivery.model.destinations import Topic
from redelivery.model.errors import ConnectionLostError, InDoubtError, JMSError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.seam import Channel, Delivery, Flow, Link, Pending
from redelivery.transports.stomp.channel import commits, subscribing
from redelivery.transports.stomp.channel.browsing import BrowseSubscription
from redelivery.transports.stomp.channel.context import ChannelOwner, StompChannelContext
from redelivery.transports.stomp.channel.transactions import Parking, UnitOfWork
from redelivery.transports.stomp.channel.windows import STUCK, Window, fits, retired, settle
from redelivery.transports.stomp.connection.redelivered_ids import RedeliveredIds
from redelivery.transports.stomp.connection.subscriptions import PLAIN, StompDelivery, StompSubscription, acks

_LARGE: Final = 64 << 10  # bytes from which a body is not copied into its frame


class StompChannel(Channel):
    """See `Channel`. What differs between brokers is read from the dialect.

    Args:
        context: the means to write and to ask.
        mode: of the session; in TRANSACTED and CLIENT mode what is dispatched enters a transaction, chunk by chunk.
        owner: is notified of errors that no call waits for, and of the end.
    """

    def __init__(self, context: StompChannelContext, mode: AckMode, owner: ChannelOwner) -> None:
        self._context, self._dialect, self._outbox = context, context.dialect, context.outbox
        self.finder = context.finder
        self._encoder = context.encoder
        self._encode, self._expect = self._encoder.encode, context.router.expect  # of every send
        self._owner, self._report, self._read_on_behalf = owner, owner.on_error, owner.read_on_behalf
        verb = "acknowledge" if mode == AckMode.CLIENT else "commit"
        self._work = UnitOfWork(context.router, verb)  # the session's transaction, in CLIENT mode a hidden one
        self._parking = Parking()
        self._subscriptions: dict[Link, list[StompSubscription]] = {}
        self._windows: dict[Link, Window] = {}
        self._redelivered = RedeliveredIds(context.released) if context.dialect.releases_as_new else None
        commits = mode in (AckMode.TRANSACTED, AckMode.CLIENT)
        self._enlists = context.dialect.enlist_at_most > 0 and commits
        self._acks_deferred = context.dialect.needs_extra_subscription and commits

    def attach(self, link: Link) -> Flow[None]:
        """SUBSCRIBE, answered."""
        dialect, router = self._dialect, self._context.router
        size, headers = yield from subscribing.prepare(self._context, link, deferred=self._acks_deferred)
        link.id = subscribing.new_identifier()
        events = BrowseSubscription(self._context.events) if link.spec.browse else self._context.events
        subscription = StompSubscription(link, events, dialect, self._context.version)
        pending, receipt = self._context.ask()
        several = link.destination.is_pattern or "," in link.destination.name
        errors, silent = router.errors, several and dialect.receipt_starves_patterns
        frame = subscribing.subscribe_frame(self._context, link, headers, receipt, silent=silent)
        self._add(subscription, [])
        if dialect.needs_extra_subscription:
            self._windows[link] = Window(dialect, size, subscription)
        try:
            self._outbox.write(frame)
            yield from self._context.answer(pending, receipt)
            if silent and router.errors != errors:
                raise router.last_error or JMSError(f"{link.destination}: the broker refuses the consumer")
        except JMSError as error:
            self._forget((subscription,))
            yield from subscribing.give_up(self._context, link, receipt, error)
            raise

    def detach(self, link: Link) -> Flow[None]:
        """UNSUBSCRIBE, answered: what is not acknowledged goes back at once."""
        if (subscriptions := self._subscriptions.get(link)) is not None:
            parked = [each for each in self._parking.parked() if each.link is link]
            undo = self._parking.unpark(self._context.control.abort, parked)
            yield from self._unsubscribe(undo, subscriptions)

    def browse_more(self, link: Link) -> Flow[bool]:
        """Wait until a message comes, or the broker's mark of the end."""
        return cast(BrowseSubscription, self._subscriptions[link][0].events).browse_more(self._outbox)

    def dispatched(self, delivery: Delivery) -> None:
        """In a transaction now and then the ACKs of what was dispatched, or a further subscription: it would stop."""
        if self._enlists:
            ours: StompDelivery = delivery  # type: ignore[assignment]  # cast() costs a call per message
            subscription = ours.subscription
            held = subscription.held
            held.append(ours)
            if len(held) >= subscription.ack_threshold:
                self._enlist(subscription)
        elif self._acks_deferred and not delivery.link.spec.pulls:
            self._take((delivery,))
        if self._redelivered is not None:
            self._redelivered.show(cast(StompDelivery, delivery))

    def has_room(self, link: Link, number: int) -> bool:
        """See `Channel`; where a window is counted here, `widen_window` knows."""
        return not self._windows and super().has_room(link, number)

    def widen_window(self, deliveries: Sequence[Delivery]) -> bool:
        """See `Channel`; where that would need a further subscription, as far as the window goes."""
        within = fits(self._windows, cast(Sequence[StompDelivery], deliveries))
        return super().widen_window(deliveries) if within is None else within

    def accept(self, deliveries: Sequence[Delivery], *, batched: bool, done: list[None] | None = None) -> None:
        """ACK, outside any transaction."""
        ours: Sequence[StompDelivery] = deliveries  # type: ignore[assignment]  # as above
        if self._work.enlisted:
            self._take_out(ours)
        subscription, number = ours[0].subscription, len(ours)
        data = subscription.ack(ours[0], PLAIN) if number == 1 else acks(ours)
        done = [] if done is None else done
        subscription.batched += number
        try:
            if not data:
                done += (None,)
            elif batched and subscription.batched < subscription.batch_limit:
                self._outbox.later(data, done)
            else:  # or the broker would wait for us, and we for it
                subscription.batched = 0
                self._outbox.write(data, done=done)
        finally:
            if self._windows and done:
                settle(self._windows, self._redelivered, ours)

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """STOMP has no word for it: they go back at UNSUBSCRIBE."""

    def poison(
        self,
        delivery: Delivery,
        cause: str,  # noqa: ARG002  # in the copy
        copy: Message | None,
        *,
        expired: bool = False,  # noqa: ARG002  # a NACK has no word for it
    ) -> Flow[None]:
        """NACK, which carries no cause; or the copy, and the ACK."""
        ours = cast(StompDelivery, delivery)
        self._take_out((ours,))
        if copy is not None:
            yield from commits.dead_letter(self._context, self._parking, ours, copy, alone=not self._work.enlisted)
        elif self._dialect.nack_is_poison:
            yield from commits.nack(self._context, ours)
        else:
            raise UnsupportedError("on this broker NACK may delete: a dead letter must be a copy")
        settle(self._windows, self._redelivered, (ours,))

    def check(self, message: Message) -> None:
        """See `Channel`."""
        self._encode(message)

    def send(self, message: Message, *, transacted: bool, pending: Pending | None, batched: bool = False) -> None:
        """SEND. One in a transaction is answered too, so that a refused one is known before the COMMIT."""
        head, body = self._encode(message)
        work, receipt = self._work, b""
        sends: tuple[Pending, ...] = ()
        if transacted:
            if self._dialect.receipt_in_transaction or not self._dialect.commit_confirms_sends:
                pending = Pending(self._context.events.waiter, None if pending is None else pending.pass_on)
                sends = (pending,)
            head = b"%b%btransaction:%b\n" % (work.beginning(), head, work.name.encode())
        done: list[None] = []
        try:
            if pending is None:
                parts = [head, b"\n", body, b"\0"]
            else:
                receipt = (self._context.router.expect_map if self._encoder.has_maps else self._expect)(pending)
                parts = [head, b"receipt:", receipt, b"\n\n", body, b"\0"]
            if len(body) > _LARGE:
                self._outbox.write(*parts, done=done)
            elif transacted or batched:
                self._outbox.later(b"".join(parts), done)
            else:
                self._outbox.write(b"".join(parts), done=done)
        finally:
            if not done:
                if receipt:
                    self._context.router.forget(receipt)
            elif transacted:
                work.begun = True
                work.sends += sends
        if batched:
            self._read_on_behalf()

    @property
    def congested(self) -> bool:  # type: ignore[override]  # which is the outbox's
        """See `Channel`; under threads the writer has waited already."""
        return self._outbox.congested

    @property
    def blocked_sends(self) -> int:  # type: ignore[override]  # which is the outbox's, too
        """See `Channel`: 1 where the socket takes nothing more, as the protocol has no credit."""
        return int(self._outbox.blocked)

    def room(self) -> Flow[None]:
        """Wait until the system has taken what is written."""
        return self._context.drained()

    def commit(self, deliveries: Sequence[Delivery]) -> Flow[None]:
        """COMMIT, with the ACKs that are still missing."""
        ours = cast(Sequence[StompDelivery], deliveries)
        self._hold_nothing()
        if self._work.enlisted and not self._work.enlisted.issubset(ours):
            self._take_out(self._work.enlisted.difference(ours))
        flow = commits.commit(self._context, self._work, self._parking, ours)
        return self._settled(flow, ours) if self._windows or self._redelivered is not None else flow

    def _settled(self, flow: Flow[None], ours: Sequence[StompDelivery]) -> Flow[None]:
        idle = [each for each in self._windows.values() if each.idle(ours)]
        try:
            yield from flow
        except InDoubtError as error:  # they may be acknowledged: released at the end, RabbitMQ would hang up on us
            if not error.redelivered_by_client:
                settle(self._windows, self._redelivered, ours)
            raise
        if self._windows:
            settle(self._windows, self._redelivered, ours)
            yield from self._shrink(idle)

    def rollback(self) -> Flow[None]:
        """ABORT of what was begun; the deliveries stay with us, unacknowledged."""
        self._hold_nothing()
        self._context.abort(self._work)
        yield from ()

    def park(self, deliveries: Sequence[Delivery]) -> None:
        """ACKs in a transaction that is never committed, where that frees the window; or a further subscription."""
        if self._dialect.parks and deliveries:
            if written := self._parking.park(cast(Sequence[StompDelivery], deliveries)):
                self._outbox.write(written)
        elif self._windows:
            self._take(deliveries)

    def unpark(self, deliveries: Sequence[Delivery]) -> None:
        """ABORT of that transaction."""
        if undo := self._parking.unpark(self._context.control.abort, cast(Sequence[StompDelivery], deliveries)):
            self._outbox.write(undo)

    def close(self) -> Flow[None]:
        """ABORTs and UNSUBSCRIBEs, answered; that no answer came is reported."""
        clean = False
        try:
            undo = self._parking.unpark(self._context.control.abort, self._parking.parked())
            self._context.abort(self._work)
            yield from self._unsubscribe(undo, [each for group in self._subscriptions.values() for each in group])
            clean = True
        except ConnectionLostError:
            return  # then everything goes back to the broker
        except JMSError as error:
            self._report(error)
        finally:
            try:
                yield from self._owner.leave(self._context, clean=clean)
            except ConnectionLostError:
                pass
            except JMSError as error:
                self._report(error)

    def _unsubscribe(self, undo: bytes, subscriptions: Iterable[StompSubscription]) -> Flow[None]:
        known = tuple(subscriptions)
        if self._redelivered is not None:
            self._redelivered.release(known)
        subscriptions = tuple(each for each in known if not self._context.router.cancelled(each))
        self._forget(set(known).difference(subscriptions))  # the broker has ended them
        if self._dialect.unsubscribe_keeps is None:
            self._forget(subscriptions)
        for each in subscriptions:
            each.stopping = True
        try:
            if self._dialect.unsubscribe_keeps is None:
                yield from subscribing.end(self._context, subscriptions, undo)
            else:
                yield from subscribing.release_unsettled(self._context, subscriptions)
        finally:
            self._forget(subscriptions)

    def _forget(self, subscriptions: Iterable[StompSubscription]) -> None:
        for subscription in subscriptions:
            self._context.router.remove(subscription)
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
            if window is not None and (size := window.take(cast(StompDelivery, each))):
                self._go_on(each.link, window, size)

    def _go_on(self, link: Link, window: Window, size: int) -> None:
        """A further subscription of that size; nobody waits for the answer."""
        if isinstance(link.destination, Topic):
            window.unlimited()
            self._report(UnsupportedError(f"{link.destination}: {STUCK}; commit smaller batches"))
            return
        subscription, frame = subscribing.further(self._context, link, size)
        if self._dialect.unsubscribe_keeps is not None:  # the one that is full ends
            frame = subscribing.supersede(self._context, window.newest) + frame
            window.replace(subscription, size)
        else:
            window.grow(subscription, size)
        self._add(subscription, self._subscriptions[link])
        self._outbox.write(frame)

    def _add(self, subscription: StompSubscription, group: list[StompSubscription]) -> None:
        subscription.redelivered = self._redelivered
        self._subscriptions[subscription.link] = [*group, subscription]
        self._context.router.add(subscription)

    def _shrink(self, idle: Collection[Window]) -> Flow[None]:
        """End the further subscriptions that are not needed any more; a refusal is reported."""
        if ended := retired(self._windows.values(), idle, self._context.router.retire):
            self._forget(ended)
            try:
                yield from subscribing.end(self._context, ended)
            except JMSError as error:
                self._report(error)

    def _enlist(self, subscription: StompSubscription) -> None:
        missing, written = self._work.enlisting(list(dict.fromkeys(subscription.held)))  # one may be there twice
        done: list[None] = []
        try:
            self._outbox.write(written, done=done)
        finally:
            if done:
                self._work.begun, subscription.held = True, []
                self._work.enlisted |= missing

    def _hold_nothing(self) -> None:
        if self._enlists:
            for subscription in [each for group in self._subscriptions.values() for each in group]:
                subscription.held = []

    def _take_out(self, deliveries: Iterable[StompDelivery]) -> None:
        """Take deliveries out of the transaction; the others that are enlisted are acknowledged at its commit."""
        if self._work.needs_abort(deliveries):
            self._context.abort(self._work)
