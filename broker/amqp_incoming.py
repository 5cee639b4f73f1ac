"""Links that messages come by, and the coordinator, by which transactions are declared and discharged."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import proton
from cproton_ffi import ffi, lib

from redelivery.broker.amqp_commands import Command
from redelivery.broker.amqp_links import DoorLink
from redelivery.broker.amqp_messages import read_message
from redelivery.broker.amqp_places import address, capabilities, named
from redelivery.broker.amqp_refusals import RefusedError
from redelivery.broker.amqp_states import ACCEPTED, finish, finish_declared, finish_transacted, reject, transaction_of
from redelivery.broker.amqp_units import read_request
from redelivery.model.destinations import Destination
from redelivery.model.errors import InvalidDestinationError, JMSError, MessageFormatError
from redelivery.transports.wire.clock import epoch_ms

if TYPE_CHECKING:
    from redelivery.broker.amqp_conversation import AmqpConversation

_CREDIT: Final = 1000  # messages; renewed at half
LARGEST: Final = 100 << 20  # bytes of a message, as over STOMP


class IncomingLink(DoorLink):
    """A link that messages come by, to one destination or to whichever each says."""

    def __init__(self, conversation: AmqpConversation, handle: Any) -> None:
        super().__init__(conversation, handle)
        self._destination: Destination | None = None
        self._part = bytearray()  # of a message that has not come whole

    def attach(self) -> None:
        """See `DoorLink.attach`."""
        asked, target = self.handle.remote_target, self.handle.target
        if asked.type != proton.Terminus.TARGET:
            raise InvalidDestinationError("a link without a target: nothing can be sent there")
        target.copy(asked)
        if asked.dynamic:
            self._destination = self.make_temporary(target, capabilities(asked))
        elif address(asked):
            self._destination = named(address(asked), capabilities(asked))
            if self._destination.is_pattern:
                raise InvalidDestinationError(f"{self._destination} is a pattern: it can be consumed, not sent to")
            self.conversation.check_there(self._destination)
        self.open()

    def open(self) -> None:
        """Agree, and give credit."""
        self.handle.source.copy(self.handle.remote_source)
        self.handle.rcv_settle_mode = proton.Link.RCV_FIRST
        self.handle.snd_settle_mode = self.handle.remote_snd_settle_mode
        lib.pn_link_set_max_message_size(self.raw, LARGEST)
        self.handle.open()
        lib.pn_link_flow(self.raw, _CREDIT)

    def on_delivery(self, handle: Any) -> None:
        """A transfer, or a part of one."""
        if lib.pn_delivery_aborted(handle):
            self._part = bytearray()
            lib.pn_delivery_settle(handle)
            return
        if not lib.pn_delivery_readable(handle):
            return
        size = lib.pn_delivery_pending(handle)
        if self.ended:  # the peer has not heard of it yet, or does not care
            self._discard(handle, size)
            return
        if self.conversation.buffered + size > LARGEST:
            self._discard(handle, size)
            self.end(RefusedError("amqp:link:message-size-exceeded", f"a message of more than {LARGEST} bytes"))
            return
        data = bytearray(size)
        if size:
            lib.pn_link_recv(self.raw, ffi.from_buffer(data), size)
        if lib.pn_delivery_partial(handle):
            self._part += data
            self.conversation.buffered += size
            return
        if self._part:
            self.conversation.buffered -= len(self._part)
            self._part += data
            data, self._part = self._part, bytearray()
        lib.pn_link_advance(self.raw)
        self.conversation.commands.append(self.command(handle, data))

    def command(self, handle: Any, data: bytearray) -> Command:
        """What a whole message asks for."""
        settled, refuse = bool(lib.pn_delivery_settled(handle)), partial(self._refuse, handle)
        try:
            identity = transaction_of(handle)
        except MessageFormatError as error:
            return Command("SEND", partial(refuse, error), refuse)
        return Command("SEND", partial(self._take, handle, data, identity, settled), refuse)

    def release(self) -> None:
        """See `DoorLink.release`."""
        self.conversation.buffered -= len(self._part)
        self._part = bytearray()

    def renew_credit(self) -> None:
        """One more message was taken."""
        credit = lib.pn_link_credit(self.raw)
        if credit <= _CREDIT // 2:
            lib.pn_link_flow(self.raw, _CREDIT - credit)

    def _discard(self, handle: Any, size: int) -> None:
        if size:
            lib.pn_link_recv(self.raw, ffi.from_buffer(bytearray(size)), size)
        if not lib.pn_delivery_partial(handle):
            lib.pn_link_advance(self.raw)
            lib.pn_delivery_settle(handle)

    def _take(self, handle: Any, data: bytearray, identity: bytes | None, settled: bool) -> None:
        if self.ended:
            return
        conversation = self.conversation
        core = conversation.core
        unit = None if identity is None else conversation.units.known(identity)
        stored = read_message(data, self._destination, core.new_id(), now=epoch_ms(), origin=conversation.session)
        if unit is None:
            core.call(lambda engine, now: engine.send(stored, now))
        else:
            core.call(lambda engine, _now: engine.enlist_send(unit.transaction, stored))
        if settled:
            lib.pn_delivery_settle(handle)
        elif identity is None:
            finish(handle, ACCEPTED)
        else:
            finish_transacted(handle, identity)
        self.renew_credit()

    def _refuse(self, handle: Any, error: JMSError) -> None:
        if not self.ended:
            reject(handle, error)
            self.renew_credit()


class CoordinatorLink(IncomingLink):
    """Where transactions are declared and discharged; those that are open at its end are rolled back."""

    def attach(self) -> None:
        """See `DoorLink.attach`."""
        self.handle.target.copy(self.handle.remote_target)
        self.open()

    def command(self, handle: Any, data: bytearray) -> Command:
        """A declare or a discharge; what is neither is refused."""
        refuse = partial(self._refuse, handle)
        try:
            request = read_request(data)
        except JMSError as error:
            return Command(None, partial(refuse, error), refuse)
        if request is None:
            return Command("BEGIN", partial(self._declare, handle), refuse)
        name = "ABORT" if request.fail else "COMMIT"
        discharge = partial(self._discharge, handle, request.transaction, request.fail)
        return Command(name, discharge, partial(self._fail, handle, request.transaction, request.fail))

    def release(self) -> None:
        """See `DoorLink.release`."""
        super().release()
        self.conversation.units.end_of(self)

    def _declare(self, handle: Any) -> None:
        if not self.ended:
            finish_declared(handle, self.conversation.units.declare(self))
            self.renew_credit()

    def _discharge(self, handle: Any, transaction: bytes, fail: bool) -> None:
        if not self.ended:
            self.conversation.units.discharge(transaction, fail=fail)
            finish(handle, ACCEPTED)
            self.renew_credit()

    def _fail(self, handle: Any, transaction: bytes, fail: bool, error: JMSError) -> None:
        """A commit that is refused is rolled back."""
        if not fail:
            self.conversation.units.forget(transaction)
        self._refuse(handle, error)
