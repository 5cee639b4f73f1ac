"""The inside of a connection: its options, its transport and its life."""

from __future__ import annotations

import logging
import os
import weakref

from redelivery.client.connection.dialing import Dialer
from redelivery.client.connection.health import Consumes
from redelivery.client.connection.replies import Replies
from redelivery.client.connection.weak import Adopter, WeakConnectionEvents
from redelivery.client.dead_letters import DeadLetters
from redelivery.client.ledger.history import History
from redelivery.client.lifecycle import CONNECTION, ConnectionStage, Lifecycle
from redelivery.client.observing.log_lines import CONNECTIONS, Lines
from redelivery.client.observing.passports import Passports
from redelivery.client.options import ConnectionOptions
from redelivery.client.session.shared import Shared, Storing, Suspects
from redelivery.client.session.subscriptions import Subscriptions
from redelivery.client.session.temporaries import Temporaries
from redelivery.model.capabilities import ConnectionMetaData
from redelivery.model.errors import ConnectionLostError, JMSError, UnsupportedError
from redelivery.model.events import Connected, ConnectionLost, Event
from redelivery.model.modes import AckMode
from redelivery.transports.runtime import OF_THE_PARENT, Runtime
from redelivery.transports.seam import Transport

log = logging.getLogger(CONNECTIONS)
CLOSED = (ConnectionStage.CLOSING, ConnectionStage.CLOSED)


_all: weakref.WeakSet[ConnectionState] = weakref.WeakSet()


class ConnectionState(Adopter):
    """The machinery of a `redelivery.Connection` or `redelivery.aio.Connection`, which has one."""

    def __init__(self, options: ConnectionOptions, runtime: Runtime | None = None) -> None:
        self.options = options
        self.life = Lifecycle("connection", CONNECTION, ConnectionStage.CONNECTING)
        self.lines = lines = Lines()
        dead_letters = DeadLetters(options.dead_letter_strategies, lines, _passports(options, lines))
        self.shared = Shared(
            options, self.life, dead_letters, Temporaries(), Subscriptions(), lines, History(), Suspects(), Storing()
        )
        self.replies = Replies()
        self.exception_listener = options.exception_listener
        self.dialer = Dialer(options, self, runtime, self.shared)
        self.transport: Transport  # by `opened`
        self.events: WeakConnectionEvents | None = None  # of this transport
        self.epoch = 1
        self.started = False  # by `start`, whatever the connection is doing
        self.process: int | None = None  # in which it was opened
        self.dead: JMSError | None = None  # why a listener is called no more
        self.last_loss: ConnectionLost | None = None
        self.containers: weakref.WeakKeyDictionary[Consumes, None] = weakref.WeakKeyDictionary()  # started ones
        _all.add(self)

    @property
    def url(self) -> str:
        """The URL that it was made with, the password masked."""
        return self.options.url.masked

    @property
    def comes_back(self) -> bool:
        """True: a loss is followed by another connection, as long as it is not closed."""
        policy = self.options.reconnect
        return policy is not None and policy.maximum_attempts != 0

    @property
    def metadata(self) -> ConnectionMetaData:
        """The broker's name and version, and what it can do."""
        peer = self.transport.peer
        return ConnectionMetaData(peer.provider_name, peer.provider_version, peer.protocol, peer.capabilities)

    def __repr__(self) -> str:
        transport = getattr(self, "transport", None)  # there is none before the first was opened
        remark = transport.remark if transport is not None else ""
        return f"<Connection {self.url} {self.life.stage.value}{remark and f'; {remark}'}>"

    def check_open(self, action: str) -> None:
        """Raise where it is closed or lost; the text says when and why."""
        if self.life.ended:
            raise self.life.problem(action)

    def orphan(self) -> None:
        """In a child after fork(), where nobody dials: it is the parent's."""
        self.life.orphan(ConnectionLostError(OF_THE_PARENT))

    def opened(self, opened: tuple[Transport, WeakConnectionEvents]) -> None:
        """There is a first transport."""
        self.transport, self.events = opened
        self.dialer.adopted()
        self.process = os.getpid()
        self.life.step("open")
        self.events.adopt()
        self._say_connected()
        self.observe(Connected(self.url, self.metadata))

    def _say_connected(self) -> None:
        peer = self.transport.peer
        log.info(
            "%s: connected to %s %s over %s (dialect %s)",
            self.url,
            peer.provider_name,
            peer.provider_version,
            peer.protocol,
            peer.dialect,
        )

    def _say_lost(self, error: JMSError, *, again: bool) -> None:
        level = self.lines.level(logging.WARNING, f"{self.url}: connections lost")
        log.log(
            level, "%s: the connection was lost%s: %s", self.url, ", and the library reconnects" if again else "", error
        )

    def _say_error(self, error: JMSError) -> None:
        log.log(self.lines.level(logging.ERROR, f"{self.url}: errors"), "%s: %s", self.url, error)

    def say_closed(self) -> None:
        """Log it."""
        self.lines.end()
        log.info("%s: closed", self.url)

    def observe(self, event: Event) -> None:
        """Notify the observer, if there is one."""
        if self.options.observed is not None:
            self.options.observed.notify(event)

    def session_mode(self, ack_mode: AckMode | int | str) -> AckMode:
        """Raises ConfigError: there is no such mode. UnsupportedError: the broker has no transactions."""
        mode = AckMode.parse(ack_mode)
        peer = self.transport.peer
        if mode == AckMode.TRANSACTED and not peer.capabilities.transactions:
            raise UnsupportedError(
                f"{peer.provider_name} over {peer.protocol} has no transactions: use ack_mode='client' or "
                "'individual', or another protocol of this broker"
            )
        return mode

    def listener_for(self, error: JMSError, *, deadly: bool) -> bool:
        """Check for an exception listener to notify; where there is none, a ``deadly`` error is logged as CRITICAL."""
        closed = self.life.stage is ConnectionStage.CLOSED
        if self.exception_listener is not None and not closed:
            return True
        if deadly and not closed:
            log.critical("%s: a listener is called no more, and there is no exception_listener: %s", self.url, error)
        return False


def _passports(options: ConnectionOptions, lines: Lines) -> Passports | None:
    """Return what makes the passports of the connection's dead letters; None: they have none."""
    if options.passport is False:
        return None
    return Passports(
        options.redelivery_policies,
        lines,
        application=options.application,
        client_id=options.transport.client_id,
        redaction=None if options.passport is True else options.passport,
    )


def _after_fork() -> None:
    for each in list(_all):
        each.orphan()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
