"""Links that messages leave by: what consumers and browsers have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import Any, Final

import proton
from cproton_ffi import ffi, lib

from redelivery.broker.servers.amqp.codec.messages import Parts
from redelivery.broker.servers.amqp.codec.terminus import SourceRequest, capabilities, confirm_source, parse_source
from redelivery.broker.servers.amqp.commands import Flow, LinkCommand
from redelivery.broker.servers.amqp.links.link import BrokerLink, LinkSession
from redelivery.transports.wire.clock import epoch_ms

_AHEAD: Final = 256 << 10  # bytes of messages that may wait in proton for the peer's session window
_LARGE: Final = 1 << 20  # bytes of a message that is passed on piece by piece


class OutgoingLink(BrokerLink):
    """Messages leave as far as the peer's credit and its session take them."""

    def __init__(self, session: LinkSession, number: int, handle: Any) -> None:
        super().__init__(session, number, handle)
        self.presettled = False
        self._rest: deque[memoryview] = deque()  # of a message that is passed to proton a piece at a time
        self._sending: Any = None  # the C library's delivery of that

    def attach(self) -> None:
        """See `BrokerLink.attach`."""
        asked, source = self.handle.remote_source, self.handle.source
        made = self.make_temporary(source, capabilities(asked)) if asked.dynamic else None
        request = parse_source(asked, made, self.handle.name)
        self.session.check_own(request.destination)
        self.begin(request)
        confirm_source(source, asked, request)
        if made is not None:
            source.address = made.name
        self.handle.target.copy(self.handle.remote_target)
        self.handle.rcv_settle_mode = proton.Link.RCV_FIRST
        self.presettled = self.handle.remote_snd_settle_mode == proton.Link.SND_SETTLED
        self.handle.snd_settle_mode = self.handle.remote_snd_settle_mode
        self.handle.open()
        self._use_credit()

    @abstractmethod
    def begin(self, request: SourceRequest) -> None:
        """Find what is to be sent. Raises JMSError."""

    @abstractmethod
    def grant(self, credit: int, drain: bool) -> None:
        """The peer takes so many messages; where it drains, nothing more than what is there now."""

    def drained(self) -> bool:
        """True: nothing more comes for a peer that drains; if not, the link is woken when that may have changed."""
        return True

    @property
    @abstractmethod
    def waits(self) -> bool:
        """True: there is something to send."""

    @abstractmethod
    def send_next(self, now: int) -> None:
        """Pass the next message to proton."""

    def on_flow(self) -> None:
        """See `BrokerLink.on_flow`."""
        self.session.add(Flow(self.number))

    def execute(self, command: LinkCommand) -> None:
        """See `BrokerLink.execute`."""
        if isinstance(command, Flow):
            self._use_credit()
        else:
            super().execute(command)

    def flush(self) -> bool:
        """See `BrokerLink.flush`."""
        now = epoch_ms()
        while not self.ended and (self._rest or self.waits):
            if lib.pn_session_outgoing_bytes(self.raw_session) > _AHEAD:
                return True
            if self._rest:
                self._send_piece()
                continue
            if lib.pn_link_credit(self.raw) <= 0:
                return False
            self.send_next(now)
        drains = not self.ended and lib.pn_link_get_drain(self.raw) and lib.pn_link_credit(self.raw) > 0
        if drains and self.drained():
            lib.pn_link_drained(self.raw)
        return False

    def mark_ended(self) -> None:
        """See `BrokerLink.mark_ended`; the peer does not take the beginning of a message for all of it."""
        if self._rest and lib.pn_link_current(self.raw) == self._sending:
            lib.pn_delivery_abort(self._sending)
        self._rest.clear()
        super().mark_ended()

    def transfer(self, number: int, parts: Parts) -> Any:
        """Pass a message to proton, of a large one only the beginning, for proton copies it; the delivery."""
        tag = b"%x" % number
        handle = lib.pn_delivery(self.raw, (len(tag), ffi.from_buffer(tag)))
        if sum(map(len, parts)) > _LARGE:
            self._sending = handle
            self._rest.extend(map(memoryview, parts))
            self._send_piece()
        else:
            for part in parts:
                lib.pn_link_send(self.raw, ffi.from_buffer(part), len(part))
            self._finish(handle)
        return handle

    def _send_piece(self) -> None:
        if lib.pn_link_current(self.raw) != self._sending:
            self._rest.clear()  # the peer has settled it without having all of it
            return
        part = self._rest.popleft()
        piece = part[:_AHEAD]
        lib.pn_link_send(self.raw, ffi.from_buffer(piece), len(piece))
        if len(part) > _AHEAD:
            self._rest.appendleft(part[_AHEAD:])
        elif not self._rest:
            self._finish(self._sending)

    def _finish(self, handle: Any) -> None:
        lib.pn_link_advance(self.raw)
        if self.presettled:
            lib.pn_delivery_settle(handle)

    def _use_credit(self) -> None:
        if not self.ended:
            credit = lib.pn_link_credit(self.raw) - bool(self._rest)  # until it is whole, proton does not count it
            self.grant(credit, bool(lib.pn_link_get_drain(self.raw)))
            self.session.mark_ready(self)
