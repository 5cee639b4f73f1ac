"""What one AMQP client does, and what the broker makes of it: proton's events in, commands out, and their execution."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from importlib.metadata import version as version_of
from itertools import count
from typing import Any, Final

import proton
from cproton_ffi import lib

from redelivery.broker.amqp_browser import BrowserLink
from redelivery.broker.amqp_commands import Command
from redelivery.broker.amqp_consumer import ConsumerLink
from redelivery.broker.amqp_data import symbols, text
from redelivery.broker.amqp_incoming import CoordinatorLink, IncomingLink
from redelivery.broker.amqp_links import DoorLink
from redelivery.broker.amqp_outgoing import OutgoingLink
from redelivery.broker.amqp_places import browses
from redelivery.broker.amqp_refusals import RefusedError, condition
from redelivery.broker.amqp_units import Units
from redelivery.broker.core import BrokerClosedError, Core
from redelivery.broker.engine.engine import Engine as Rules
from redelivery.broker.engine.subscriptions import Dispatch
from redelivery.model.destinations import Destination, TemporaryQueue, TemporaryTopic
from redelivery.model.errors import InvalidClientIDError, InvalidDestinationError, JMSError
from redelivery.transports.amqp.engine import Engine, Event, Handlers, borrowed

_CAPABILITIES: Final = ("ANONYMOUS-RELAY", "DELAYED_DELIVERY")
MOST_LINKS: Final = 2_000  # of a connection
_SOLE: Final = "sole-connection-for-container"


class AmqpConversation:
    """One client; everything but `stir` runs on the door's thread.

    Attributes:
        commands: what it asks for, to be done in order.
        acknowledged, returned: deliveries that are over, done together by `flush`.
        buffered: bytes of messages that have not come whole.
    """

    def __init__(self, core: Core, session: str, engine: Engine, wake: Callable[[], None]) -> None:
        self.core = core
        self.session = session
        self.connected = False
        self.over = False
        self.commands: deque[Command] = deque()
        self.acknowledged: list[Dispatch] = []
        self.returned: list[Dispatch] = []
        self.units = Units(self)
        self.buffered = 0
        self._engine = engine
        self._wake = wake
        self._links: dict[Any, DoorLink] = {}
        self._sessions: dict[Any, Any] = {}
        self._stirred: deque[OutgoingLink] = deque()  # they may have something to send
        self._temporary: set[Destination] = set()
        self._numbers = count(1)
        self.handlers: Handlers = {
            lib.PN_CONNECTION_REMOTE_OPEN: self._on_open,
            lib.PN_CONNECTION_REMOTE_CLOSE: self._on_close,
            lib.PN_SESSION_REMOTE_OPEN: self._on_session_open,
            lib.PN_SESSION_REMOTE_CLOSE: self._on_session_close,
            lib.PN_LINK_REMOTE_OPEN: self._on_link_open,
            lib.PN_LINK_REMOTE_CLOSE: partial(self._on_link_end, detach=False),
            lib.PN_LINK_REMOTE_DETACH: partial(self._on_link_end, detach=True),
            lib.PN_LINK_FLOW: self._on_flow,
            lib.PN_DELIVERY: self._on_delivery,
        }

    def execute(self, command: Command) -> None:
        """Do it, or tell the client why not.

        Raises:
            BrokerClosedError: the broker has ended.
        """
        if not command.gathers:
            self.flush()
        try:
            command.act()
        except BrokerClosedError:
            raise
        except JMSError as error:
            command.refuse(error)

    def flush(self) -> None:
        """Acknowledge and give back what was gathered: thousands one by one would each be sorted into the queue."""
        if not self.acknowledged and not self.returned:
            return
        acknowledged = [each for each in self.acknowledged if not each.subscription.closed]
        returned = [each for each in self.returned if not each.subscription.closed]
        self.acknowledged.clear()
        self.returned.clear()

        def settle(engine: Rules, now: int) -> None:
            engine.acknowledge(acknowledged, now)
            engine.release(returned, now)

        self.core.call(settle)

    def stir(self, link: OutgoingLink) -> None:
        """The link may have something to send. From any thread."""
        self._stirred.append(link)
        self._wake()

    def pump(self) -> None:
        """Hand to proton what it takes."""
        again = [link for link in dict.fromkeys(self._pop_stirred()) if link.pump()]
        self._stirred.extend(again)
        self.flush()

    def end(self) -> None:
        """The client is gone: its transactions are rolled back, what it held goes back. Harmless twice."""
        if self.over:
            return
        self.over = True
        self.flush()
        self.core.disconnect(self)
        self.units.end()
        for link in self._links.values():
            link.let_go()
        self.commands.clear()

    def dispose(self) -> None:
        """After `end`: nothing of proton's is kept, where the garbage collector of another thread might find it."""
        for link in self._links.values():
            link.handle = None
        self._links.clear()
        self._sessions.clear()
        self._engine.dispose()

    def broker_closed(self, reason: str) -> None:
        """The door has closed the connection before."""

    def make_temporary(self, kind: type[TemporaryQueue] | type[TemporaryTopic]) -> Destination:
        """A destination of this connection."""
        made = kind(f"{kind.scheme}://{self.session}:{next(self._numbers)}")
        self.core.call(lambda engine, _now: engine.make_temporary(made))
        self._temporary.add(made)
        return made

    def drop_temporary(self, made: Destination) -> None:
        """It is gone."""
        self._temporary.discard(made)
        self.core.call(lambda engine, _now: engine.drop_temporary(made))

    def check_there(self, destination: Destination) -> None:
        """Raise InvalidDestinationError where it is temporary, and gone."""
        self.core.call(lambda engine, _now: engine.check_there(destination))

    def check_ours(self, destination: Destination) -> None:
        """Raise InvalidDestinationError where it is another connection's temporary one."""
        if isinstance(destination, (TemporaryQueue, TemporaryTopic)) and destination not in self._temporary:
            raise InvalidDestinationError(f"{destination}: only the connection that made it can consume it")

    def _pop_stirred(self) -> list[OutgoingLink]:
        return [self._stirred.popleft() for _ in range(len(self._stirred))]

    # What has come; each is a command to be done in order.

    def _on_open(self, _: Event) -> None:
        self._add("CONNECT", self._open, self._refuse_open)

    def _on_close(self, _: Event) -> None:
        self._add("DISCONNECT", self._close, self._close_with)

    def _on_session_open(self, event: Event) -> None:
        raw = lib.pn_event_session(event)
        session = self._sessions[raw] = borrowed(proton.Session.wrap(raw))
        self._add(None, session.open, self._close_with)

    def _on_session_close(self, event: Event) -> None:
        self._add(None, partial(self._end_session, lib.pn_event_session(event)), self._close_with)

    def _on_link_open(self, event: Event) -> None:
        if len(self._links) >= MOST_LINKS:
            many = RefusedError("amqp:resource-limit-exceeded", f"more than {MOST_LINKS} links")
            self._add(None, partial(self._close_with, many), self._close_with)
            return
        handle = borrowed(proton.Link.wrap(lib.pn_event_link(event)))
        link: DoorLink
        if handle.is_sender:
            link = (BrowserLink if browses(handle.remote_source) else ConsumerLink)(self, handle)
        elif handle.remote_target.type == proton.Terminus.COORDINATOR:
            link = CoordinatorLink(self, handle)
        else:
            link = IncomingLink(self, handle)
        self._links[link.raw] = link
        self._add("SUBSCRIBE" if handle.is_sender else None, link.attach, link.refuse)

    def _on_link_end(self, event: Event, *, detach: bool) -> None:
        link = self._links.get(lib.pn_event_link(event))
        if link is not None:
            name = "UNSUBSCRIBE" if link.handle.is_sender else None
            self._add(name, partial(self._end_link, link, detach), link.end)

    def _on_flow(self, event: Event) -> None:
        link = self._links.get(lib.pn_event_link(event))
        if isinstance(link, OutgoingLink):
            self._add(None, link.on_flow, link.end)

    def _on_delivery(self, event: Event) -> None:
        handle = lib.pn_event_delivery(event)
        link = self._links.get(lib.pn_delivery_link(handle))
        if link is not None:
            link.on_delivery(handle)

    def _add(self, name: str | None, act: Callable[[], None], refuse: Callable[[JMSError], None]) -> None:
        self.commands.append(Command(name, act, refuse))

    # The commands of the connection

    def _open(self) -> None:
        raw = self._engine.connection._impl
        sole = _SOLE in symbols(lib.pn_connection_remote_desired_capabilities(raw))
        self.core.connect(self, text(lib.pn_connection_remote_container(raw)) if sole else None)
        self._say_open([*_CAPABILITIES, _SOLE] if sole else [*_CAPABILITIES], {})
        self.connected = True

    def _say_open(self, capabilities: list[str], properties: dict[str, Any]) -> None:
        connection = self._engine.connection
        said = {"product": "redelivery", "version": version_of("redelivery"), **properties}
        connection.container = f"redelivery-{self.core.name}"
        connection.properties = proton.PropertyDict(said)
        connection.offered_capabilities = proton.SymbolList(capabilities)
        connection.open()

    def _refuse_open(self, error: JMSError) -> None:
        """Opened and closed at once, as the standard has no other way (Qpid JMS knows the property)."""
        self._say_open([], {"amqp:connection-establishment-failed": True})
        info = None
        if isinstance(error, InvalidClientIDError):
            info = {proton.symbol("invalid-field"): proton.symbol("container-id")}
        self._close_with(error, info)

    def _close(self) -> None:
        self.end()
        self._engine.connection.close()

    def _close_with(self, error: JMSError, info: dict[Any, Any] | None = None) -> None:
        self._engine.connection.condition = condition(error, info)
        self._close()

    def _end_session(self, raw: Any) -> None:
        session = self._sessions.pop(raw, None)
        if session is None:
            return
        for link in [link for link in self._links.values() if link.session == raw]:
            link.let_go()
            del self._links[link.raw]
        session.close()
        session.free()

    def _end_link(self, link: DoorLink, detach: bool) -> None:
        link.end(detach=detach)
        if self._links.pop(link.raw, None) is not None:
            link.handle.free()
