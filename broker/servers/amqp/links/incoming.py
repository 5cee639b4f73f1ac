"""Links that messages come by."""

from __future__ import annotations

from itertools import count
from typing import Any, Final

import proton
from cproton_ffi import ffi, lib

from redelivery.broker.servers.amqp.codec.conditions import RefusedError
from redelivery.broker.servers.amqp.codec.messages import read_message
from redelivery.broker.servers.amqp.codec.outcomes import finish, finish_transacted, reject, transaction_of
from redelivery.broker.servers.amqp.codec.terminus import address, capabilities, parse_address
from redelivery.broker.servers.amqp.commands import LinkCommand, RefusedTransfer, Transfer
from redelivery.broker.servers.amqp.links.link import BrokerLink, LinkSession
from redelivery.model.destinations import Destination
from redelivery.model.errors import InvalidDestinationError, JMSError, MessageFormatError
from redelivery.transports.amqp.links.dispositions import ACCEPTED
from redelivery.transports.wire.clock import epoch_ms

_CREDIT: Final = 1000  # messages; renewed at half
LARGEST: Final = 100 << 20  # bytes of a message, as over STOMP


class IncomingLink(BrokerLink):
    """A link that messages come by, to one destination or to the one that each names."""

    def __init__(self, session: LinkSession, number: int, handle: Any) -> None:
        super().__init__(session, number, handle)
        self._destination: Destination | None = None
        self._part = bytearray()  # of a message that has not come whole
        self._unanswered: dict[int, Any] = {}  # the C library's deliveries, by number
        self._numbers = count(1)

    def attach(self) -> None:
        """See `BrokerLink.attach`."""
        asked, target = self.handle.remote_target, self.handle.target
        if asked.type != proton.Terminus.TARGET:
            raise InvalidDestinationError("a link without a target: nothing can be sent there")
        target.copy(asked)
        if asked.dynamic:
            self._destination = self.make_temporary(target, capabilities(asked))
        elif address(asked):
            self._destination = parse_address(address(asked), capabilities(asked))
            if self._destination.is_pattern:
                raise InvalidDestinationError(f"{self._destination} is a pattern: it can be consumed, not sent to")
            self.session.check_exists(self._destination)
        self.open()

    def open(self) -> None:
        """Confirm the attach, and give credit."""
        self.handle.source.copy(self.handle.remote_source)
        self.handle.rcv_settle_mode = proton.Link.RCV_FIRST
        self.handle.snd_settle_mode = self.handle.remote_snd_settle_mode
        lib.pn_link_set_max_message_size(self.raw, LARGEST)
        self.handle.open()
        lib.pn_link_flow(self.raw, _CREDIT)

    def on_delivery(self, handle: Any) -> None:
        """A transfer, or a part of one."""
        if lib.pn_delivery_aborted(handle):
            self._forget_part()
            lib.pn_delivery_settle(handle)
            return
        if not lib.pn_delivery_readable(handle):
            return
        size = lib.pn_delivery_pending(handle)
        if self.ended:  # the peer does not know it yet, or goes on regardless
            self._discard(handle, size)
            return
        if self.session.buffered + size > LARGEST:
            self._discard(handle, size)
            self.end(RefusedError("amqp:link:message-size-exceeded", f"a message of more than {LARGEST} bytes"))
            return
        data = bytearray(size)
        if size:
            lib.pn_link_recv(self.raw, ffi.from_buffer(data), size)
        if lib.pn_delivery_partial(handle):
            self._part += data
            self.session.buffered += size
            return
        if self._part:
            self.session.buffered -= len(self._part)
            self._part += data
            data, self._part = self._part, bytearray()
        lib.pn_link_advance(self.raw)
        number = next(self._numbers)
        self._unanswered[number] = handle
        self.session.add(self.command(number, handle, data))

    def command(self, number: int, handle: Any, data: bytearray) -> LinkCommand:
        """The command that a whole message is."""
        try:
            transaction = transaction_of(handle)
        except MessageFormatError as error:
            return RefusedTransfer(self.number, number, error, "SEND")
        return Transfer(self.number, number, transaction, bool(lib.pn_delivery_settled(handle)), data)

    def execute(self, command: LinkCommand) -> None:
        """See `BrokerLink.execute`."""
        if isinstance(command, Transfer):
            self._send(command)
        elif isinstance(command, RefusedTransfer):
            raise command.error
        else:
            super().execute(command)

    def refuse(self, command: LinkCommand, error: JMSError) -> None:
        """See `BrokerLink.refuse`: a delivery is rejected, and the link goes on."""
        if isinstance(command, (Transfer, RefusedTransfer)):
            self.reject(command.delivery, error)
        else:
            super().refuse(command, error)

    def waiting(self, number: int) -> Any | None:
        """The delivery that waits for its answer; None where the link has ended."""
        return self._unanswered.get(number)

    def answered(self, number: int) -> None:
        """A delivery was settled, so that another may come."""
        del self._unanswered[number]
        credit = lib.pn_link_credit(self.raw)
        if credit <= _CREDIT // 2:
            lib.pn_link_flow(self.raw, _CREDIT - credit)

    def reject(self, number: int, error: JMSError) -> None:
        """Settle a delivery with a refusal."""
        handle = self.waiting(number)
        if handle is not None:
            reject(handle, error)
            self.answered(number)

    def release(self) -> None:
        """See `BrokerLink.release`."""
        self._forget_part()
        self._unanswered.clear()

    def _forget_part(self) -> None:
        self.session.buffered -= len(self._part)
        self._part = bytearray()

    def _discard(self, handle: Any, size: int) -> None:
        if size:
            lib.pn_link_recv(self.raw, ffi.from_buffer(bytearray(size)), size)
        if not lib.pn_delivery_partial(handle):
            lib.pn_link_advance(self.raw)
            lib.pn_delivery_settle(handle)

    def _send(self, command: Transfer) -> None:
        handle = self.waiting(command.delivery)
        if handle is None:
            return
        session, core = self.session, self.session.core
        transaction = None if command.transaction is None else session.transactions.known(command.transaction)
        stored = read_message(command.data, self._destination, core.new_id(), now=epoch_ms(), origin=session.origin)
        if transaction is None:
            core.call(lambda engine, now: engine.send(stored, now))
        else:
            core.call(lambda engine, _now: engine.enlist_send(transaction.enlisted, stored))
        if command.settled:
            lib.pn_delivery_settle(handle)
        elif command.transaction is None:
            finish(handle, ACCEPTED)
        else:
            finish_transacted(handle, command.transaction)
        self.answered(command.delivery)
