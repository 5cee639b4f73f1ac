"""One session's conversation over AMQP: which link, which outcome, and when it is written."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Final, cast

from redelivery.model.destinations import Destination, Topic
from redelivery.model.errors import ConnectionLostError, JMSError, RequestTimeoutError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.amqp.channel.browsing import BrowsingReceiver, browse_more
from redelivery.transports.amqp.channel.context import ChannelContext
from redelivery.transports.amqp.channel.detaching import detach, drain, echo
from redelivery.transports.amqp.channel.transactions import Transactions
from redelivery.transports.amqp.codec.names import to_address
from redelivery.transports.amqp.codec.sends import encode
from redelivery.transports.amqp.links.dispositions import ACCEPTED
from redelivery.transports.amqp.links.receivers import AmqpDelivery, Receiver
from redelivery.transports.amqp.links.senders import Sender, relay, sender_to
from redelivery.transports.seam import NO_ANSWER, Arrival, Channel, Delivery, Flow, Link, Pending
from redelivery.transports.wire.clock import monotonic

_MOST_BLOCKED: Final = 1000  # messages that may wait for the broker's credit before a sender waits too
_LOOK: Final = 0.25  # seconds after which a sender that waits for credit looks again
_TOGETHER: Final = 16 << 10  # bytes of asynchronous sends that leave in one write
_OWN_LINKS: Final = 16  # destinations that get a link of their own; more go by the relay, where there is one
_identifiers: Final = f"ID:{uuid.uuid4()}"
_numbers: Final = count(1)


class AmqpChannel(Channel):
    """See `Channel`. What differs between brokers is read from the dialect.

    Args:
        context: the means to write and to ask.
        mode: of the session.
        report: is notified of errors that no call waits for.
        relays: the broker has the anonymous relay.
        request_timeout: seconds that a send waits for credit.
    """

    def __init__(
        self,
        context: ChannelContext,
        mode: AckMode,
        report: Callable[[JMSError], None],
        *,
        relays: bool,
        request_timeout: float,
    ) -> None:
        self._context = context
        self._protocol = context.protocol
        self._dialect = context.dialect
        self._mode = mode
        self._report = report
        self._relays = relays
        self._timeout = request_timeout
        self._receivers: dict[Link, Receiver] = {}
        self._senders: dict[Destination | None, Sender] = {}
        self._last: tuple[Destination | None, str] = (None, "")  # that a message was encoded for, and its address
        self._full: Sender | None = None  # has more than that waiting
        self._transactions = Transactions(context)

    def attach(self, link: Link) -> Flow[None]:
        """Attach a receiving link; the first credit follows the broker's answer."""
        asked = self._context.ask()
        self._check(link)
        with self._context.writing():
            kind = BrowsingReceiver if link.browse else Receiver
            receiver = kind(self._context.session(consumers=True), link, self._context.events, self._dialect)
            receiver.open(asked)
        link.id = receiver.name
        link.prefetch = receiver.window
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

    def dispatched(self, delivery: Delivery) -> None:
        """Give credit for another one, the first time."""
        ours: AmqpDelivery = delivery  # type: ignore[assignment]  # cast() costs a call per message
        if ours.credited:
            return
        ours.credited = True
        receiver = ours.receiver
        receiver.seen += 1
        if receiver.seen >= receiver.ack_threshold:
            with self._context.writing():
                receiver.give_credit()

    def accept(self, deliveries: Sequence[Delivery], *, batched: bool, done: list[None] | None = None) -> None:
        """`accepted`, settled."""
        ours: Sequence[AmqpDelivery] = deliveries  # type: ignore[assignment]  # as above
        protocol = self._protocol
        with protocol.lock:
            protocol.check()
            written = protocol.written
            try:
                for delivery in ours:
                    receiver = delivery.receiver
                    receiver.settle(delivery, ACCEPTED)
                    if not delivery.credited:
                        receiver.make_room(delivery)
                    receiver.batched += 1
            except JMSError:
                protocol.write()  # those before it are acknowledged
                raise
            if not batched or receiver.batched >= receiver.step:
                receiver.batched = 0
                protocol.write()
                batched = False
        if protocol.blocked and not batched:
            protocol.raise_refused(written)
        if done is not None:
            done.append(None)
        if batched:
            protocol.flush_soon()
        elif protocol.blocked:
            protocol.drain()

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """At the detach, which follows: while the link has credit, the broker may send them to it again."""

    def poison(
        self,
        delivery: Delivery,
        cause: str,
        copy: Message | None,
        *,
        expired: bool = False,  # noqa: ARG002  # `rejected` has no word for it
    ) -> Flow[None]:
        """`rejected`, outside any transaction; or the copy and `accepted`, as one where there are transactions."""
        ours = cast(AmqpDelivery, delivery)
        if copy is None:
            if not self._dialect.rejected_is_poison:
                raise UnsupportedError("on this broker `rejected` only counts: a dead letter must be a copy")
            with self._context.writing():
                ours.receiver.reject(ours, cause)
                ours.receiver.make_room(ours)
            return
        parts = self._encode(copy)
        with self._context.writing():
            sender = self._sender(cast(Destination, copy.destination))
        if self._dialect.capabilities.transactions:
            yield from self._transactions.dead_letter(sender, parts, ours)
            return
        asked = self._context.ask()
        with self._context.writing():
            sender.send(parts, None, asked)
        yield from self._context.answer(asked)
        self.accept((ours,), batched=False)

    def send(self, message: Message, *, transacted: bool, pending: Pending | None) -> None:
        """A transfer, which leaves as soon as the broker gives credit."""
        parts = self._encode(message)
        awaited = pending is not None and pending.waiter is not None
        if transacted:  # the commit waits for it
            answer = Pending(self._context.events.waiter, None if pending is None else pending.pass_on)
        else:
            answer = Pending(None, self._report_refusal) if pending is None else pending
        protocol = self._protocol
        with protocol.lock:
            protocol.check()
            sender = self._sender(cast(Destination, message.destination))
            if transacted:
                self._transactions.send(sender, parts, answer)
            else:
                sender.send(parts, None, answer)
            protocol.waiting += sum(map(len, parts))
            # one that is neither awaited nor reported is written when send() returns
            at_once = awaited or (pending is None and not transacted) or protocol.waiting > _TOGETHER
            if at_once:
                protocol.write()
            if len(sender.queued) > _MOST_BLOCKED:
                self._full, self.congested = sender, True
        if protocol.blocked and not protocol.drain():
            self.congested = True
        if protocol.table.notifications:
            protocol.notify()
        if not awaited:
            protocol.read_on_behalf()
            if not at_once:
                protocol.flush_soon()

    def commit(self, deliveries: Sequence[Delivery]) -> Flow[None]:
        """Discharge; in CLIENT mode, where there are no sends to go with it, `accepted`.

        There, what is the broker's again by now raises JMSError, and the rest is acknowledged all the same.
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
        """They were dispatched, so that they do not count against the window already."""

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
                yield from self._answers()
            ended = []
            with self._context.writing():
                for session in self._context.sessions:
                    ended.append(self._context.ask_for_end())
                    session.close(ended[-1])
            for each in ended:
                yield from self._context.answer(each)
        except ConnectionLostError:
            return  # then everything is the broker's again
        except JMSError as error:
            self._report(error)

    def _answers(self) -> Flow[None]:
        """All that was sent is answered, also what nobody waited for: the end of its session leaves it unanswered."""
        waiter = self._context.events.waiter
        with self._protocol.lock:
            asked = [each for sender in self._senders.values() for each in sender.unanswered.values()]
            asked += [each for sender in self._senders.values() for _, _, each in sender.queued]
        for each in asked:
            each.also = waiter  # a thread that asked for the result keeps its own
            if not each.done:
                yield each

    def _sender(self, destination: Destination) -> Sender:
        """The link to a destination; inside `writing`."""
        sender = self._senders.get(destination)
        if sender is None and self._relays and len(self._senders) >= _OWN_LINKS:
            destination, sender = None, self._senders.get(None)  # type: ignore[assignment]  # None is the relay's key
        if sender is None or sender.ended is not None:
            session = self._context.session()
            sender = relay(session) if destination is None else sender_to(session, destination, self._dialect)
            sender.open(None)
            self._senders[destination] = sender
        return sender

    def _encode(self, message: Message) -> tuple[bytes, ...]:
        message_id = f"{_identifiers}:{next(_numbers)}"
        message.stamp(message_id=message_id)
        destination = cast(Destination, message.destination)
        last, address = self._last
        if destination is not last:
            address = to_address(destination, self._dialect)
            self._last = (destination, address)
        return encode(message, message_id, address, self._dialect)

    def _check(self, link: Link) -> None:
        can = self._dialect.capabilities
        if link.selector is not None and not can.selectors:
            raise UnsupportedError("this broker has no selectors over AMQP")
        if link.browse and not can.browse:
            raise UnsupportedError("this broker has no browsing over AMQP: it would consume what it shows")
        if link.no_local and not can.no_local:
            raise UnsupportedError("this broker has no no_local over AMQP")

    def room(self) -> Flow[None]:
        """Until the broker has given credit for half of what may wait, and the system has taken what is written."""
        sender = self._full
        self._full, self.congested = None, False
        if self._protocol.blocked:
            yield from self._context.drained()
        if sender is None:
            return
        deadline = monotonic() + self._timeout
        sender.blocked_senders = self._context.events
        try:
            while (waiting := len(sender.queued)) > _MOST_BLOCKED // 2:
                remaining = deadline - monotonic()
                if remaining <= 0:
                    raise RequestTimeoutError(
                        f"{sender.what}: the broker gave no credit within {self._timeout:g} s; "
                        f"about {waiting} messages wait"
                    )
                yield Arrival(min(deadline, monotonic() + _LOOK))
        finally:
            sender.blocked_senders = None

    def _report_refusal(self, pending: Pending) -> None:
        if pending.error is not None and not isinstance(pending.error, NO_ANSWER):
            self._report(pending.error)
