"""A connection, but for its calls that wait."""

from __future__ import annotations

from redelivery.client.connection.health import Health
from redelivery.client.connection.looking import health_of
from redelivery.client.connection.reconnecting import ReconnectingConnection
from redelivery.client.connection.state import CLOSED
from redelivery.client.lifecycle import ConnectionStage
from redelivery.client.options import ExceptionListener, check_exception_listener
from redelivery.model.capabilities import ConnectionMetaData
from redelivery.model.destinations import Destination
from redelivery.transports.management.address import ManagementAddress


class BaseConnection:
    """Of both shells."""

    _core: ReconnectingConnection

    def __repr__(self) -> str:
        return repr(self._core)

    @property
    def client_id(self) -> str | None:
        """The JMS client id, if one was given."""
        return self._core.options.transport.client_id

    @property
    def metadata(self) -> ConnectionMetaData:
        """The broker at the other end, and what it can do."""
        return self._core.metadata

    @property
    def dialect(self) -> str:
        """The name of the broker whose meaning of the protocol is spoken."""
        return self._core.transport.peer.dialect

    @property
    def url(self) -> str:
        """The URL that it was made with, the password masked."""
        return self._core.url

    @property
    def management(self) -> ManagementAddress | None:
        """The address of the broker's management, by ``management=``; None where it was not given."""
        return self._core.options.management

    @property
    def closed(self) -> bool:
        """True: `close` was called."""
        return self._core.life.stage in CLOSED

    @property
    def connected(self) -> bool:
        """True: it is neither closed, nor lost, nor being connected again."""
        return not self._core.life.ended and self._core.life.stage is not ConnectionStage.RECOVERING

    def health(self) -> Health:
        """The state of the connection, and of all that consumes on it, as one value. Any thread may ask, at any time.

        Nothing is waited for, and nothing asked of the broker: a network that is dead is noticed by the heart-beat.
        """
        return health_of(self._core)

    @property
    def epoch(self) -> int:
        """The number of connections to a broker it has had: 1, and one more whenever it has come back or was moved."""
        return self._core.epoch

    @property
    def dropped_count(self) -> int:
        """The number of messages that a DiscardingDeadLetterStrategy has dropped."""
        return self._core.shared.dead_letters.dropped

    def stuck(self, destination: Destination) -> int:
        """The number of messages of a consumer's destination that cannot be dead-lettered now: unacknowledged."""
        return self._core.shared.dead_letters.stuck(destination)

    @property
    def late_reply_count(self) -> int:
        """The number of replies to `request` that no request waited for any more; they were dropped."""
        return self._core.replies.late

    @property
    def exception_listener(self) -> ExceptionListener | None:
        """Called with a JMSError that no call waits for, one at a time.

        On a thread of its own; with asyncio in the loop, where it may be an ``async def``.
        """
        return self._core.exception_listener

    @exception_listener.setter
    def exception_listener(self, listener: ExceptionListener | None) -> None:
        check_exception_listener(listener)
        self._core.exception_listener = listener
