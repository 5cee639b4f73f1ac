"""An application's numbers, and a page of them for Prometheus, in its text format 0.0.4, which needs no library.

https://prometheus.io/docs/instrumenting/exposition_formats. What a listener's number is of, its labels say:
``destination`` (``queue://orders``) and ``listener``, the name of the handler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from redelivery.client.connection.looking import blocked_sends
from redelivery.client.containers.base import BaseContainer
from redelivery.client.ledger import Ledger
from redelivery.client.ledger.state import CONDEMNED

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
Labels = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class RunningApp:
    """The part of an application that there is while it runs; of tasks, ``connection`` and containers are theirs."""

    connection: Any = None
    containers: Sequence[BaseContainer] = field(default=())

    @property
    def healthy(self) -> bool:
        """True: it runs, and each of its containers is healthy."""
        return bool(self.containers) and all(each.healthy for each in self.containers)

    @property
    def connected(self) -> bool:
        """True: it has a connection that is there."""
        return self.connection is not None and self.connection.connected

    @property
    def blocked_sends(self) -> int:
        """The messages that the broker does not take now: they wait for its credit, or for room in the socket."""
        return 0 if self.connection is None else blocked_sends(self.connection._core.sessions)


class Family(NamedTuple):
    """A metric; ``kind``: ``gauge`` or ``counter``."""

    name: str
    kind: str
    help: str
    samples: Mapping[Labels, int]


def page(app: RunningApp, accept: str = "") -> tuple[bytes, str]:  # noqa: ARG001  # as `library_page`
    """The page of metrics and its content type, without a library."""
    return "".join(map(_family, families((app,)))).encode("utf-8", "backslashreplace"), CONTENT_TYPE


def families(apps: Sequence[RunningApp]) -> Iterator[Family]:
    """The metrics of these together: first of their connections, then of their containers."""
    for name, kind, help, total in _CONNECTIONS:
        yield Family(name, kind, help, {(): total(apps)})
    containers = {each: None for app in apps for each in app.containers}
    for name, kind, help, value in _LISTENERS:
        found: dict[Labels, int] = {}
        for each in containers:  # of two with the same name the sum
            labels = (("destination", str(each._settings.destination)), ("listener", each._settings.name))
            found[labels] = found.get(labels, 0) + value(each)
        yield Family(name, kind, help, found)


def _pending(container: BaseContainer) -> int:
    """The messages that wait for their redelivery here. A guess from another thread, as all of these."""
    return sum(_waiting(lane.session._core.ledger) for lane in tuple(container._lanes))


def _waiting(ledger: Ledger) -> int:
    ready = [each for consumer in tuple(ledger.consumers) for each in tuple(consumer.ready)]
    failed = sum(1 for each in ready if each.redeliveries and each.state is not CONDEMNED)
    return failed + ledger.delayed_count


_CONNECTIONS: Final[tuple[tuple[str, str, str, Callable[[Sequence[RunningApp]], int]], ...]] = (
    (
        "redelivery_connected",
        "gauge",
        "1: the connection to the broker is there",
        lambda apps: int(all(each.connected for each in apps)),
    ),
    (
        "redelivery_healthy",
        "gauge",
        "1: all listeners consume, and none is in an outage",
        lambda apps: int(all(each.healthy for each in apps)),
    ),
    (
        "redelivery_blocked_sends",
        "gauge",
        "Messages that the broker does not take now",
        lambda apps: sum(each.blocked_sends for each in apps),
    ),
    (
        "redelivery_connections_total",
        "counter",
        "Connections that there have been",
        lambda apps: sum(0 if each.connection is None else each.connection.epoch for each in apps),
    ),
)
_LISTENERS: Final = (
    ("redelivery_listener_healthy", "gauge", "1: it consumes, and is in no outage", lambda each: int(each.healthy)),
    ("redelivery_workers", "gauge", "Sessions that consume", lambda each: each.counters.workers),
    ("redelivery_in_flight", "gauge", "Messages that the handler has", lambda each: each.counters.in_flight),
    (
        "redelivery_redeliveries_pending",
        "gauge",
        "Messages that failed, and wait here until they are delivered again",
        _pending,
    ),
    (
        "redelivery_dead_letters_stuck",
        "gauge",
        "Messages that cannot be dead-lettered now",
        lambda each: each._connection.stuck(each._settings.destination),
    ),
    (
        "redelivery_deliveries_total",
        "counter",
        "Messages given to the handler, redeliveries too",
        lambda each: each.counters.received,
    ),
    ("redelivery_succeeded_total", "counter", "Messages consumed", lambda each: each.counters.succeeded),
    (
        "redelivery_failures_total",
        "counter",
        "Deliveries that failed",
        lambda each: each.counters.failed + each.counters.given_up,
    ),
    (
        "redelivery_redeliveries_total",
        "counter",
        "Failures after which a message is delivered again",
        lambda each: each.counters.redelivered,
    ),
    (
        "redelivery_dead_letters_total",
        "counter",
        "Messages that became dead letters",
        lambda each: each.counters.dead_lettered,
    ),
    ("redelivery_dropped_total", "counter", "Messages that the handler dropped", lambda each: each.counters.dropped),
)


def _family(family: Family) -> str:
    lines = [f"# HELP {family.name} {family.help}", f"# TYPE {family.name} {family.kind}"]
    lines += [f"{family.name}{_labels(labels)} {value}" for labels, value in family.samples.items()]
    return "\n".join(lines) + "\n"


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    said = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{said}}}" if said else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
