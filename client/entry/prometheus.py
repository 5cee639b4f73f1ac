"""The numbers of connections and listeners for prometheus-client: `redelivery.prometheus` has it for applications."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Sequence
from time import perf_counter
from typing import Any, Final, Self

from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from redelivery.client.containers.base import BaseContainer
from redelivery.client.entry.app import App
from redelivery.client.entry.library import library_metrics
from redelivery.client.entry.metrics import RunningApp, families
from redelivery.client.shells.connection import BaseConnection
from redelivery.model.destinations import Destination, TemporaryQueue, TemporaryTopic
from redelivery.model.errors import ConfigError
from redelivery.model.events import (
    Acknowledged,
    ConnectionLost,
    ConsumerEnded,
    DeadLettered,
    Delivered,
    Discarded,
    Event,
    Expired,
    GuardedObserver,
    InDoubt,
    Observer,
    Reconnected,
    ReconnectFailed,
    RolledBack,
    Sent,
)
from redelivery.model.messages import Message
from redelivery.model.tracing import Server

_MOST: Final = 500  # values of one label; what comes after them is "other"
_BY_DESTINATION: Final = ("destination",)
_BY_CAUSE: Final = ("destination", "cause")
_COUNTED: Final[dict[type[Event], tuple[str, str, tuple[str, ...]]]] = {
    Sent: ("sent", "Messages sent", _BY_DESTINATION),
    Delivered: ("received", "Messages given to the application, redeliveries too", _BY_DESTINATION),
    Acknowledged: ("acknowledged", "Messages consumed", _BY_DESTINATION),
    RolledBack: ("redeliveries", "Failures after which a message is delivered again", _BY_CAUSE),
    DeadLettered: ("dead_letters", "Messages that became dead letters", _BY_CAUSE),
    Discarded: ("discards", "Messages that were dropped instead of being dead-lettered", _BY_CAUSE),
    Expired: ("expirations", "Messages that expired before they were delivered", _BY_DESTINATION),
    InDoubt: ("in_doubt", "Commits and sends whose answer did not come", ()),
    ConsumerEnded: ("consumers_ended", "Consumers that the broker ended", _BY_DESTINATION),
    ConnectionLost: ("connections_lost", "Connections that were lost", ()),
    Reconnected: ("reconnects", "Connections that came back", ()),
    ReconnectFailed: ("reconnects_failed", "Attempts to reconnect in which no broker answered", ()),
}
_COUNTED_HERE: Final = {f"redelivery_{name}_total" for name, _, _ in _COUNTED.values()}


class PrometheusObserver(Collector):
    """Counts what connections notify it of, and shows their state when Prometheus asks.

    One for a process: ``observer=`` of `connect`, `ConnectionFactory` or `App`, of any number of them, of threads and
    of asyncio. `watch` adds the state of connections and listeners, which is looked at when Prometheus asks. A label
    has 500 values at most, after which it is ``other``; a temporary destination is ``temporary``, and a cause the name
    of an exception's class.

    Args:
        registry: prometheus-client's; its default is the one that ``start_http_server`` serves.
        also: another observer, which is given each event too.

    Raises:
        ConfigError: the registry has one already, or ``also`` cannot be called with an event.
    """

    def __init__(self, *, registry: CollectorRegistry = REGISTRY, also: Observer | None = None) -> None:
        self._also = None if also is None else GuardedObserver(also)
        self._registry = registry
        self._names = _LabelValues()
        self._watched: list[weakref.ref[Any]] = []
        self._made: list[Collector] = []
        try:
            self._counters = {kind: self._counter(*what) for kind, what in _COUNTED.items()}
            self._seconds = Histogram(
                "redelivery_handler_seconds",
                "The time that a listener or handler took",
                _BY_DESTINATION,
                registry=registry,
            )
            self._made.append(self._seconds)
            registry.register(self)
        except ValueError as error:
            self._forget()
            raise ConfigError(
                "this registry has a PrometheusObserver already: give that one to each connection, which it can serve"
            ) from error

    def __call__(self, event: Event) -> None:
        """Count it."""
        found = self._counters.get(type(event))
        if found is not None:
            self._count(found, event)
        if self._also is not None:
            self._also.notify(event)

    def watch(self, *watched: Any) -> Self:
        """Show the state of these, as long as they are there.

        Args:
            watched: connections, whose containers are shown too; single containers; an `App`, also before it runs.

        Raises:
            ConfigError: one of them is something else.
        """
        for each in watched:
            if not isinstance(each, App | BaseConnection | BaseContainer):
                raise ConfigError(f"watch({each!r}): give a Connection, a ListenerContainer or an App")
        self._watched += [weakref.ref(each) for each in watched]
        return self

    def tracer(self, session: int, server: Server) -> _Timer:  # noqa: ARG002  # see `model.tracing.Tracing`
        """For the library: see `model.tracing`."""
        return _Timer(self._seconds, self._names)

    def collect(self) -> Iterator[Metric]:
        """For prometheus-client: the state of what is watched."""
        self._watched = [each for each in self._watched if each() is not None]
        apps = _running([each for each in (reference() for reference in self._watched) if each is not None])
        found = families(apps) if apps else ()
        return library_metrics(each for each in found if each.name not in _COUNTED_HERE)

    def describe(self) -> Sequence[Metric]:
        """For prometheus-client: nothing is known before somebody watches."""
        return ()

    def close(self) -> None:
        """Take its metrics out of the registry, which may then have another one; it goes on counting for nobody."""
        self._forget()
        self._registry.unregister(self)

    def _counter(self, name: str, help: str, labels: tuple[str, ...]) -> Counter:
        made = Counter(f"redelivery_{name}", help, labels, registry=self._registry)
        self._made.append(made)
        return made

    def _forget(self) -> None:
        while self._made:
            self._registry.unregister(self._made.pop())

    def _count(self, counter: Counter, event: Any) -> None:
        names = counter._labelnames
        if not names:
            counter.inc()
            return
        destination = event.message.destination if isinstance(event, Sent) else event.destination
        labels = [self._names.destination(destination)]
        if "cause" in names:
            labels.append(self._names.bounded("cause", _cause(event.cause)))
        counter.labels(*labels).inc()


class _LabelValues:
    """Values of labels, of which there are only so many."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, set[str]] = {"destination": set(), "cause": set()}

    def destination(self, found: Destination | None) -> str:
        if isinstance(found, TemporaryQueue | TemporaryTopic):
            return "temporary"
        return self.bounded("destination", "unknown" if found is None else str(found))

    def bounded(self, label: str, value: str) -> str:
        known = self._known[label]
        if value in known:
            return value
        with self._lock:
            if len(known) >= _MOST:
                return "other"
            known.add(value)
        return value


class _Timer:
    """Measures handlers; see `model.tracing.Tracer`."""

    def __init__(self, seconds: Histogram, names: _LabelValues) -> None:
        self._seconds = seconds
        self._names = names

    def sending(self, message: Message) -> _TimedStep:  # noqa: ARG002  # as the protocol has it, and below
        return _NOTHING

    def received(self, delivered: Delivered, began: int, *, held: bool) -> None:
        pass

    def processing(self, delivered: Delivered) -> _TimedStep:
        return _TimedStep(self._seconds.labels(self._names.destination(delivered.destination)))

    def settling(self, action: str, delivered: Sequence[Delivered], sent: int) -> _TimedStep:  # noqa: ARG002
        return _NOTHING


class _TimedStep:
    def __init__(self, seconds: Histogram | None) -> None:
        self._seconds = seconds
        self._began = perf_counter()

    def ended(self, error: BaseException | None) -> None:  # noqa: ARG002
        if self._seconds is not None:
            self._seconds.observe(perf_counter() - self._began)

    def left(self) -> None:
        pass


_NOTHING: Final = _TimedStep(None)


class _RunningConnection(RunningApp):
    """A connection that nobody has made an application of: its health is its own, also where it has no container."""

    @property
    def healthy(self) -> bool:
        return bool(self.connection.health().healthy)


def _running(watched: Sequence[App | BaseConnection | BaseContainer]) -> list[RunningApp]:
    """Of what is watched, each connection once."""
    apps: dict[int, RunningApp] = {}
    for each in watched:
        if isinstance(each, App):
            app = RunningApp(each._running.connection, each._running.containers)
        elif isinstance(each, BaseContainer):
            app = RunningApp(each._connection, (each,))
        else:
            started = [reference() for reference in each._core.containers.keyrefs()]
            app = _RunningConnection(each, [found for found in started if isinstance(found, BaseContainer)])
        known = apps.setdefault(id(app.connection or each), app)
        known.containers = list(dict.fromkeys((*known.containers, *app.containers)))
    return list(apps.values())


def _cause(cause: BaseException | None) -> str:
    return "unknown" if cause is None else type(cause).__name__
