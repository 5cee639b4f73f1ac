"""An application's one publisher: it is closed with the app's connection, and sends again when the app runs again."""

from __future__ import annotations

from typing import Any

from redelivery.client.aio.publisher import Publisher as AioPublisher
from redelivery.client.entry.metrics import RunningApp
from redelivery.client.sync.publisher import Publisher
from redelivery.model.errors import IllegalStateError


class _OfApp:
    """The app's connection, while it runs."""

    def __init__(self, running: RunningApp) -> None:
        self._running = running

    def check_open(self, action: str) -> None:
        """Raise where the app does not run, or its connection is closed or lost."""
        self._connection(action).check_open(action)

    def _connection(self, action: str) -> Any:
        connection = self._running.connection
        if connection is None:
            raise IllegalStateError(f"{action}: the app is not connected: its publisher sends while the app runs")
        return connection


class AppPublisher(_OfApp, Publisher):
    """`redelivery.Publisher` over the connection of an app. `close` leaves it open: the end of the app closes it."""

    def __init__(self, running: RunningApp, url: str, close_timeout: float) -> None:
        _OfApp.__init__(self, running)
        Publisher.__init__(self, lambda: self._connection("send").session(), self.check_open, url, close_timeout)

    def close(self) -> None:
        """Do nothing: other threads may be sending."""

    def forget(self) -> None:
        """The connection is closed, and its sessions with it."""
        with self._lock:
            self._lanes.clear()


class AioAppPublisher(_OfApp, AioPublisher):
    """The same, `redelivery.aio.Publisher`."""

    def __init__(self, running: RunningApp, url: str) -> None:
        _OfApp.__init__(self, running)
        AioPublisher.__init__(self, self._session, self.check_open, url)

    async def close(self) -> None:
        """Do nothing: other tasks may be sending."""

    def forget(self) -> None:
        """The connection is closed, and its sessions with it."""
        self._sessions.clear()
        self._free.clear()

    async def _session(self) -> Any:
        return await self._connection("send").session()
