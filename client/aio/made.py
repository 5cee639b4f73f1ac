"""What is made with the broker's help: awaited, or entered by ``async with``, which closes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Coroutine, Generator
from types import TracebackType
from typing import Any, Generic, Self, TypeVar


class Closing(ABC):
    """An asynchronous context manager whose end is `close`, whatever happened inside."""

    @abstractmethod
    async def close(self) -> None:
        """End it; twice is harmless."""

    @abstractmethod
    def check_open(self, action: str) -> None:
        """Raise where it is closed, or its connection lost.

        Raises:
            IllegalStateError, ConnectionLostError: the text says when and why.
        """

    async def __aenter__(self) -> Self:
        self.check_open("async with")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


C = TypeVar("C", bound=Closing)


class Made(Awaitable[C], Generic[C]):
    """``await`` gives the object; ``async with`` gives it and closes it at the end of the block. To be used once."""

    def __init__(self, making: Coroutine[Any, Any, C]) -> None:
        self._making = making
        self._made: C | None = None

    def __await__(self) -> Generator[Any, Any, C]:
        return self._making.__await__()

    async def __aenter__(self) -> C:
        self._made = await self._making
        return self._made

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._made is not None:
            await self._made.close()
