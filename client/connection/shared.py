"""What a connection and its sessions share, whatever connection to the broker it has."""

from __future__ import annotations

from dataclasses import dataclass

from redelivery.client.connection.lifecycle import ConnectionStage, Lifecycle
from redelivery.client.connection.temporaries import Temporaries
from redelivery.client.operations.dead_letters import DeadLetters
from redelivery.client.options import ConnectionOptions


@dataclass(frozen=True, slots=True)
class Shared:
    """Made with the connection, and never replaced."""

    options: ConnectionOptions
    life: Lifecycle[ConnectionStage]
    dead_letters: DeadLetters
    temporaries: Temporaries
