"""One session's conversation over AMQP: which link, which outcome, and when it is written."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from typing import Final, cast

from redelivery.model.destinations import Destination, Topic
from redelivery.model.errors import ConnectionLostError, JMSError, ProtocolError, RequestTimeoutError, UnsupportedError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.amqp.browsing import BrowsingReceiver, look
from redelivery.transports.amqp.conversation import Conversation
from redelivery.transports.amqp.detaching import detach, drain, echo
from redelivery.transports.amqp.dispositions import ACCEPTED
from redelivery.transports.amqp.endpoints import AmqpSession
from redelivery.transports.amqp.messages import AmqpDelivery
from redelivery.transports.amqp.names import to_address
from redelivery.transports.amqp.receivers import Receiver
from redelivery.transports.amqp.senders import Maker, Sender, relay, sender_to
from redelivery.transports.amqp.sends import encode
from redelivery.transports.amqp.transactions import Transactions
from redelivery.transports.base import NO_ANSWER, Channel, Delivery, Flow, Link, Pending
from redelivery.transports.wire.clock import monotonic

_CROWD: Final = 1000  # messages that may wait for the broker's credit before a sender waits too
_TOGETHER: Final = 16 << 10  # bytes of asynchronous sends that leave in one write
_OWN_LINKS: Final = 16  # destinations that get a link of their own; more go by the relay, where there is one
_identifiers: Final = f"ID:{uuid.uuid4()}"
_numbers: Final = count(1)


class AmqpChannel(Channel):
    """See `Channel`. What differs between brokers is read from the dialect.

    Args:
        talk: the means to write and to ask.
        mode: of the session.
        report: is told of errors that no call waits for.
        relays: the broker has the anonymous relay.
        request_timeout: seconds that a send waits for credit.
    """

    def __init__(
        self,
        talk: Conversation,
        mode: AckMode,
        report: Callable[[JMSError], None],
        *,
        relays: bool,
        request_timeout: float,
    ) -> None:
        self._talk = talk
        self._connection = talk.connection
        self._dialect = talk.dialect
        self._mode = mode
        self._report = report
        self._relays = relays
        self._timeout = request_timeout
        self._receivers: dict[Link, Receiver] = {}
        self._senders: dict[Destination | None, Sender] = {}
        self._last: tuple[Destination | None, str] = (None, "")  # that a message was encoded for, and its address
        self._transactions = Transactions(talk)

    def attach(self, link: Link) -> Flow[None]:
        """Attach a receiving link; the first credit follows the broker's answer."""
        asked = self._talk.ask()
        self._check(link)
        with self._talk.writing():
            kind = BrowsingReceiver if link.browse else Receiver
            receiver = kind(self._talk.session(consumers=True), link, self._talk.events, self._dialect)
            receiver.open(asked)
        link.id = receiver.name
        link.prefetch = receiver.window
        self._receivers[link] = receiver
        try:
            yield from self._talk.answer(asked)
        except JMSError as error:
            self._receivers.pop(link)
            if isinstance(error, RequestTimeoutError):
                with self._talk.writing():
                    receiver.close(None)
            raise
        if self._dialect.topic_waits_for_credit and isinstance(link.destination, Topic):
            yield from echo(self._talk)

    def detach(self, link: Link) -> Flow[None]:
        """Give back what is not settled, then detach."""
        receiver = self._receivers.pop(link, None)
        if receiver is not None:
            yield from detach(self._talk, [receiver])

    def fetch(self, link: Link) -> Flow[None]:
        """Drain the link."""
        receiver = self._receivers.get(link)
        if receiver is not None and self._dialect.drain:
            yield from drain(self._talk, [receiver])

    def look(self, link: Link) -> Flow[bool]:
        """Ask for a window full."""
        return look(self._talk, cast(BrowsingReceiver, self._receivers[link]))

    def temporary(self, kind: type[Destination]) -> Flow[Destination]:
        """A dynamic node; its link is in a session of its own, which lives as long as the connection."""
        dialect = self._dialect
        topic = issubclass(kind, Topic)
        named = dialect.temporary_topic_capability if topic else dialect.temporary_queue_capability
        if named is None:
            raise UnsupportedError(f"this broker makes no {kind.__name__} over AMQP")
        asked = self._talk.ask()
        with self._talk.writing():
            session = AmqpSession(self._connection)
            session.open(None)
            maker = Maker(session, named)
            maker.open(asked)
        yield from self._talk.answer(asked)
        if not maker.address:
            raise ProtocolError(f"{maker.what}: the broker gave it no name")
        return kind(maker.address)

    def handed_out(self, delivery: Delivery) -> None:
        """Give credit for another one, the first time."""
        ours: AmqpDelivery = delivery  # type: ignore[assignment]  # cast() costs a call per message
        if ours.credited:
            return
        ours.credited = True
        receiver = ours.receiver
        receiver.seen += 1
        if receiver.seen >= receiver.mark:
            with self._talk.writing():
                receiver.give_credit()

    def accept(self, deliveries: Sequence[Delivery], *, lazy: bool) -> None:
        """`accepted`, settled."""
        ours: Sequence[AmqpDelivery] = deliveries  # type: ignore[assignment]  # as above
        connection = self._connection
        with connection.lock:
            connection.check()
            try:
                for delivery in ours:
                    receiver = delivery.receiver
                    receiver.settle(delivery, ACCEPTED)
                    if not delivery.credited:
                        receiver.hand_out(delivery)
                    receiver.lazy += 1
            except JMSError:
                connection.flush()  # those before it are acknowledged
                raise
            if not lazy or receiver.lazy >= receiver.step:
                receiver.lazy = 0
                connection.flush()
                lazy = False
        if lazy:
            connection.flush_soon()
        elif connection.blocked:
            connection.press_on()

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """At the detach, which follows: while the link has credit, the broker may send them to it again."""

    def poison(self, delivery: Delivery, cause: str, copy: Message | None) -> Flow[None]:
        """`rejected`, outside any transaction; or the copy and `accepted`, as one where there are transactions."""
        ours = cast(AmqpDelivery, delivery)
        if copy is None:
            if not self._dialect.rejected_is_poison:
                raise UnsupportedError("on this broker `rejected` only counts: a dead letter must be a copy")
            with self._talk.writing():
                ours.receiver.reject(ours, cause)
                ours.receiver.hand_out(ours)
            return
        parts = self._encode(copy)
        with self._talk.writing():
            sender = self._sender(cast(Destination, copy.destination))
        if self._dialect.capabilities.transactions:
            yield from self._transactions.dead_letter(sender, parts, ours)
            return
        asked = self._talk.ask()
        with self._talk.writing():
            sender.send(parts, None, asked)
        yield from self._talk.answer(asked)
        self.accept((ours,), lazy=False)

    def send(self, message: Message, *, transacted: bool, pending: Pending | None) -> None:
        """A transfer, which leaves as soon as the broker gives credit. Raises RequestTimeoutError where it does not."""
        parts = self._encode(message)
        awaited = pending is not None and pending.waiter is not None
        if transacted:  # the commit waits for it
            answer = Pending(self._talk.events.waiter, None if pending is None else pending.pass_on)
        else:
            answer = Pending(None, self._report_refusal) if pending is None else pending
        connection = self._connection
        with connection.lock:
            connection.check()
            sender = self._sender(cast(Destination, message.destination))
            if transacted:
                self._transactions.send(sender, parts, answer)
            else:
                sender.send(parts, None, answer)
            connection.waiting += sum(map(len, parts))
            # one that is neither awaited nor told of is written when send() returns
            at_once = awaited or (pending is None and not transacted) or connection.waiting > _TOGETHER
            if at_once:
                connection.flush()
            crowded = sender.credit < -_CROWD
        if connection.blocked:
            connection.press_on()
        if connection.tidings:
            connection.tell()
        if crowded:
            self._wait_for_credit(sender)
        elif not awaited:
            connection.stand_in()
            if not at_once:
                connection.flush_soon()

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
            self.accept(live, lazy=False)
        if stale is not None:
            stale.receiver.check(stale)

    def rollback(self) -> Flow[None]:
        """Undo the sends; the deliveries were never in the transaction."""
        self._transactions.rollback()
        yield from ()

    def park(self, deliveries: Sequence[Delivery]) -> None:
        """They were handed out, so that they do not count against the window already."""

    def unpark(self, deliveries: Sequence[Delivery]) -> None:
        """Nothing was done."""

    def close(self) -> Flow[None]:
        """Undo, detach, end the sessions; that no answer came is reported."""
        try:
            self._transactions.rollback()
            receivers = list(self._receivers.values())
            self._receivers.clear()
            yield from detach(self._talk, receivers)
            with suppress(RequestTimeoutError):  # then their end tells it
                yield from self._answers()
            ended = []
            with self._talk.writing():
                for session in self._talk.sessions:
                    ended.append(self._talk.ask())
                    session.close(ended[-1])
            for each in ended:
                yield from self._talk.answer(each)
        except ConnectionLostError:
            return  # then everything is the broker's again
        except JMSError as error:
            self._report(error)

    def _answers(self) -> Flow[None]:
        """All that was sent is answered, also what nobody waited for: the end of its session leaves it unanswered."""
        waiter = self._talk.events.waiter
        with self._connection.lock:
            asked = [each for sender in self._senders.values() for each in sender.unanswered.values()]
        for each in asked:
            each.waiter = waiter
            if not each.done:
                yield each

    def _sender(self, destination: Destination) -> Sender:
        """The link to a destination; inside `writing`."""
        sender = self._senders.get(destination)
        if sender is None and self._relays and len(self._senders) >= _OWN_LINKS:
            destination, sender = None, self._senders.get(None)  # type: ignore[assignment]  # None is the relay's key
        if sender is None or sender.ended is not None:
            session = self._talk.session()
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

    def _wait_for_credit(self, sender: Sender) -> None:
        """The broker takes nothing: hold the application back, as a full pipe would."""
        deadline = monotonic() + self._timeout
        sender.crowd = self._talk.events
        try:
            while (waiting := self._waiting(sender)) > _CROWD // 2:
                remaining = deadline - monotonic()
                if remaining <= 0:
                    raise RequestTimeoutError(
                        f"{sender.what}: the broker gave no credit within {self._timeout:g} s; "
                        f"about {waiting} messages wait"
                    )
                self._connection.leader.wait(self._talk.events.waiter, min(remaining, 0.25))  # type: ignore[arg-type]  # of `threads`
        finally:
            sender.crowd = None

    def _waiting(self, sender: Sender) -> int:
        """Messages that wait for credit; under the lock, for whoever reads may end the link meanwhile."""
        with self._connection.lock:
            return -sender.credit

    def _report_refusal(self, pending: Pending) -> None:
        if pending.error is not None and not isinstance(pending.error, NO_ANSWER):
            self._report(pending.error)
