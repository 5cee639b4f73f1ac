"""Makes connections."""

from __future__ import annotations

from typing import Unpack

from redelivery.client.aio.made import Made
from redelivery.client.arguments import CONNECTION_SYNONYMS, check_flag
from redelivery.client.entry.aio import Connection
from redelivery.client.entry.aio_core import ConnectionCore
from redelivery.client.options import (
    CONNECTION_DEFAULTS,
    ConnectionKeywords,
    ConnectionOptions,
    merge_options,
)
from redelivery.model.errors import unseen
from redelivery.model.suggestions import suggesting


class ConnectionFactory:
    """Options checked once, for many connections; immutable and thread-safe.

    Args:
        url: ``vm://name``, ``stomp://host:61613``, ``stomp+ssl://host:61614``; query options are ActiveMQ's.
        options: username, password, redelivery_policy, prefetch, …: see `redelivery.client.options.ConnectionKeywords`.

    Raises:
        ConfigError: an option is unknown, malformed or contradicts another; the text names it.
    """

    @unseen
    @suggesting(CONNECTION_SYNONYMS, CONNECTION_DEFAULTS)
    def __init__(self, url: str, **options: Unpack[ConnectionKeywords]) -> None:
        self._options = merge_options(url, **options)

    def create_connection(self, *, start: bool = True) -> Made[Connection]:
        """A new connection: ``await`` it, or ``async with``. It is started unless ``start=False``.

        With ``start=False`` it sends, but does not deliver: JMS's stopped connection.

        Raises, when awaited:
            ConnectError: there is no such broker, or it did not answer within connect_timeout.
            SecurityError: the login was refused.
            InvalidClientIDError: the client id is in use.
            ProtocolError: what answers does not speak the protocol; the text says what it looks like.
        """
        check_flag("start", start)
        return Made(_open(self._options, start=start))

    def __repr__(self) -> str:
        return f"<ConnectionFactory {self._options.url.masked}>"


@unseen
@suggesting(CONNECTION_SYNONYMS, CONNECTION_DEFAULTS)
def connect(url: str, *, start: bool = True, **options: Unpack[ConnectionKeywords]) -> Made[Connection]:
    """Connect: ``await`` it, or ``async with``. It delivers unless ``start=False``.

    ``url``, the other options and the errors are ConnectionFactory's.
    """
    factory = ConnectionFactory(url, **options)
    del url, options  # see `unseen`
    return factory.create_connection(start=start)


async def _open(options: ConnectionOptions, *, start: bool) -> Connection:
    core = ConnectionCore(options)
    await core.open()
    connection = Connection(core)
    if start:
        await connection.start()
    return connection
