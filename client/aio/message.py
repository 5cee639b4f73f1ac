"""A received message, whose acknowledging is awaited as every call that speaks to the broker."""

from __future__ import annotations

from typing import Protocol, cast

from redelivery.model import messages
from redelivery.model.errors import IllegalStateError


class Receipt(Protocol):
    """Who is asked when a received message is acknowledged."""

    async def acknowledge(self, message: messages.Message) -> None:
        """Acknowledge as the session's mode says."""


class Message(messages.Message):
    """`redelivery.Message` as asyncio's consumers hand it out."""

    __slots__ = ()

    async def acknowledge(self) -> None:  # type: ignore[override]  # a coroutine, as every call here that does I/O
        """As `redelivery.Message.acknowledge`."""
        if self._receipt is None:
            raise IllegalStateError("only a received message can be acknowledged")
        await cast(Receipt, self._receipt).acknowledge(self)
