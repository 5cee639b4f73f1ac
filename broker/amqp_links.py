"""What the links of an AMQP client have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import proton
from cproton_ffi import lib

from redelivery.broker.amqp_refusals import condition
from redelivery.model.destinations import Destination, TemporaryQueue, TemporaryTopic
from redelivery.model.errors import JMSError

if TYPE_CHECKING:
    from redelivery.broker.amqp_conversation import AmqpConversation


class DoorLink(ABC):
    """One link, seen from the broker.

    Attributes:
        handle: proton's link.
        raw: the C library's.
        session: the C library's session.
        ended: nothing of it may be given to the C library any more.
    """

    def __init__(self, conversation: AmqpConversation, handle: Any) -> None:
        self.conversation = conversation
        self.handle = handle
        self.raw: Any = handle._impl
        self.session: Any = lib.pn_link_session(self.raw)
        self.ended = False
        self._temporary: Destination | None = None

    @abstractmethod
    def attach(self) -> None:
        """Agree to it, or raise JMSError."""

    @abstractmethod
    def on_delivery(self, handle: Any) -> None:
        """A transfer has come, or an outcome."""

    @abstractmethod
    def release(self) -> None:
        """What it holds at the broker is let go."""

    def refuse(self, error: JMSError) -> None:
        """Answer the attach with nothing to be attached to, and end."""
        terminus = self.handle.source if self.handle.is_sender else self.handle.target
        terminus.type = proton.Terminus.UNSPECIFIED
        self.handle.open()
        self.end(error)

    def end(self, error: JMSError | None = None, *, detach: bool = False) -> None:
        """End it, as the peer wishes or for a reason."""
        if self.ended:
            return
        self.let_go()
        if error is not None:
            self.handle.condition = condition(error)
        if detach:
            self.handle.detach()
        else:
            self.handle.close()

    def let_go(self) -> None:
        """The link is over, on whichever side."""
        if self.ended:
            return
        self.ended = True
        self.release()
        if self._temporary is not None:
            self.conversation.drop_temporary(self._temporary)

    def make_temporary(self, terminus: Any, capabilities: set[str]) -> Destination:
        """Make a node for a dynamic terminus; it lives as long as the link."""
        topic = "temporary-topic" in capabilities or "topic" in capabilities
        made = self.conversation.make_temporary(TemporaryTopic if topic else TemporaryQueue)
        self._temporary = made
        terminus.address = made.name
        terminus.dynamic = True
        return made
