"""Awaits the making of what needs the broker's help, its end, and the acknowledging of a message."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Coroutine, Generator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, Protocol, Self, TypeVar, cast

from redelivery.model import messages
from redelivery.model.content.typed.variable import BodyT
from redelivery.model.errors import IllegalStateError


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

_UNAWAITED: Final = (
    "the call that makes this object is not awaited yet: write `await` before it, such as "
    "`consumer = await session.consumer('orders')`, or use it in `async with`"
)


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

    def __repr__(self) -> str:
        return "<not awaited yet>"

    if not TYPE_CHECKING:  # a type checker knows by itself that these are mistakes

        def __getattr__(self, name: str) -> NoReturn:
            raise AttributeError(f"{name}: {_UNAWAITED}", name=name, obj=self)

        def __enter__(self) -> NoReturn:
            raise TypeError(f"with: {_UNAWAITED}")

        def __exit__(self, *_: object) -> None:
            """Nothing: `with` looks for it before it enters."""

        def __aiter__(self) -> NoReturn:
            raise TypeError(f"async for: {_UNAWAITED}")


class AsyncReceipt(Protocol):
    """The session's part that acknowledges a received message."""

    async def acknowledge(self, message: messages.Message) -> None:
        """Acknowledge as the session's mode says."""


class Message(messages.Message[BodyT]):
    """`redelivery.Message` as asyncio's consumers hand it out."""

    __slots__ = ()

    async def acknowledge(self) -> None:  # type: ignore[override]  # a coroutine, as every call here that does I/O
        """As `redelivery.Message.acknowledge`; IllegalStateError of a message that was not received, too."""
        if self._receipt is None:
            raise IllegalStateError("only a received message can be acknowledged")
        await cast(AsyncReceipt, self._receipt).acknowledge(self)
