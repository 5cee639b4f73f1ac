"""A unit of work: sends that wait for the commit, and acknowledgements that are undone by a rollback."""

from __future__ import annotations

from dataclasses import dataclass, field

from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Dispatch


@dataclass(slots=True, eq=False, repr=False)
class Transaction:
    """The work that one client has enlisted since its begin; ``ended`` after a commit or rollback."""

    sends: list[StoredMessage] = field(default_factory=list)
    acknowledged: list[Dispatch] = field(default_factory=list)
    ended: bool = False

    def __bool__(self) -> bool:
        """True: something is enlisted."""
        return bool(self.sends or self.acknowledged)
