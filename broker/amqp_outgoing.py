"""Links that messages leave by: what consumers and browsers have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Final

import proton
from cproton_ffi import ffi, lib

from redelivery.broker.amqp_links import DoorLink
from redelivery.broker.amqp_messages import Parts
from redelivery.broker.amqp_places import Wanted, agree, capabilities, wanted
from redelivery.transports.wire.clock import epoch_ms

if TYPE_CHECKING:
    from redelivery.broker.amqp_conversation import AmqpConversation

_AHEAD: Final = 256 << 10  # bytes of messages that may wait in proton for the peer's session window


class OutgoingLink(DoorLink):
    """What there is goes out as far as the peer's credit and its session take it."""

    def __init__(self, conversation: AmqpConversation, handle: Any) -> None:
        super().__init__(conversation, handle)
        self.presettled = False

    def attach(self) -> None:
        """See `DoorLink.attach`."""
        asked, source = self.handle.remote_source, self.handle.source
        made = self.make_temporary(source, capabilities(asked)) if asked.dynamic else None
        met = wanted(asked, made)
        self.conversation.check_ours(met.destination)
        self.begin(met)
        agree(source, asked, met)
        if made is not None:
            source.address = made.name
        self.handle.target.copy(self.handle.remote_target)
        self.handle.rcv_settle_mode = proton.Link.RCV_FIRST
        self.presettled = self.handle.remote_snd_settle_mode == proton.Link.SND_SETTLED
        self.handle.snd_settle_mode = self.handle.remote_snd_settle_mode
        self.handle.open()
        self.on_flow()

    @abstractmethod
    def begin(self, met: Wanted) -> None:
        """Find what is to be sent. Raises JMSError."""

    @abstractmethod
    def grant(self, credit: int, drain: bool) -> None:
        """The peer takes so many messages; where it drains, nothing more than what is there now."""

    @property
    @abstractmethod
    def waits(self) -> bool:
        """Whether there is something to send."""

    @abstractmethod
    def send_next(self, now: int) -> None:
        """Hand the next message to proton."""

    def on_flow(self) -> None:
        """The peer's credit has changed."""
        if not self.ended:
            self.grant(lib.pn_link_credit(self.raw), bool(lib.pn_link_get_drain(self.raw)))
            self.conversation.stir(self)

    def pump(self) -> bool:
        """Hand to proton what it takes; whether more could follow when that is written."""
        now = epoch_ms()
        while not self.ended and self.waits:
            if lib.pn_session_outgoing_bytes(self.session) > _AHEAD:
                return True
            if lib.pn_link_credit(self.raw) <= 0:
                return False
            self.send_next(now)
        if not self.ended and lib.pn_link_get_drain(self.raw):
            lib.pn_link_drained(self.raw)
        return False

    def transfer(self, number: int, parts: Parts) -> Any:
        """Hand a message to proton; the delivery."""
        tag = b"%x" % number
        handle = lib.pn_delivery(self.raw, (len(tag), ffi.from_buffer(tag)))
        for part in parts:
            lib.pn_link_send(self.raw, ffi.from_buffer(part), len(part))
        lib.pn_link_advance(self.raw)
        if self.presettled:
            lib.pn_delivery_settle(handle)
        return handle
