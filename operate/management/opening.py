"""The management of a connection's broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from redelivery.client.entry.sync import Connection
from redelivery.operate.management.artemis import ArtemisManagement
from redelivery.operate.management.classic import ClassicManagement
from redelivery.operate.management.interface import Management
from redelivery.operate.management.rabbitmq import RabbitManagement

EXAMPLES: Final[Mapping[str, str]] = {
    "rabbitmq": "http://guest:guest@host:15672",
    "artemis": "http://user:password@host:8161",
    "activemq": "http://user:password@host:8161",
}
"""Dialects whose management is known here, and how its URL looks."""
INSTEAD: Final[Mapping[str, str]] = {
    "artemis": "connect by amqp://, which has a browser",
    "hornetq": "its JMX console shows them; replay, move and purge of a queue, or by --where, need no look",
}
"""What else to do, or what to do at the others."""


def management_of(connection: Connection) -> Management | None:
    """The management of ``management=`` of the connection; None: none, or of a broker whose management is not known
    here.

    Nothing is asked yet.
    """
    address = connection.management
    if address is None:
        return None
    match connection.dialect:
        case "rabbitmq":
            return RabbitManagement(address, connection.metadata)
        case "artemis":
            return ArtemisManagement(address)
        case "activemq":
            return ClassicManagement(address)
    return None


def lists_none(connection: Connection) -> str:
    """That this broker says of no queue that it is there, and what to do."""
    meta, dialect = connection.metadata, connection.dialect
    said = f"{meta.provider_name} lists no queues over {meta.protocol}: name them by --queue"
    if management_of(connection) is None and dialect in EXAMPLES:
        said += f", or name its management, --management {EXAMPLES[dialect]}"
    instead = INSTEAD.get(dialect)
    return said if instead is None else f"{said}, or {instead}"
