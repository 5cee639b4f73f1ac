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

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
