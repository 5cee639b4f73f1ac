"""The connection that an application holds."""

from __future__ import annotations

from datetime import timedelta
from typing import Unpack

from redelivery.client.aio.made import Closing, Made
from redelivery.client.aio.publisher import Publisher
from redelivery.client.aio.session import Session
from redelivery.client.arguments import seconds
from redelivery.client.connection.replies import check_started
from redelivery.client.containers.aio import MakesContainers
from redelivery.client.entry.aio_core import ConnectionCore
from redelivery.client.shells.connection import BaseConnection
from redelivery.model.content.headers import SYNONYMS, SendKeywords
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.model.suggestions import suggesting


class Connection(BaseConnection, MakesContainers, Closing):
    # threads: """A connection to one broker; thread-safe. Made by `connect` or a ConnectionFactory.
    # threads:
    # threads: It is started already by default. Leaving its ``with`` block closes it and everything made from it.
    # threads: """
    """A connection to one broker, of the event loop in which it was made; the same as `redelivery.Connection`.

    Made by `connect`, already started by default. Leaving its ``async with`` block closes it and everything made from
    it.
    """

    _core: ConnectionCore

    def __init__(self, core: ConnectionCore) -> None:
        if not isinstance(core, ConnectionCore):
            raise ConfigError("a Connection is made by redelivery.connect(url, …), redelivery.aio.connect or a factory")
        self._core = core

    def session(self, ack_mode: AckMode | int | str = AckMode.AUTO) -> Made[Session]:
        """A new session: ``await`` it, or ``async with``.

        ``ack_mode``: an AckMode, its name or its number: when messages are acknowledged.

        Raises, when awaited:
            ConfigError: there is no such mode.
            UnsupportedError: the broker has no transactions, and the mode is TRANSACTED.
            IllegalStateError: the connection is closed; with asyncio, also where it is of another event loop.
            ConnectionLostError: the connection was lost.
            RequestTimeoutError: it was lost, and is not there again within request_timeout.
            ConnectError, SecurityError: where each session has a socket of its own (ActiveMQ Classic over STOMP), this
                one could not be opened within connect_timeout; the other sessions go on.
        """
        return Made(self._core.session(ack_mode))

    def publisher(self) -> Made[Publisher]:
        """A publisher: ``await`` it, or ``async with``. It sends from any task: ``await publisher.send(body, …)``.

        To be closed, unless a ``with`` does so.

        Raises, when awaited:
            IllegalStateError: the connection is closed.
            ConnectionLostError: the connection was lost.
        """
        return Made(self._core.publisher())

    @suggesting(SYNONYMS)
    async def request(
        self, destination: Destination | str, body: object, timeout: float | timedelta, **options: Unpack[SendKeywords]
    ) -> Message:
        """Send a request and wait for its reply. From any task, any number at the same time.

        The reply comes to a temporary queue of this connection, and is the one with the request's correlation id
        (JMS 3.1 §3.4.5: the server copies it, and sends to the request's ``reply_to``). A reply that comes too late is
        dropped and counted (`late_reply_count`), as is that of a task that is cancelled meanwhile.

        Args:
            destination: where the server consumes.
            body: ``str``, ``bytes``, ``dict``, ``list``, None, or a Message.
            timeout: seconds; the request expires when they are over, unless ``ttl`` says otherwise.
            options: as `Producer.send`; without ``correlation_id`` each request gets one of its own.

        Returns:
            The reply.

        Raises:
            RequestTimeoutError: no reply came in time.
            ConnectionLostError: the connection was lost meanwhile, and the reply with it. Where the connection comes
                back, the next request goes over the new one.
            UnsupportedError: the broker makes no temporary queues over this protocol.
            IllegalStateError: the connection is closed, or stopped.
            JMSError: as `Producer.send`.
        """
        self.check_open("request")
        check_started(self._core.started)
        return await self._core.requester.request(self._core, destination, body, seconds("timeout", timeout), options)

    async def start(self) -> None:
        """Deliver messages (again). A wait for a redelivery is not shortened by it."""
        await self._core.start()

    async def stop(self) -> None:
        """Hold deliveries back until `start`; returns when running listeners have returned, within close_timeout.

        Sends go on, and the time-out of a `receive` runs on.

        Raises:
            RequestTimeoutError: a listener did not return in time; deliveries are held back all the same.
        """
        await self._core.stop()

    async def close(self) -> None:
        # threads: """Close all sessions within close_timeout, then the connection within another. Twice is harmless.
        # threads:
        # threads: Called from a listener it takes effect when the callback has returned. In a signal handler that has
        # threads: interrupted a call on this connection it returns at once, and another thread closes: the call ends
        # threads: as by any other close, and the end of the ``with`` block, or of the program, waits for it.
        # threads: """
        """Close all sessions within close_timeout, then the connection within another. Twice is harmless.

        Called from a listener it takes effect when the callback has returned. A close that is cancelled goes on.
        """
        await self._core.close()

    async def wait(self, timeout: float | timedelta | None = None) -> bool:
        # threads: """Block while the connection is there: what a program does whose listeners do the work.
        # threads:
        # threads: Args:
        # threads:     timeout: seconds; None waits as long as it takes. A signal's handler may end the wait by raising,
        # threads:         or by closing the connection.
        # threads:
        # threads: Returns:
        # threads:     True when the connection was closed, False when the time is over.
        # threads:
        # threads: Raises:
        # threads:     ConnectionLostError: the connection was lost, before or meanwhile.
        # threads:     JMSError: a listener is called no more, as the broker has ended its consumer (its queue was
        # threads:         deleted, say).
        # threads:     SystemExit: a listener has called ``sys.exit()``.
        # threads: """
        """Wait while the connection is there: what a program does whose listeners do the work.

        Args:
            timeout: seconds; None waits as long as it takes.

        Returns:
            True when the connection was closed, False when the time is over.

        Raises:
            ConnectionLostError: the connection was lost, before or meanwhile.
            JMSError: a listener is called no more, as the broker has ended its consumer (its queue was deleted, say).
        """
        return await self._core.wait(timeout)

    def check_open(self, action: str) -> None:
        """Raise where it is closed or lost; the text names ``action``, and says when and why.

        Raises:
            IllegalStateError: it was closed.
            ConnectionLostError: it was lost.
        """
        self._core.check_open(action)
