"""A unit of work: sends that wait for the commit, and acknowledgements that are undone by a rollback."""

from __future__ import annotations

from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Dispatch


class Transaction:
    """The work that one client has enlisted since its begin; ``ended`` after a commit or rollback."""

    __slots__ = ("acknowledged", "ended", "sends")

    def __init__(self) -> None:
        self.sends: list[StoredMessage] = []
        self.acknowledged: list[Dispatch] = []
        self.ended = False

    def __bool__(self) -> bool:
        """True: something is enlisted."""
        return bool(self.sends or self.acknowledged)
