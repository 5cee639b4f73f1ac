"""The base of the links of an AMQP client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import proton
from cproton_ffi import lib

from redelivery.broker.core import Core
from redelivery.broker.engine.rules.rules import Manner
from redelivery.broker.engine.subscriptions import Dispatch
from redelivery.broker.servers.amqp.codec.conditions import condition
from redelivery.broker.servers.amqp.commands import Attach, Command, LinkCommand
from redelivery.broker.servers.amqp.transactions import OpenTransactions
from redelivery.model.destinations import Destination, TemporaryQueue, TemporaryTopic
from redelivery.model.errors import JMSError


class LinkSession(Protocol):
    """The part of its client's `redelivery.broker.servers.amqp.session.AmqpServerSession` that a link needs.

    ``buffered``: bytes of messages that have not come whole. ``client_id``: its container's id, to which the names of
    its subscriptions belong. ``origin``: what no_local knows its messages by. ``lost``: its connection has ended
    without a goodbye.
    """

    core: Core
    name: str
    client_id: str | None
    origin: str
    lost: bool
    transactions: OpenTransactions
    buffered: int

    def add(self, command: Command) -> None:
        """Execute the command when all before it are."""

    def acknowledge(self, dispatch: Dispatch) -> None:
        """Acknowledge it, together with others."""

    def release(self, dispatch: Dispatch, manner: Manner | None) -> None:
        """Let it wait again, together with others; ``manner`` as in `Engine.release`."""

    def mark_ready(self, link: BrokerLink) -> None:
        """The link may have something to send. From any thread."""

    def make_temporary(self, kind: type[TemporaryQueue] | type[TemporaryTopic]) -> Destination:
        """A destination of this connection."""

    def drop_temporary(self, made: Destination) -> None:
        """Remove it."""

    def check_exists(self, destination: Destination) -> None:
        """Raise InvalidDestinationError where it is temporary, and removed."""

    def cut(self) -> None:
        """End the connection without a word."""

    def check_own(self, destination: Destination) -> None:
        """Raise InvalidDestinationError where it is another connection's temporary one."""


class BrokerLink(ABC):
    """One link, seen from the broker: ``handle`` is proton's link, ``raw`` and ``raw_session`` are the C library's.

    ``number``: what commands call it. ``ended``: nothing of it may be given to the C library any more.
    """

    def __init__(self, session: LinkSession, number: int, handle: Any) -> None:
        self.session = session
        self.number = number
        self.handle = handle
        self.raw: Any = handle._impl
        self.raw_session: Any = lib.pn_link_session(self.raw)
        self.ended = False
        self._temporary: Destination | None = None

    @property
    def receives(self) -> bool:
        """True: the client receives by it."""
        return bool(self.handle.is_sender)

    @abstractmethod
    def attach(self) -> None:
        """Answer the client's attach. Raises JMSError."""

    @abstractmethod
    def on_delivery(self, handle: Any) -> None:
        """A transfer has come, or an outcome."""

    @abstractmethod
    def release(self) -> None:
        """Release what the link holds at the broker."""

    def on_flow(self) -> None:
        """The client's credit has changed; that matters only where it receives."""
        return

    def flush(self) -> bool:
        """Pass to proton what it takes; whether more could follow when that is written."""
        return False

    def execute(self, command: LinkCommand) -> None:
        """Do what the client asks for. Raises JMSError."""
        if isinstance(command, Attach):
            self.attach()

    def refuse(self, command: LinkCommand, error: JMSError) -> None:
        """Notify the client that it was not done."""
        if isinstance(command, Attach):  # answered with nothing to be attached to
            terminus = self.handle.source if self.receives else self.handle.target
            terminus.type = proton.Terminus.UNSPECIFIED
            self.handle.open()
        self.end(error)

    def end(self, error: JMSError | None = None, *, closed: bool = True) -> None:
        """End it, as the peer wishes or for a reason."""
        if self.ended:
            return
        self.mark_ended()
        if error is None and closed:
            error = self.on_closed()
        if error is not None:
            self.handle.condition = condition(error)
        if closed:
            self.handle.close()
        else:
            self.handle.detach()

    def on_closed(self) -> JMSError | None:
        """The client has closed it, and not merely detached it; why what that means was not done."""
        return None

    def mark_ended(self) -> None:
        """Note that the link has ended, on whichever side."""
        if self.ended:
            return
        self.ended = True
        self.release()
        if self._temporary is not None:
            self.session.drop_temporary(self._temporary)

    def make_temporary(self, terminus: Any, capabilities: set[str]) -> Destination:
        """Make a node for a dynamic terminus; it lives as long as the link."""
        topic = "temporary-topic" in capabilities or "topic" in capabilities
        made = self.session.make_temporary(TemporaryTopic if topic else TemporaryQueue)
        self._temporary = made
        terminus.address = made.name
        terminus.dynamic = True
        return made
