"""Serves one AMQP client: proton's events in, commands out, and their execution."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Final

import proton
from cproton_ffi import lib

from redelivery.broker.core import BrokerClosedError, Core
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.rules.rules import Manner
from redelivery.broker.engine.subscriptions import Dispatch
from redelivery.broker.servers.amqp.codec.conditions import RefusedError, condition
from redelivery.broker.servers.amqp.codec.data import symbols, text
from redelivery.broker.servers.amqp.codec.terminus import is_browser
from redelivery.broker.servers.amqp.commands import (
    Abort,
    Attach,
    BeginSession,
    Close,
    Command,
    DetachLink,
    EndSession,
    LinkCommand,
    Open,
)
from redelivery.broker.servers.amqp.links.browser import BrowserLink
from redelivery.broker.servers.amqp.links.consumer import ConsumerLink
from redelivery.broker.servers.amqp.links.coordinator import CoordinatorLink
from redelivery.broker.servers.amqp.links.incoming import IncomingLink
from redelivery.broker.servers.amqp.links.link import BrokerLink
from redelivery.broker.servers.amqp.links.subscription import SubscriptionLink
from redelivery.broker.servers.amqp.transactions import OpenTransactions
from redelivery.model.destinations import Destination, TemporaryQueue, TemporaryTopic
from redelivery.model.errors import InvalidClientIDError, InvalidDestinationError, JMSError
from redelivery.model.version import VERSION
from redelivery.transports.amqp.engine import AmqpEngine, Event, Handlers, unowned

_CAPABILITIES: Final = ("ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS")
MOST_LINKS: Final = 2_000  # of a connection
_SOLE: Final = "sole-connection-for-container"


class AmqpServerSession:
    """One client; everything but `mark_ready` runs on the listener's thread.

    ``commands``: what the client asks for and is still to be executed, in order. The others are `LinkSession`'s.
    """

    def __init__(self, core: Core, name: str, engine: AmqpEngine, wake: Callable[[], None]) -> None:
        self.core = core
        self.name = name
        self.client_id: str | None = None
        self.origin = name
        self.connected = False
        self.ended = False
        self.lost = False
        self.is_cut = False
        self.commands: deque[Command] = deque()
        self.transactions = OpenTransactions(core)
        self.buffered = 0
        self._engine = engine
        self._wake = wake
        self._acknowledged: list[Dispatch] = []  # these two are settled together
        self._released: dict[Manner | None, list[Dispatch]] = {}
        self._links: dict[int, BrokerLink] = {}
        self._by_handle: dict[Any, BrokerLink] = {}  # the same, by the C library's links
        self._sessions: dict[int, Any] = {}
        self._session_numbers: dict[Any, int] = {}  # by the C library's sessions
        self._ready: deque[BrokerLink] = deque()  # they may have something to send
        self._temporary: set[Destination] = set()
        self._numbers = count(1)
        self.handlers: Handlers = {
            lib.PN_CONNECTION_REMOTE_OPEN: lambda _: self.add(Open()),
            lib.PN_CONNECTION_REMOTE_CLOSE: lambda _: self.add(Close()),
            lib.PN_SESSION_REMOTE_OPEN: self._on_session_open,
            lib.PN_SESSION_REMOTE_CLOSE: self._on_session_close,
            lib.PN_LINK_REMOTE_OPEN: self._on_link_open,
            lib.PN_LINK_REMOTE_CLOSE: partial(self._on_link_end, closed=True),
            lib.PN_LINK_REMOTE_DETACH: partial(self._on_link_end, closed=False),
            lib.PN_LINK_FLOW: self._on_flow,
            lib.PN_DELIVERY: self._on_delivery,
        }

    def execute(self, command: Command) -> None:
        """Do it, or answer why not. Raises BrokerClosedError: the broker has ended."""
        if not command.gathers:
            self.settle_gathered()
        try:
            self._execute(command)
        except BrokerClosedError:
            raise
        except JMSError as error:
            self.refuse(command, error)

    def refuse(self, command: Command, error: JMSError) -> None:
        """Notify the client that it was not done."""
        if isinstance(command, Open):
            self._refuse_open(error)
        elif not isinstance(command, LinkCommand):
            self._close_with(error)
        elif command.link in self._links:
            self._links[command.link].refuse(command, error)

    def settle_gathered(self) -> None:
        """Acknowledge and release what was gathered: thousands one by one would each be sorted into the queue."""
        if not self._acknowledged and not self._released:
            return
        acknowledged = [each for each in self._acknowledged if not each.subscription.closed]
        released = dict(self._released)
        self._acknowledged.clear()
        self._released.clear()

        def settle(engine: Engine, now: int) -> None:
            engine.acknowledge(acknowledged, now)
            for manner, dispatches in released.items():
                engine.release([each for each in dispatches if not each.subscription.closed], now, manner)

        self.core.call(settle)

    def flush(self) -> None:
        """Pass to proton what it takes."""
        ready = [self._ready.popleft() for _ in range(len(self._ready))]
        self._ready.extend([link for link in dict.fromkeys(ready) if link.flush()])
        self.settle_gathered()

    def end(self, *, lost: bool = True) -> None:
        """The client is gone: its transactions are rolled back, what it held is released. Idempotent."""
        if self.ended:
            return
        self.ended, self.lost = True, lost
        self.settle_gathered()
        self.core.disconnect(self)
        self.transactions.end()
        for link in self._links.values():
            link.mark_ended()
        self.commands.clear()

    def dispose(self) -> None:
        """After `end`: nothing of proton's is kept, where the garbage collector of another thread might find it."""
        for link in self._links.values():
            link.handle = None
        self._links.clear()
        self._by_handle.clear()
        self._sessions.clear()
        self._engine.dispose()

    def broker_closed(self, reason: str) -> None:
        """The listener has closed the connection before."""

    # For the links (`redelivery.broker.servers.amqp.links.link.LinkSession`)

    def add(self, command: Command) -> None:
        """Execute the command when all before it are."""
        self.commands.append(command)

    def acknowledge(self, dispatch: Dispatch) -> None:
        """Acknowledge it, together with others."""
        self._acknowledged.append(dispatch)

    def release(self, dispatch: Dispatch, manner: Manner | None) -> None:
        """Let it wait again, together with others; ``manner`` as in `AmqpEngine.release`."""
        self._released.setdefault(manner, []).append(dispatch)

    def mark_ready(self, link: BrokerLink) -> None:
        """The link may have something to send. From any thread."""
        self._ready.append(link)
        self._wake()

    def cut(self) -> None:
        """End the connection without a word; the socket sees that."""
        self.is_cut = True

    def make_temporary(self, kind: type[TemporaryQueue] | type[TemporaryTopic]) -> Destination:
        """A destination of this connection."""
        made = kind(f"{kind.scheme}://{self.name}:{next(self._numbers)}")
        self.core.call(lambda engine, _now: engine.make_temporary(made))
        self._temporary.add(made)
        return made

    def drop_temporary(self, made: Destination) -> None:
        """Remove it."""
        self._temporary.discard(made)
        self.core.call(lambda engine, _now: engine.drop_temporary(made))

    def check_exists(self, destination: Destination) -> None:
        """Raise InvalidDestinationError where it is temporary, and removed."""
        self.core.call(lambda engine, _now: engine.check_exists(destination))

    def check_own(self, destination: Destination) -> None:
        """Raise InvalidDestinationError where it is another connection's temporary one."""
        if isinstance(destination, (TemporaryQueue, TemporaryTopic)) and destination not in self._temporary:
            raise InvalidDestinationError(f"{destination}: only the connection that made it can consume it")

    # What has come, by proton's events

    def _on_session_open(self, event: Event) -> None:
        raw = lib.pn_event_session(event)
        number = self._session_numbers[raw] = next(self._numbers)
        self._sessions[number] = unowned(proton.Session.wrap(raw))
        self.add(BeginSession(number))

    def _on_session_close(self, event: Event) -> None:
        number = self._session_numbers.pop(lib.pn_event_session(event), None)
        if number is not None:
            self.add(EndSession(number))

    def _on_link_open(self, event: Event) -> None:
        if len(self._links) >= MOST_LINKS:
            self.add(Abort(RefusedError("amqp:resource-limit-exceeded", f"more than {MOST_LINKS} links")))
            return
        handle = unowned(proton.Link.wrap(lib.pn_event_link(event)))
        number = next(self._numbers)
        link: BrokerLink
        if handle.is_sender:
            if handle.remote_source.type == proton.Terminus.UNSPECIFIED:
                link = SubscriptionLink(self, number, handle)
            else:
                link = (BrowserLink if is_browser(handle.remote_source) else ConsumerLink)(self, number, handle)
        elif handle.remote_target.type == proton.Terminus.COORDINATOR:
            link = CoordinatorLink(self, number, handle)
        else:
            link = IncomingLink(self, number, handle)
        self._links[number] = self._by_handle[link.raw] = link
        self.add(Attach(number, link.receives))

    def _on_link_end(self, event: Event, *, closed: bool) -> None:
        link = self._by_handle.get(lib.pn_event_link(event))
        if link is not None:
            self.add(DetachLink(link.number, link.receives, closed))

    def _on_flow(self, event: Event) -> None:
        link = self._by_handle.get(lib.pn_event_link(event))
        if link is not None:
            link.on_flow()

    def _on_delivery(self, event: Event) -> None:
        handle = lib.pn_event_delivery(event)
        link = self._by_handle.get(lib.pn_delivery_link(handle))
        if link is not None:
            link.on_delivery(handle)

    # The commands

    def _execute(self, command: Command) -> None:
        match command:
            case DetachLink():
                self._end_link(command)
            case LinkCommand():
                link = self._links.get(command.link)
                if link is not None:
                    link.execute(command)
            case BeginSession(number):
                self._sessions[number].open()
            case EndSession(number):
                self._end_session(number)
            case Open():
                self._open()
            case Close():
                self._close()
            case Abort(error):
                self._close_with(error)

    def _open(self) -> None:
        raw = self._engine.connection._impl
        sole = _SOLE in symbols(lib.pn_connection_remote_desired_capabilities(raw))
        container = text(lib.pn_connection_remote_container(raw))
        self.core.connect(self, container if sole else None)
        if container:
            self.client_id, self.origin = container, f"client-id:{container}"
        self._answer_open([*_CAPABILITIES, _SOLE] if sole else [*_CAPABILITIES], {})
        self.connected = True

    def _answer_open(self, capabilities: list[str], properties: dict[str, Any]) -> None:
        connection = self._engine.connection
        connection.container = f"redelivery-{self.core.name}"
        connection.properties = proton.PropertyDict(
            {"product": self.core.dialect.product, "version": VERSION, **properties}
        )
        connection.offered_capabilities = proton.SymbolList(capabilities)
        connection.open()

    def _refuse_open(self, error: JMSError) -> None:
        """Open and close at once, as the standard has no other way (Qpid JMS knows the property)."""
        self._answer_open([], {"amqp:connection-establishment-failed": True})
        info = None
        if isinstance(error, InvalidClientIDError):
            info = {proton.symbol("invalid-field"): proton.symbol("container-id")}
        self._close_with(error, info)

    def _close(self) -> None:
        self.end(lost=False)
        self._engine.connection.close()

    def _close_with(self, error: JMSError, info: dict[Any, Any] | None = None) -> None:
        self._engine.connection.condition = condition(error, info)
        self._close()

    def _end_session(self, number: int) -> None:
        session = self._sessions.pop(number, None)
        if session is None:
            return
        for link in [link for link in self._links.values() if link.raw_session == session._impl]:
            link.mark_ended()
            self._forget(link)
        session.close()
        session.free()

    def _end_link(self, command: DetachLink) -> None:
        link = self._links.get(command.link)
        if link is not None:
            link.end(closed=command.closed)
            self._forget(link)
            link.handle.free()

    def _forget(self, link: BrokerLink) -> None:
        del self._links[link.number]
        del self._by_handle[link.raw]
