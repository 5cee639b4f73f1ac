"""A connection without its shell: its options, its transport, its life, and what an application can ask of them."""

from __future__ import annotations

import logging
import os
import weakref

from redelivery.client.connection.dialing import Dialer
from redelivery.client.connection.replies import Replies
from redelivery.client.connection.weak import Adopter, WeakConnectionEvents
from redelivery.client.dead_letters import DeadLetters
from redelivery.client.ledger.history import History
from redelivery.client.lifecycle import CONNECTION, ConnectionStage, Lifecycle
from redelivery.client.observing.log_lines import CONNECTIONS, Lines
from redelivery.client.options import ConnectionOptions, ExceptionListener, check_exception_listener
from redelivery.client.session.shared import Shared, Suspects
from redelivery.client.session.subscriptions import Subscriptions
from redelivery.client.session.temporaries import Temporaries
from redelivery.model.capabilities import ConnectionMetaData
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError, ConnectionLostError, JMSError, UnsupportedError
from redelivery.model.events import Connected, Event
from redelivery.model.modes import AckMode
from redelivery.transports.management.address import ManagementAddress
from redelivery.transports.runtime import OF_THE_PARENT, Runtime
from redelivery.transports.seam import Transport

log = logging.getLogger(CONNECTIONS)
CLOSED = (ConnectionStage.CLOSING, ConnectionStage.CLOSED)


_all: weakref.WeakSet[ConnectionState] = weakref.WeakSet()


class ConnectionState(Adopter):
    """The part of `redelivery.Connection` and `redelivery.aio.Connection` beside how they wait."""

    def __init__(self, options: ConnectionOptions, runtime: Runtime | None = None) -> None:
        if not isinstance(options, ConnectionOptions):
            raise ConfigError("a Connection is made by redelivery.connect(url, …), redelivery.aio.connect or a factory")
        self._options = options
        self._life = Lifecycle("connection", CONNECTION, ConnectionStage.CONNECTING)
        self._lines = lines = Lines()
        dead_letters = DeadLetters(options.dead_letter_strategy, lines)
        self._shared = Shared(
            options, self._life, dead_letters, Temporaries(), Subscriptions(), lines, History(), Suspects()
        )
        self._replies = Replies()
        self._exception_listener = options.exception_listener
        self.dialer = Dialer(options, self, runtime, self._shared)
        self._transport: Transport  # by `_opened`
        self._events: WeakConnectionEvents | None = None  # of this transport
        self._epoch = 1
        self._started = False  # by `start`, whatever the connection is doing
        self._process: int | None = None  # in which it was opened
        self._dead: JMSError | None = None  # why a listener is called no more
        _all.add(self)

    @property
    def client_id(self) -> str | None:
        """The JMS client id, if one was given."""
        return self._options.transport.client_id

    @property
    def metadata(self) -> ConnectionMetaData:
        """The broker at the other end, and what it can do."""
        peer = self._transport.peer
        return ConnectionMetaData(peer.provider_name, peer.provider_version, peer.protocol, peer.capabilities)

    @property
    def dialect(self) -> str:
        """The name of the broker whose meaning of the protocol is spoken."""
        return self._transport.peer.dialect

    @property
    def url(self) -> str:
        """The URL that it was made with, the password masked."""
        return self._options.url.masked

    @property
    def management(self) -> ManagementAddress | None:
        """The address of the broker's management, by ``management=``; None where it was not given."""
        return self._options.management

    @property
    def closed(self) -> bool:
        """True: `close` was called."""
        return self._life.stage in CLOSED

    @property
    def connected(self) -> bool:
        """True: it is neither closed, nor lost, nor being connected again."""
        return not self._life.ended and self._life.stage is not ConnectionStage.RECOVERING

    @property
    def epoch(self) -> int:
        """The number of connections to a broker it has had: 1, and one more whenever it has come back or was moved."""
        return self._epoch

    @property
    def dropped_count(self) -> int:
        """The number of messages that a DiscardingDeadLetterStrategy has dropped."""
        return self._shared.dead_letters.dropped

    def stuck(self, destination: Destination) -> int:
        """The number of messages of a consumer's destination that cannot be dead-lettered now: unacknowledged."""
        return self._shared.dead_letters.stuck(destination)

    @property
    def late_reply_count(self) -> int:
        """The number of replies to `request` that no request waited for any more; they were dropped."""
        return self._replies.late

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """Called with a JMSError that no call waits for, one at a time.

        On a thread of its own; with asyncio in the loop, where it may be an ``async def``.
        """
        return self._exception_listener

    @exception_listener.setter
    def exception_listener(self, listener: ExceptionListener | None) -> None:
        check_exception_listener(listener)
        self._exception_listener = listener

    def __repr__(self) -> str:
        transport = getattr(self, "_transport", None)  # there is none before the first was opened
        remark = transport.remark if transport is not None else ""
        return f"<Connection {self.url} {self._life.stage.value}{remark and f'; {remark}'}>"

    @property
    def transport(self) -> Transport:
        """The one that it has now."""
        return self._transport

    def orphan(self) -> None:
        """In a child after fork(), where nobody dials: it is the parent's."""
        self._life.orphan(ConnectionLostError(OF_THE_PARENT))

    def _opened(self, opened: tuple[Transport, WeakConnectionEvents]) -> None:
        """There is a first transport."""
        self._transport, self._events = opened
        self.dialer.adopted()
        self._process = os.getpid()
        self._life.step("open")
        self._events.adopt()
        self._say_connected()
        self._observe(Connected(self.url, self.metadata))

    def _say_connected(self) -> None:
        peer = self._transport.peer
        log.info(
            "%s: connected to %s %s over %s (dialect %s)",
            self.url,
            peer.provider_name,
            peer.provider_version,
            peer.protocol,
            peer.dialect,
        )

    def _say_lost(self, error: JMSError, *, again: bool) -> None:
        level = self._lines.level(logging.WARNING, f"{self.url}: connections lost")
        log.log(
            level, "%s: the connection was lost%s: %s", self.url, ", and the library reconnects" if again else "", error
        )

    def _say_error(self, error: JMSError) -> None:
        log.log(self._lines.level(logging.ERROR, f"{self.url}: errors"), "%s: %s", self.url, error)

    def _say_closed(self) -> None:
        self._lines.end()
        log.info("%s: closed", self.url)

    def _observe(self, event: Event) -> None:
        if self._options.observed is not None:
            self._options.observed.notify(event)

    def _session_mode(self, ack_mode: AckMode | int | str) -> AckMode:
        """Raises ConfigError: there is no such mode. UnsupportedError: the broker has no transactions."""
        mode = AckMode.parse(ack_mode)
        peer = self._transport.peer
        if mode == AckMode.TRANSACTED and not peer.capabilities.transactions:
            raise UnsupportedError(
                f"{peer.provider_name} over {peer.protocol} has no transactions: use ack_mode='client' or "
                "'individual', or another protocol of this broker"
            )
        return mode

    def _listener_for(self, error: JMSError, *, deadly: bool) -> bool:
        """Check for an exception listener to notify; where there is none, a ``deadly`` error is logged as CRITICAL."""
        closed = self._life.stage is ConnectionStage.CLOSED
        if self._exception_listener is not None and not closed:
            return True
        if deadly and not closed:
            log.critical("%s: a listener is called no more, and there is no exception_listener: %s", self.url, error)
        return False


def _after_fork() -> None:
    for each in list(_all):
        each.orphan()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
