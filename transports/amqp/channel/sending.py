"""Sending: by a link to each destination or by the relay, in a transaction or not, with credit or without."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from itertools import count
from typing import Final, cast

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.errors import ConnectionLostError, JMSError, ResourceAllocationError
from redelivery.model.messages import Message
from redelivery.transports.amqp.channel.context import AmqpChannelContext
from redelivery.transports.amqp.channel.transactions import Transactions
from redelivery.transports.amqp.codec.names import to_address
from redelivery.transports.amqp.codec.sends import encode
from redelivery.transports.amqp.links.senders import Parts, Sender, relay, sender_to
from redelivery.transports.amqp.links.sessions import AmqpSession
from redelivery.transports.dialects.composites import check_one
from redelivery.transports.seam import NO_ANSWER, Arrival, Flow, Pending
from redelivery.transports.wire.clock import monotonic

_TOGETHER: Final = 40 << 10  # bytes of asynchronous sends that leave in one write
_MOST_BLOCKED: Final = 1000  # messages that may wait for the broker's credit before a sender waits too
_LOOK: Final = 0.25  # seconds after which a sender that waits for credit looks again
_OWN_LINKS: Final = 16  # destinations that get a link of their own; more go by the relay, where there is one
_identifiers: Final = f"ID:{uuid.uuid4()}"
_numbers: Final = count(1)


class Sending:
    """One session's sending links.

    Args:
        context: the means to write and to ask.
        transactions: the session's.
        report: is notified of errors that no call waits for.
        relays: the broker has the anonymous relay.
        timeout: seconds that a send waits for credit.

    Attributes:
        links: by destination; None is the relay's key.
        congested: see `Channel`.
    """

    def __init__(
        self,
        context: AmqpChannelContext,
        transactions: Transactions,
        report: Callable[[JMSError], None],
        *,
        relays: bool,
        timeout: float,
    ) -> None:
        self._context = context
        self._protocol = context.protocol
        self._dialect = context.dialect
        self._transactions = transactions
        self._report = report
        self._relays = relays
        self._timeout = timeout
        self.links: dict[Destination | None, Sender] = {}
        self.congested = False
        self._found: set[Destination] = set()  # for the relay
        self._last: tuple[Destination | None, str] = (None, "")  # that a message was encoded for, and its address
        self._held: tuple[Sender, Pending, int] | None = None  # `room` waits until no more wait there, or it has left

    def send(
        self,
        destination: Destination,
        parts: tuple[bytes, ...],
        pending: Pending | None,
        *,
        transacted: bool,
        batched: bool,
    ) -> None:
        """`Channel.send`, in a transaction too."""
        if transacted:  # the commit waits for it
            answer = Pending(self._context.events.waiter, None if pending is None else pending.pass_on)
        else:
            answer = Pending(None, self.report_refusal) if pending is None else pending
        protocol = self._protocol
        with protocol.lock:
            protocol.check()
            sender = self.sender(destination)
            if protocol.nodes is not None:
                self._prepare(sender, destination, answer)
            if transacted:
                self._transactions.send(sender, parts, answer)
            else:
                sender.send(parts, None, answer)
            protocol.waiting += sum(map(len, parts))
            at_once = not (batched or transacted) or protocol.waiting > _TOGETHER
            if at_once:
                protocol.write()
            alone = pending is None and not transacted  # its caller goes on when it has left
            if sender.queued and (alone or len(sender.queued) > _MOST_BLOCKED):
                self._held, self.congested = (sender, answer, 0 if alone else _MOST_BLOCKED // 2), True
        if protocol.blocked and not protocol.drain():
            self.congested = True
        if protocol.table.notifications:
            protocol.notify()
        if batched or pending is None:
            protocol.read_on_behalf()
            if not at_once:
                protocol.flush_soon()

    def _prepare(self, sender: Sender, destination: Destination, answer: Pending) -> None:
        """The relay, which makes no queue, waits until that of a message is there; to a topic, nobody need listen."""
        nodes = self._protocol.nodes
        if self._dialect.management and isinstance(destination, Topic):
            sender.published.add(answer)
        if nodes is None or type(destination) is not Queue or destination in self.links or destination in self._found:
            return
        self._found.add(destination)
        sender.held += 1
        nodes.ensure(destination.name, sender.let_go)  # of another one the link is its own

    def sender(self, destination: Destination) -> Sender:
        """The link to a destination; inside `writing`."""
        sender = self.links.get(destination)
        meant = None if sender is not None else self._context.meaning.of(destination)
        route = self._context.routes.get(destination.name) if isinstance(meant, Queue) else None
        # or only a link of its own says that it is not there, or reaches it
        named = not isinstance(meant, Queue) or (meant.declare and route is None)
        if sender is None and self._relays and named and len(self.links) >= _OWN_LINKS:
            destination, sender = None, self.links.get(None)  # type: ignore[assignment]  # None is the relay's key
        if sender is None or sender.ended is not None:
            session = self._context.session(destination)
            if destination is None:
                sender = relay(session)
                sender.open(None)
            else:
                sender = sender_to(session, route or self._context.meaning.of(destination), self._dialect)
                self._context.open(sender, destination, None)
            self.links[destination] = sender
        return sender

    def forget(self, queue: Destination) -> None:
        """See `Channel.forget`."""
        self._found.discard(queue)
        AmqpSession.distrust(self._protocol.table, queue)
        sender = self.links.pop(queue, None)
        if sender is not None:
            with suppress(ConnectionLostError), self._context.writing():
                sender.close(None)
                self._context.let_go(sender.session)

    def encode(self, message: Message, notes: Mapping[str, str] | None = None) -> Parts:
        """The message, which gets its id. ``notes``: message annotations of its own."""
        message_id = f"{_identifiers}:{next(_numbers)}"
        message.fields["message_id"] = message_id
        destination = cast(Destination, message.destination)
        last, address = self._last
        if destination is not last:
            check_one(destination, self._dialect.capabilities)
            address = to_address(self._context.meaning.of(destination), self._dialect)
            self._last = (destination, address)
        return encode(message, message_id, address, self._dialect, notes)

    def answers(self) -> Flow[None]:
        """All that was sent is answered, also what nobody waited for: the end of its session leaves it unanswered."""
        waiter = self._context.events.waiter
        with self._protocol.lock:
            asked = [each for sender in self.links.values() for each in sender.unanswered.values()]
            asked += [each[2] for sender in self.links.values() for each in sender.queued]
        for each in asked:
            each.also = waiter  # a thread that asked for the result keeps its own
            if not each.done:
                yield each

    def detach(self) -> Flow[None]:
        """End the links, where their session would end late with them."""
        asked: list[Pending] = []
        if self._dialect.end_waits_for_senders:
            with self._context.writing():
                for sender in self.links.values():
                    if sender.opened:  # or the broker would answer nothing
                        asked.append(self._context.ask_for_detach())
                        sender.close(asked[-1])
        for each in asked:
            yield from self._context.answer(each)

    def withdraw(self, among: Collection[Pending] | None = None) -> None:
        """Take back what has not left of these sends, or of all: it fails for want of credit."""
        if self._protocol.lost is not None:
            return
        with suppress(ConnectionLostError), self._context.writing():
            for sender in self.links.values():
                if among is not None and not self._protocol.blocked:
                    sender.say_stuck(among)
                if sender.queued:
                    sends = [each[2] for each in sender.queued] if among is None else among
                    sender.withdraw(sends, sender.no_credit())

    def room(self) -> Flow[None]:
        """See `Channel.room`.

        What nobody will confirm has left when this ends; of the rest half of what may wait waits. And the system has
        taken what is written.
        """
        held = self._held
        self._held, self.congested = None, False
        if self._protocol.blocked:
            yield from self._context.drained()
        if held is None:
            return
        sender, last, most = held
        if not most:
            last.on_done = None  # whatever comes of it now is raised here
        deadline = monotonic() + self._timeout
        sender.blocked_senders = self._context.events
        try:
            while len(sender.queued) > most and sender.queued[-1][2] is last and monotonic() < deadline:
                yield Arrival(min(deadline, monotonic() + _LOOK))
        except JMSError as error:  # an interrupt, or a loss
            self.withdraw((last,))
            raise last.error or error from None
        finally:
            sender.blocked_senders = None
        if len(sender.queued) > most:
            self.withdraw((last,))
        if last.error is not None and (not most or isinstance(last.error, ResourceAllocationError)):
            raise last.error
        if not most:
            last.on_done = self.report_refusal

    def report_refusal(self, pending: Pending) -> None:
        """Report the refusal of a send that no call waits for."""
        if pending.error is not None and not isinstance(pending.error, NO_ANSWER):
            self._report(pending.error)
