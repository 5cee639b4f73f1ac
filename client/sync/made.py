"""The parts of what a thread gets from the shell: what closes itself, and messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self

from redelivery.model.messages import Message, Receipt

__all__ = ["Closing", "Message", "Receipt"]


class Closing(ABC):
    """Leaving its ``with`` block closes it, whatever happened inside."""

    @abstractmethod
    def close(self) -> None:
        """End it; twice is harmless."""

    @abstractmethod
    def check_open(self, action: str) -> None:
        """Raise where it is closed, or its connection lost.

        Raises:
            IllegalStateError, ConnectionLostError: the text says when and why.
        """

    def __enter__(self) -> Self:
        self.check_open("with")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
