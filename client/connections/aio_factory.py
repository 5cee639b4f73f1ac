"""Makes connections."""

from __future__ import annotations

from typing import Unpack

from redelivery.client.aio.made import Made
from redelivery.client.connections.aio import Connection
from redelivery.client.connections.aio_core import ConnectionCore
from redelivery.client.options import (
    CONNECTION_DEFAULTS,
    CONNECTION_SYNONYMS,
    ConnectionKeywords,
    ConnectionOptions,
    check_flag,
    merge_options,
)
from redelivery.model.errors import unseen
from redelivery.model.suggestions import suggesting


class ConnectionFactory:
    """Options checked once, for many connections; immutable. As `redelivery.ConnectionFactory`."""

    @unseen
    @suggesting(CONNECTION_SYNONYMS, CONNECTION_DEFAULTS)
    def __init__(self, url: str, **options: Unpack[ConnectionKeywords]) -> None:
        self._options = merge_options(url, **options)

    def create_connection(self, *, start: bool = True) -> Made[Connection]:
        """A new connection: ``await`` it, or ``async with``; started unless ``start=False``.

        Raises, when awaited:
            ConnectError, SecurityError, InvalidClientIDError, ProtocolError: as
                `redelivery.ConnectionFactory.create_connection`.
        """
        check_flag("start", start)
        return Made(_open(self._options, start=start))

    def __repr__(self) -> str:
        return f"<ConnectionFactory {self._options.url.masked}>"


@unseen
@suggesting(CONNECTION_SYNONYMS, CONNECTION_DEFAULTS)
def connect(url: str, *, start: bool = True, **options: Unpack[ConnectionKeywords]) -> Made[Connection]:
    """Connect: ``await`` it, or ``async with``. The options and errors are `redelivery.connect`'s."""
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
