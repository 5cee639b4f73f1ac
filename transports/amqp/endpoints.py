"""What links and sessions have in common: they open, and they end, by our will or the peer's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from redelivery.model.errors import IllegalStateError, JMSError, ResourceAllocationError
from redelivery.transports.amqp.engine import borrowed
from redelivery.transports.base import Pending

if TYPE_CHECKING:
    from redelivery.transports.amqp.connection import AmqpConnection


class Endpoint:
    """A link or a session. All is called by the holder of the connection's lock.

    Once it is `ended` nothing of it may be given to the C library any more.

    Attributes:
        handle: proton's object.
        raw: the C library's.
        what: for error texts.
        ended: why, once it is.
    """

    __slots__ = ("_closing", "_opening", "connection", "ended", "handle", "opened", "raw", "what")

    def __init__(self, connection: AmqpConnection, handle: Any, what: str) -> None:
        self.connection = connection
        self.handle = borrowed(handle)
        self.raw: Any = handle._impl
        self.what = what
        self.opened = False  # the peer has agreed
        self.ended: JMSError | None = None
        self._opening: Pending | None = None
        self._closing: Pending | None = None

    def open(self, pending: Pending | None) -> None:
        """Ask for it; the pending is the answer."""
        self._opening = pending
        self.connection.endpoints[self.raw] = self
        self.handle.open()

    def close(self, pending: Pending | None) -> None:
        """End it; the pending is the peer's agreement."""
        if self.ended is not None:
            if pending is not None:
                pending.complete()
            return
        self._closing = pending
        self.end(IllegalStateError(f"{self.what} is closed"), ours=True)
        self.handle.close()

    def on_opened(self) -> None:
        """The peer has agreed."""
        self.opened = True
        opening, self._opening = self._opening, None
        if opening is not None:
            self.connection.tidings.answer(opening)

    def on_closed(self, error: JMSError) -> None:
        """The peer has ended it, or agrees to our end of it."""
        closing, self._closing = self._closing, None
        if closing is not None:
            self.connection.tidings.answer(closing)
        if self.ended is None:
            self.end(error, ours=False)
            self.handle.close()
        self.forget()

    def end(self, error: JMSError, *, ours: bool) -> None:
        """Nothing comes or goes any more."""
        if self.ended is not None:
            return
        self.ended = error
        opening, self._opening = self._opening, None
        if opening is not None:
            self.connection.tidings.answer(opening, error)
        self.on_end(error, ours)

    def on_end(self, error: JMSError, ours: bool) -> None:
        """What else that means."""

    def on_flow(self) -> None:
        """The peer has said how much may come or go."""

    def forget(self) -> None:
        """Both sides have ended it: its memory in the C library is free again."""
        if self.connection.endpoints.pop(self.raw, None) is not None:
            self.handle.free()
        self.handle = None

    def lose(self, error: JMSError) -> None:
        """The connection is gone."""
        closing, self._closing = self._closing, None
        if closing is not None:
            self.connection.tidings.answer(closing, error)
        self.end(error, ours=True)
        self.handle = None


class AmqpSession(Endpoint):
    """A session of AMQP's: where links live. If the peer ends it, all its links are ended."""

    __slots__ = ("links",)

    def __init__(self, connection: AmqpConnection) -> None:
        """Raises ResourceAllocationError where the peer allows no more of them: proton would give the connection up."""
        if connection.sessions >= connection.most_sessions:
            raise ResourceAllocationError(
                f"the broker allows {connection.most_sessions} sessions of AMQP on one connection, and all are open: "
                "use a further connection"
            )
        connection.sessions += 1
        super().__init__(connection, connection.engine.connection.session(), "the session")
        self.links: set[Endpoint] = set()

    def on_end(self, error: JMSError, ours: bool) -> None:
        """See `Endpoint.on_end`."""
        for link in list(self.links):
            if not ours:
                link.end(error, ours=False)
            link.lose(error)
            self.connection.endpoints.pop(link.raw, None)
        self.links.clear()

    def forget(self) -> None:
        """See `Endpoint.forget`."""
        self.connection.sessions -= 1
        super().forget()
