"""The base of links and sessions: a table of them, and that they open and end, by our will or the peer's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from cproton_ffi import ffi, lib

from redelivery.model.destinations import Destination
from redelivery.model.errors import ConnectionLostError, IllegalStateError, JMSError
from redelivery.transports.amqp.codec.errors import broker_error
from redelivery.transports.amqp.engine import AmqpEngine, Event, unowned
from redelivery.transports.amqp.links.dispositions import condition_of
from redelivery.transports.dialects.unknown import AMQP
from redelivery.transports.seam import Link, Pending, SessionEvents
from redelivery.transports.wire.answers import finish

Found: TypeAlias = Callable[[JMSError | None, str | None], None]  # why not; its address, None: as it is written
_SPACE: Final = 64 << 10  # bytes of a message that is copied once


class Nodes(Protocol):
    """Finds a queue where its address alone would not do; for the holder of the connection's lock."""

    def ensure(self, name: str, found: Found, *, make: bool = True) -> None:
        """Call ``found`` once when the queue of that name is there, or will be made by its link.

        ``make``: False: it is not to be made, and ``found`` is called with InvalidDestinationError if it is not there.
        """


class Notifications:
    """Notifications that the peer's frames brought, which leave when the connection's lock is free again.

    Collected under the lock by the thread that reads, which notifies without it, for callbacks may call us again.
    """

    __slots__ = ("answers", "awake", "links", "problems")

    def __init__(self) -> None:
        self.answers: list[tuple[Pending, JMSError | None, object]] = []
        self.awake: list[SessionEvents] = []  # deliveries are in their inbox
        self.links: list[tuple[SessionEvents, Link, JMSError]] = []  # that the peer has ended
        self.problems: list[JMSError] = []  # that no call waits for

    def __bool__(self) -> bool:
        return bool(self.awake or self.answers or self.links or self.problems)

    def answer(self, pending: Pending, error: JMSError | None = None, value: object = None) -> None:
        """The answer to a request."""
        self.answers.append((pending, error, value))

    def notify(self, on_error: Callable[[JMSError], None]) -> None:
        """Everybody, once; deliveries first, since an answer comes after what came before it."""
        for events in self.awake:
            events.waiter.wake()
        for pending, error, value in self.answers:
            finish(pending, error, value)
        for events, link, problem in self.links:
            events.on_link_closed(link, problem)
        for problem in self.problems:
            on_error(problem)


class LinkTable:
    """The state that the links and sessions of one connection share; for the holder of the connection's lock.

    Attributes:
        broker: its address, as far as counts of deliveries go.
        client_id: whether the application has named the connection: named subscriptions are its own then.
        dialect: the peer's.
        endpoints: links and sessions by the C library's pointer.
        expire_at: is called where something begins to wait, with the time (monotonic seconds) at which to `expire` it.
        patience: seconds that it may wait for credit.
        unanswered: how many sends are.
        view: where a message is read to, which is the C library's ``space``.
    """

    __slots__ = (
        "broker",
        "client_id",
        "dialect",
        "ended",
        "endpoints",
        "engine",
        "expire_at",
        "idle",
        "most_sessions",
        "notifications",
        "patience",
        "removed",
        "sessions",
        "space",
        "unanswered",
        "view",
    )

    def __init__(
        self, engine: AmqpEngine, broker: str, patience: float, expire_at: Callable[[float], None], *, client_id: bool
    ) -> None:
        self.client_id = client_id
        self.dialect = AMQP  # until the greeting is known
        self.patience = patience
        self.expire_at = expire_at
        self.engine = engine
        self.broker = broker
        self.endpoints: dict[Any, Endpoint] = {}
        self.notifications = Notifications()
        self.unanswered = 0
        self.sessions = 0
        self.idle: list[Endpoint] = []  # sessions that are kept for links to come
        self.ended: list[Endpoint] = []  # sessions that the peer has ended, and whose channels are not to be used yet
        self.removed: dict[Destination | None, int] = {}  # queues: sessions of a lower number may know another one
        self.most_sessions: int = engine.transport.channel_max + 1
        space = bytearray(_SPACE)
        self.view = memoryview(space)
        self.space: Any = ffi.from_buffer(space)

    def take_notifications(self) -> Notifications | None:
        """Take the notifications that have come up; None where there are none."""
        if not self.notifications:
            return None
        taken, self.notifications = self.notifications, Notifications()
        return taken

    def expire(self, now: float) -> float | None:
        """Give up what has waited for too long; the time (monotonic seconds) when the next may be, None for never."""
        waits = [due for each in list(self.endpoints.values()) if (due := each.expire(now)) is not None]
        return min(waits, default=None)

    def handlers(self) -> dict[int, Callable[[Event], None]]:
        """The handlers of proton's events by type: each passes what the peer did to the session or link."""
        return {
            lib.PN_DELIVERY: self._on_delivery,
            lib.PN_LINK_REMOTE_OPEN: self._on_link_open,
            lib.PN_LINK_REMOTE_CLOSE: self._on_link_close,
            lib.PN_LINK_REMOTE_DETACH: self._on_link_close,
            lib.PN_LINK_FLOW: self._on_flow,
            lib.PN_SESSION_REMOTE_OPEN: self._on_session_open,
            lib.PN_SESSION_REMOTE_CLOSE: self._on_session_close,
        }

    def lose(self, error: ConnectionLostError) -> None:
        """The connection is gone."""
        for endpoint in list(self.endpoints.values()):
            endpoint.lose(error)
        self.endpoints.clear()
        self.view, self.space = memoryview(b""), None  # whatever still holds this table

    def _on_delivery(self, event: Event) -> None:
        handle = lib.pn_event_delivery(event)
        link: Any = self.endpoints.get(lib.pn_delivery_link(handle))
        if link is not None:
            link.on_delivery(handle)

    def _on_link_open(self, event: Event) -> None:
        endpoint = self.endpoints.get(lib.pn_event_link(event))
        if endpoint is not None and endpoint.ended is None:
            handle = endpoint.handle
            agreed = handle.remote_target if handle.is_sender else handle.remote_source
            if agreed.type != agreed.UNSPECIFIED:  # otherwise it is refused, and the reason comes with the detach
                endpoint.on_opened()

    def _on_link_close(self, event: Event) -> None:
        endpoint = self.endpoints.get(lib.pn_event_link(event))
        if endpoint is not None:
            condition = condition_of(lib.pn_link_remote_condition(endpoint.raw))
            endpoint.on_closed(broker_error(condition, endpoint.what))

    def _on_session_open(self, event: Event) -> None:
        endpoint = self.endpoints.get(lib.pn_event_session(event))
        if endpoint is not None:
            endpoint.on_opened()

    def _on_session_close(self, event: Event) -> None:
        endpoint = self.endpoints.get(lib.pn_event_session(event))
        if endpoint is not None:
            condition = condition_of(lib.pn_session_remote_condition(endpoint.raw))
            endpoint.on_closed(broker_error(condition, endpoint.what))

    def _on_flow(self, event: Event) -> None:
        link: Any = self.endpoints.get(lib.pn_event_link(event))
        if link is not None:
            link.on_flow()


class Endpoint:
    """A link or a session. All is called by the holder of the connection's lock.

    Once it is `ended` nothing of it may be given to the C library any more.

    Attributes:
        handle: proton's object.
        raw: the C library's.
        what: for errors.
        ended: why, once it is.
    """

    __slots__ = ("_closing", "_opening", "ended", "handle", "opened", "raw", "table", "what")

    def __init__(self, table: LinkTable, handle: Any, what: str) -> None:
        self.table = table
        self.handle = unowned(handle)
        self.raw: Any = handle._impl
        self.what = what
        self.opened = False  # the peer has agreed
        self.ended: JMSError | None = None
        self._opening: Pending | None = None
        self._closing: Pending | None = None

    def open(self, pending: Pending | None) -> None:
        """Ask for it; the pending is the answer."""
        self._opening = pending
        self._open()

    def open_after(self, ask: Callable[[Found], None], pending: Pending | None) -> None:
        """Ask for it when its node was found, at the address that is said then; or end, where that fails."""
        self._opening = pending
        ask(self._open_or_end)

    def _open_or_end(self, error: JMSError | None, address: str | None = None) -> None:
        if self.ended is not None:
            return
        if error is None:
            if address is not None:
                (self.handle.target if self.handle.is_sender else self.handle.source).address = address
            self._open()
        else:
            self.end(error, ours=False)
            self.forget()

    def _open(self) -> None:
        self.table.endpoints[self.raw] = self
        self.handle.open()

    def close(self, pending: Pending | None) -> None:
        """End it; the pending is the peer's agreement."""
        if self.ended is not None:
            if pending is not None:
                pending.complete()
            return
        self._closing = pending
        self.end(IllegalStateError(f"{self.what} is closed"), ours=True)
        if self.raw in self.table.endpoints:
            self.say_end()
        else:  # it has not been asked for yet
            self._closing = None
            if pending is not None:
                self.table.notifications.answer(pending)
            self.forget()

    def follow_end(self, pending: Pending) -> None:
        """Follow an end that is under way: the pending, too, is the peer's agreement."""
        if self._closing is None:
            self._closing = pending
        else:
            self._closing.on_done = pending.pass_on

    def say_end(self) -> None:
        """Notify the peer."""
        self.handle.close()

    @property
    def awaits(self) -> bool:
        """An answer of the peer is awaited."""
        return self._opening is not None or self._closing is not None

    def on_opened(self) -> None:
        """The peer has agreed."""
        self.opened = True
        opening, self._opening = self._opening, None
        if opening is not None:
            self.table.notifications.answer(opening)

    def on_closed(self, error: JMSError) -> None:
        """The peer has ended it, or agrees to our end of it."""
        closing, self._closing = self._closing, None
        if closing is not None:
            self.table.notifications.answer(closing)
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
            self.table.notifications.answer(opening, error)
        self.on_end(error, ours)

    def on_end(self, error: JMSError, ours: bool) -> None:
        """Do what else its end means."""

    def on_flow(self) -> None:
        """The peer has said how much may come or go."""

    def expire(self, now: float) -> float | None:
        """See `LinkTable.expire`."""

    def forget(self) -> None:
        """Both sides have ended it: its memory in the C library is free again."""
        self.table.endpoints.pop(self.raw, None)
        if self.handle is not None:
            self.handle.free()
        self.handle = None

    def lose(self, error: JMSError) -> None:
        """The connection is gone."""
        closing, self._closing = self._closing, None
        if closing is not None:
            self.table.notifications.answer(closing, error)
        self.end(error, ours=True)
        self.handle = None
