"""One session at the broker over AMQP: which link, which outcome, and when it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import cast

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.errors import (
    ConnectionLostError,
    JMSError,
    MessageFormatError,
    RequestTimeoutError,
    UnsupportedError,
)
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.amqp.channel.browsing import BrowsingReceiver, browse_more
from redelivery.transports.amqp.channel.context import AmqpChannelContext
from redelivery.transports.amqp.channel.detaching import detach, drain, echo
from redelivery.transports.amqp.channel.sending import Sending
from redelivery.transports.amqp.channel.transactions import Transactions
from redelivery.transports.amqp.channel.unsubscribing import free_name
from redelivery.transports.amqp.codec.names import to_address
from redelivery.transports.amqp.connection.protocol import AmqpProtocol
from redelivery.transports.amqp.links.dispositions import ACCEPTED, RELEASED
from redelivery.transports.amqp.links.receivers import AmqpDelivery, Receiver
from redelivery.transports.dialects.amqp import AmqpDialect
from redelivery.transports.finding import Finder, found, origin_notes
from redelivery.transports.seam import Channel, Delivery, Flow, Link, LinkSpec, Pending


class AmqpChannel(Channel):
    """See `Channel`. What differs between brokers is read from the dialect.

    Args:
        context: the means to write and to ask.
        mode: of the session.
        report: is notified of errors that no call waits for.
        relays: the broker has the anonymous relay.
        request_timeout: seconds that a send waits for credit.
        finder: see `Channel`.
    """

    def __init__(
        self,
        context: AmqpChannelContext,
        mode: AckMode,
        report: Callable[[JMSError], None],
        *,
        relays: bool,
        request_timeout: float,
        finder: Finder | None = None,
    ) -> None:
        self.finder = finder
        self._context = context
        self._protocol = context.protocol
        self._dialect = context.dialect
        self._mode = mode
        self._report = report
        self._receivers: dict[Link, Receiver] = {}
        self._transactions = Transactions(context)
        self._sending = Sending(context, self._transactions, report, relays=relays, timeout=request_timeout)

    def attach(self, link: Link) -> Flow[None]:
        """Attach a receiving link; the first credit follows the broker's answer."""
        asked = self._context.ask()
        _check_link(link.spec, self._dialect)
        if link.spec.subscription is not None:
            yield from free_name(self._context.protocol, link.spec.subscription, self._context.events.waiter)
        address = yield from self._context.made_for(link)
        with self._context.writing():
            kind = BrowsingReceiver if link.spec.browse else Receiver
            receiver = kind(
                self._context.session(link.destination, consumers=True),
                link,
                self._context.events,
                self._dialect,
                address,
            )
            self._context.open(receiver, link.destination, asked)
        link.id = receiver.name
        link.prefetch = receiver.ahead.size
        self._receivers[link] = receiver
        try:
            yield from self._context.answer(asked)
        except JMSError as error:
            self._receivers.pop(link)
            if isinstance(error, RequestTimeoutError):
                with self._context.writing():
                    receiver.close(None)
            raise
        if self._dialect.topic_waits_for_credit and isinstance(link.destination, Topic):
            yield from echo(self._context)

    def detach(self, link: Link) -> Flow[None]:
        """Release what is not settled, then detach."""
        receiver = self._receivers.pop(link, None)
        if receiver is not None:
            yield from detach(self._context, [receiver])

    def fetch(self, link: Link) -> Flow[None]:
        """Drain the link."""
        receiver = self._receivers.get(link)
        if receiver is not None and self._dialect.drain:
            yield from drain(self._context, [receiver])

    def browse_more(self, link: Link) -> Flow[bool]:
        """Ask for a window full."""
        return browse_more(self._context, cast(BrowsingReceiver, self._receivers[link]))

    def pull(self, link: Link) -> None:
        """Give credit for one, unless there is some."""
        receiver = self._receivers.get(link)
        if receiver is not None and receiver.spent:
            with self._context.writing():
                receiver.pull()

    def dispatched(self, delivery: Delivery) -> None:
        """Give credit for another one, the first time."""
        ours: AmqpDelivery = delivery  # type: ignore[assignment]  # cast() costs a call per message
        if not ours.credited:
            receiver = ours.receiver
            if receiver.seen + 1 >= receiver.ack_threshold:
                self._make_room(ours)
            else:
                ours.credited = True
                receiver.seen += 1

    def _make_room(self, delivery: AmqpDelivery) -> None:
        with self._context.writing():
            delivery.receiver.make_room(delivery)

    def accept(self, deliveries: Sequence[Delivery], *, batched: bool, done: list[None] | None = None) -> None:
        """`accepted`, settled, with the credit that this allows."""
        ours: Sequence[AmqpDelivery] = deliveries  # type: ignore[assignment]  # as above
        protocol = self._protocol
        with protocol.lock:
            if protocol.lost is not None:
                protocol.check()
            written = protocol.written
            batched = self._settle(ours, protocol, batched)
        if protocol.blocked and not batched:
            protocol.raise_refused(written)
        if done is not None:
            done.append(None)
        if batched:
            if not protocol.unwritten:
                protocol.flush_soon()
        elif protocol.blocked:
            protocol.drain()

    @staticmethod
    def _settle(deliveries: Sequence[AmqpDelivery], protocol: AmqpProtocol, batched: bool) -> bool:
        """Settle them, by the holder of the lock; whether that waits for company, as it may where ``batched``."""
        try:
            for delivery in deliveries:
                receiver = delivery.receiver
                receiver.settle(delivery, ACCEPTED)
                if not delivery.credited:
                    receiver.make_room(delivery)
                receiver.batched += 1
        except JMSError:
            protocol.write()  # those before it are acknowledged
            raise
        if batched and receiver.batched < receiver.ahead.step:
            return True
        receiver.batched = 0
        protocol.write()
        return False

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """At the detach, which follows: while the link has credit, the broker may send them to it again."""

    def poison(
        self,
        delivery: Delivery,
        cause: str,
        copy: Message | None,
        *,
        expired: bool = False,
    ) -> Flow[None]:
        """`rejected`, outside any transaction; or the copy and `accepted`, as one where there are transactions.

        What has expired is `released` where the broker then sees that itself, and may have another place for it.
        """
        ours = cast(AmqpDelivery, delivery)
        if copy is None:
            if not self._dialect.rejected_is_poison:
                raise UnsupportedError("on this broker `rejected` only counts: a dead letter must be a copy")
            with self._context.writing():
                if expired and self._dialect.expires_released:
                    ours.receiver.settle(ours, RELEASED)
                else:
                    ours.receiver.reject(ours, cause)
                ours.receiver.make_room(ours)
            return
        yield from found(self.finder, copy.destination)
        parts = self._sending.encode(copy, self._origin(ours))
        with self._context.writing():
            sender = self._sending.sender(cast(Destination, copy.destination))
        if self._dialect.capabilities.transactions:
            yield from self._transactions.dead_letter(sender, parts, ours)
            return
        asked = self._context.ask()
        with self._context.writing():
            sender.send(parts, None, asked)
        try:
            yield from self._context.answer(asked)
        except RequestTimeoutError as error:
            self.withdraw(asked)  # or the next attempt would make a second one
            raise asked.error or error from None
        self.accept((ours,), batched=False)

    def _origin(self, delivery: AmqpDelivery) -> Mapping[str, str]:
        """The annotations by which the broker's console brings a dead letter home, as the broker's own have them."""
        prefix, source = self._dialect.origin_prefix, delivery.link.destination
        if prefix is None:
            return {}
        message_id = None
        with suppress(MessageFormatError):
            message_id = delivery.header("message_id")
        sent_to, known = (
            to_address(delivery.sent_to(), self._dialect),
            message_id if isinstance(message_id, str) else None,
        )
        notes = origin_notes(sent_to, source.name, known, queue=isinstance(source, Queue))
        return {f"{prefix}{name.replace('_', '-')}": value for name, value in notes.items()}

    def check(self, message: Message) -> None:
        """See `Channel`."""
        self._sending.encode(message)

    def send(self, message: Message, *, transacted: bool, pending: Pending | None, batched: bool = False) -> None:
        """A transfer, which leaves as soon as the broker gives credit."""
        parts = self._sending.encode(message)
        destination = cast(Destination, message.destination)
        self._sending.send(destination, parts, pending, transacted=transacted, batched=batched)

    def withdraw(self, pending: Pending) -> None:
        """See `Channel.withdraw`: what waits for credit."""
        self._sending.withdraw((pending,))

    def commit(self, deliveries: Sequence[Delivery]) -> Flow[None]:
        """Discharge; in CLIENT mode, where there are no sends to go with it, `accepted`.

        There, what has gone back to the broker by now raises JMSError, and the rest is acknowledged all the same.
        """
        ours = cast(Sequence[AmqpDelivery], deliveries)
        if self._mode == AckMode.TRANSACTED:
            yield from self._transactions.commit(ours)
            return
        live = [each for each in ours if each in each.receiver.unsettled]
        stale = None
        if len(live) < len(ours):
            stale = next(each for each in ours if each not in each.receiver.unsettled)
        if live:
            self.accept(live, batched=False)
        if stale is not None:
            stale.receiver.check(stale)

    def rollback(self) -> Flow[None]:
        """Undo the sends; the deliveries were never in the transaction."""
        self._transactions.rollback()
        yield from ()

    def park(self, deliveries: Sequence[Delivery]) -> None:
        """Take deliveries out of the window that were not dispatched; those that were do not count against it."""
        for each in deliveries:
            self.dispatched(each)

    def unpark(self, deliveries: Sequence[Delivery]) -> None:
        """Nothing was done."""

    def close(self) -> Flow[None]:
        """Undo, detach, end the sessions; that no answer came is reported."""
        try:
            self._transactions.rollback()
            receivers = list(self._receivers.values())
            self._receivers.clear()
            yield from detach(self._context, receivers)
            with suppress(RequestTimeoutError):  # then their end reports it
                yield from self._sending.answers()
            self._sending.withdraw()
            with suppress(RequestTimeoutError):
                yield from self._sending.detach()
            ended = []
            with self._context.writing():
                for session in self._context.sessions:
                    if self._dialect.keeps_sessions:
                        session.keep()
                        continue
                    ended.append(self._context.ask_for_end())
                    session.close(ended[-1])
            for each in ended:
                yield from self._context.answer(each)
        except ConnectionLostError:
            return  # then everything goes back to the broker
        except JMSError as error:
            self._report(error)

    @property
    def congested(self) -> bool:  # type: ignore[override]  # which is the sending links'
        """See `Channel`."""
        return self._sending.congested

    @property
    def blocked_sends(self) -> int:  # type: ignore[override]  # which is of the sending links, too
        """See `Channel`: those without credit."""
        return sum(len(each.queued) for each in tuple(self._sending.links.values()))

    def forget(self, queue: Destination) -> None:
        """See `Channel.forget`."""
        self._sending.forget(queue)

    def room(self) -> Flow[None]:
        """Wait until the broker gives credit for half of what may wait, and the system has taken what is written."""
        return self._sending.room()


def _check_link(spec: LinkSpec, dialect: AmqpDialect) -> None:
    """Raise UnsupportedError where the broker cannot do what a link asks for."""
    can = dialect.capabilities
    if spec.selector is not None and not can.selectors:
        raise UnsupportedError("this broker has no selectors over AMQP")
    if spec.browse and not can.browse:
        raise UnsupportedError("this broker has no browsing over AMQP: it would consume what it shows")
    if spec.exclusive and not dialect.exclusive_option:
        raise UnsupportedError("this broker has no exclusive consumers over AMQP")
    if spec.no_local and not can.no_local:
        raise UnsupportedError("this broker has no no_local over AMQP")
    kept = spec.subscription is not None and spec.subscription.durable
    if spec.no_local and kept and not dialect.durable_no_local:
        raise UnsupportedError(
            f"{spec.subscription}: this broker forgets what a durable subscription with no_local has kept"
        )
