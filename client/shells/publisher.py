"""A publisher, but for its calls that wait."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from redelivery.model.errors import IllegalStateError


class BasePublisher(ABC):
    """Of both shells."""

    def __init__(self, check_open: Callable[[str], None], what: str) -> None:
        self._check_connection = check_open
        self._what = what
        self._closed = False

    @property
    def closed(self) -> bool:
        """True: it was closed."""
        return self._closed

    def check_open(self, action: str) -> None:
        """Raise where it is closed, or its connection closed or lost; the text names ``action``.

        Raises:
            IllegalStateError: one of them was closed.
            ConnectionLostError: the connection was lost.
        """
        self._check_connection(action)
        if self._closed:
            raise IllegalStateError(f"{action}: the publisher was closed by close()")

    def __repr__(self) -> str:
        return f"<Publisher of {self._what}{' closed' if self._closed else f', {self._sessions_now()} sessions'}>"

    @abstractmethod
    def _sessions_now(self) -> int:
        """The number of its sessions."""
