"""Who has a transport; after a loss it may be another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from redelivery.transports.seam import Transport


class Wired(Protocol):
    """A session, or what stands for one: a driver reads its transport while a flow waits."""

    @property
    def transport(self) -> Transport:
        """The one that it has now."""


@dataclass(frozen=True, slots=True)
class Bare:
    """A transport alone, while it is opened or closed."""

    transport: Transport
