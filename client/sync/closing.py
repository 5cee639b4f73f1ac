"""Leaving the ``with`` block of anything that can be closed closes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Closing(ABC):
    """A context manager whose end is `close`, whatever happened inside."""

    @abstractmethod
    def close(self) -> None:
        """End it; twice is harmless."""

    @abstractmethod
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
