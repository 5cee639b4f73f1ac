"""A program that does nothing but listen: handlers by decorator, one connection, one line to run it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import astuple
from datetime import timedelta
from typing import Any, TypeVar, Unpack, cast

from redelivery.client.aio.made import Made
from redelivery.client.aio.publisher import Publisher as AioPublisher
from redelivery.client.arguments import CONNECTION_SYNONYMS
from redelivery.client.containers.base import BaseContainer
from redelivery.client.containers.lanes import AIO_MAKERS, MAKERS
from redelivery.client.containers.plan import Counters
from redelivery.client.containers.running import run_connected, run_connected_awaited
from redelivery.client.containers.settings import (
    CONTAINER_DEFAULTS,
    CONTAINER_SYNONYMS,
    ContainerKeywords,
    check_settings,
)
from redelivery.client.entry import aio_factory as aio
from redelivery.client.entry import sync_factory as sync
from redelivery.client.entry.metrics import RunningApp
from redelivery.client.entry.probes import probes
from redelivery.client.observing.log_lines import WORKERS
from redelivery.client.options import CONNECTION_DEFAULTS, ConnectionKeywords, merge_options
from redelivery.client.sync.publisher import Publisher
from redelivery.model.callables import COROUTINE, check_runs, deferred, name_of
from redelivery.model.destinations import Destination
from redelivery.model.errors import ConfigError, IllegalStateError, unseen
from redelivery.model.suggestions import suggesting
from redelivery.policies.reconnect import ReconnectPolicy
from redelivery.transports.failover import is_failover

log = logging.getLogger(WORKERS)
_F = TypeVar("_F", bound=Callable[..., Any])


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


class App:
    """Listeners of one connection, which ``app.run()`` or ``redelivery run module:app`` runs until it is asked to end.

    Args:
        url, options: as for `connect`, but for one default: the connection comes back when it is lost, and is tried
            until there is one, as if ``reconnect=ReconnectPolicy()`` were given. With ``reconnect=None`` a loss ends
            the app, as does a first attempt that fails. A ``failover:`` URL has a policy of its own; ``vm://`` none.

    Raises:
        ConfigError: an option is unknown, malformed or contradicts another; the text names it.
    """

    @unseen
    @suggesting(CONNECTION_SYNONYMS, CONNECTION_DEFAULTS)
    def __init__(self, url: str, **options: Unpack[ConnectionKeywords]) -> None:
        self._given = options  # to it alone: another broker has another default
        self._connects = _coming_back(url, options)
        self._options = merge_options(url, **self._connects)
        self._url = url
        self._listeners: list[tuple[Destination | str, Callable[..., Any], ContainerKeywords]] = []
        self._running = RunningApp()
        self._publishers: dict[bool, AppPublisher | AioAppPublisher] = {}  # by whether it is of tasks

    @suggesting(CONTAINER_SYNONYMS, CONTAINER_DEFAULTS)
    def listener(self, destination: Destination | str, **options: Unpack[ContainerKeywords]) -> Callable[[_F], _F]:
        """Decorator: a handler of the messages of ``destination``; what it takes is `Connection.listener_container`'s.

        Handlers are plain functions, each worker a thread; or all of them ``async def``, each worker a task.

        Raises:
            ConfigError, InvalidDestinationError: an option does not fit; or the app has handlers of the other kind.
        """

        if callable(destination):
            raise ConfigError("@app.listener needs the destination: write @app.listener('orders')")

        def add(handler: _F) -> _F:
            awaited = _awaited(handler)
            if any(_awaited(other) is not awaited for _, other, _ in self._listeners):
                raise ConfigError(
                    f"{name_of(handler)}: an app's handlers are plain functions or coroutine functions, not both: "
                    "make two apps, each in a process of its own"
                )
            check_settings(destination, handler, AIO_MAKERS if awaited else MAKERS, **options)
            if not awaited:
                check_runs(handler, f"listener({name_of(handler)})")
            self._listeners.append((destination, handler, options))
            return handler

        return add

    def connecting(self, url: str | None = None, **options: Unpack[ConnectionKeywords]) -> App:
        """The same listeners, on another broker or with other options; what is not given stays as it is.

        Raises:
            ConfigError: as App.
        """
        given: ConnectionKeywords = {**self._given, **options}
        other = App(self._url if url is None else url, **given)
        other._listeners, other._running, other._publishers = self._listeners, self._running, self._publishers
        return other

    @property
    def containers(self) -> tuple[BaseContainer, ...]:
        """The listener containers, one for each handler in the order of their decorators; none before it `run`s."""
        return tuple(self._running.containers)

    @property
    def healthy(self) -> bool:
        """True: it runs, and each of its containers is ``healthy``. Any thread may ask."""
        return self._running.healthy

    @property
    def counters(self) -> Counters:
        """The counts of all its containers together; see ``containers`` for each."""
        counts = [astuple(each.counters) for each in self.containers]
        return Counters(*map(sum, zip(*counts, strict=True)))

    def publisher(self) -> Any:
        """The app's one publisher, which sends over its connection while it runs, from any thread.

        A `Publisher`, to be asked for at any time, before it runs too. Of an app of coroutine functions it is an
        `aio.Publisher` for its event loop: write ``await app.publisher()``. It ends with the app; closing it, or
        leaving a ``with`` block, does nothing.

        Its ``send`` raises:
            IllegalStateError: the app does not run, or is not connected yet.
            JMSError: as `Publisher.send`.
        """
        if not self._listeners or not _awaited(self._listeners[0][1]):
            timeout = self._options.close_timeout
            return self._publishers.setdefault(False, AppPublisher(self._running, self._options.url.masked, timeout))
        made = self._publishers.setdefault(True, AioAppPublisher(self._running, self._options.url.masked))
        return Made(_itself(cast(AioAppPublisher, made)))

    def run(
        self,
        *,
        drain_timeout: float | timedelta = 30.0,
        health_port: int | None = None,
        health_bind: str = "0.0.0.0",  # noqa: S104  # an orchestrator asks from another address
    ) -> None:
        """Connect, consume until SIGTERM or SIGINT, finish what is handled within ``drain_timeout`` seconds, and close.

        Args:
            drain_timeout: seconds.
            health_port: where ``/live``, ``/ready`` and ``/metrics`` are served over HTTP meanwhile; 0: a free port.
            health_bind: the address on which they are.

        Raises:
            SystemExit: see `ListenerContainer.run`.
            ConfigError: it has no listener.
            JMSError: there is no broker; it refuses a session or a consumer; or the connection was lost for good.
        """
        if not self._listeners:
            raise ConfigError("the app has no listener: decorate a function with @app.listener('orders')")
        with nullcontext() if health_port is None else self._served(health_port, health_bind):
            try:
                self._run(drain_timeout)
            finally:
                self._running.connection, self._running.containers = None, ()
                for each in self._publishers.values():
                    each.forget()

    @contextmanager
    def _served(self, port: int, bind: str) -> Iterator[None]:
        with probes(self._running, port, bind) as taken:
            log.info("health and metrics at http://%s:%d/metrics", bind, taken)
            yield

    def _run(self, drain_timeout: float | timedelta) -> None:
        if _awaited(self._listeners[0][1]):
            asyncio.run(self._run_awaited(drain_timeout))
            return
        run_connected(lambda: sync.connect(self._url, **self._connects), self._containers, drain_timeout=drain_timeout)

    async def _run_awaited(self, drain_timeout: float | timedelta) -> None:
        async def connect() -> Any:
            return await aio.connect(self._url, **self._connects)

        await run_connected_awaited(connect, self._containers, drain_timeout=drain_timeout)

    def _containers(self, connection: Any) -> list[Any]:
        made = [
            connection.listener_container(destination, handler, **options)
            for destination, handler, options in self._listeners
        ]
        self._running.connection, self._running.containers = connection, made
        return made

    def __repr__(self) -> str:
        names = ", ".join(f"{destination}: {name_of(handler)}" for destination, handler, _ in self._listeners)
        return f"<App {self._options.url.masked} {{{names}}}>"


async def _itself(publisher: AioAppPublisher) -> AioAppPublisher:
    return publisher


def _coming_back(url: str, options: ConnectionKeywords) -> ConnectionKeywords:
    """The options, with a policy by which its connection comes back, unless they or the URL say how, or it cannot."""
    if "reconnect" in options or is_failover(url) or str(url).partition(":")[0].lower() == "vm":
        return options
    return {**options, "reconnect": ReconnectPolicy()}


def _awaited(handler: Callable[..., Any]) -> bool:
    return deferred(handler) == COROUTINE
