"""Gives Prometheus what `jms` streams say in their queries' progress: both receivers, each query of the session.

    from redelivery.spark.listener import PrometheusListener

    spark.streams.addListener(PrometheusListener())
    prometheus_client.start_http_server(9108)    # in the driver

docs/spark/alerts.yml has rules for these names.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pyspark.sql.streaming.listener import StreamingQueryListener

from redelivery.model.errors import ConfigError
from redelivery.transports.wire.clock import epoch_ms

__all__ = ["COUNTERS", "GAUGES", "PrometheusListener"]

_PREFIX: Final = "redelivery_spark_"
COUNTERS: Final = {  # since the query started; by the key in the progress
    "received": ("received", "Messages received."),
    "duplicates": ("duplicates", "Messages redelivered after a commit whose answer was lost, and dropped."),
    "deadLetters": ("dead_letters", "Messages that were dead-lettered."),
    "dropped": ("dropped", "Messages dropped by badMessages=drop."),
    "inDoubt": ("in_doubt", "Commits whose outcome is not known."),
    "lostSegments": ("lost_segments", "Segments left out because they were gone or damaged."),
    "connections": ("connections", "Connections made."),
}
GAUGES: Final = {
    "pendingRows": ("pending_rows", "Rows that are durable and not yet in a batch."),
    "pendingBytes": ("pending_bytes", "Their bytes."),
    "uncommittedRows": ("uncommitted_rows", "Rows that are durable and not yet in a batch that is done."),
    "uncommittedBytes": ("uncommitted_bytes", "Their bytes."),
    "queueDepth": ("queue_depth", "Messages on the queue at the broker."),
}
_LABELS: Final = ("query", "source")
_RUNNING: Final = ("running", "1 while the query runs, 0 after it has failed.")
_PROGRESS: Final = ("last_progress_timestamp_seconds", "When the query said last what it does.")


class PrometheusListener(StreamingQueryListener):
    """A collector of ``prometheus_client``, that is a listener of Spark's.

    A query is named by its `queryName`, or its id. One that was stopped is forgotten, one that has failed is kept with
    ``redelivery_spark_running`` 0 until it is started again under its name.

    Args:
        registry: a ``CollectorRegistry``; None: the default one.

    Raises:
        ConfigError: prometheus-client is not installed.
    """

    def __init__(self, registry: Any = None) -> None:
        try:
            from prometheus_client import REGISTRY, core
        except ImportError as error:
            raise ConfigError("PrometheusListener needs prometheus-client: pip install prometheus-client") from error
        self._core = core
        self._lock = threading.Lock()
        self._names: dict[str, str] = {}  # by run, while it runs
        self._found: dict[str, dict[str, Mapping[str, Any]]] = {}  # by query, by source
        self._last: dict[str, float] = {}
        (registry or REGISTRY).register(self)

    def onQueryStarted(self, event: Any) -> None:
        """A query begins: its counters do so too."""
        with self._lock:
            name = self._names[str(event.runId)] = event.name or str(event.id)
            self._found[name] = {}
            self._last[name] = epoch_ms() / 1000

    def onQueryProgress(self, event: Any) -> None:
        """Keep what its sources say that are of `jms`."""
        progress = event.progress
        sources = {str(number): _said(each.latestOffset) for number, each in enumerate(progress.sources)}
        with self._lock:
            name = self._names.setdefault(str(progress.runId), progress.name or str(progress.id))
            self._found[name] = {number: said for number, said in sources.items() if said}
            self._last[name] = epoch_ms() / 1000

    def onQueryIdle(self, event: Any) -> None:
        """Note that the query lives; it has nothing to do."""
        with self._lock:
            name = self._names.get(str(event.runId))
            if name is not None:
                self._last[name] = epoch_ms() / 1000

    def onQueryTerminated(self, event: Any) -> None:
        """Forget it, unless it has failed."""
        with self._lock:
            name = self._names.pop(str(event.runId), None)
            if name is not None and not event.exception:
                self._found.pop(name, None)
                self._last.pop(name, None)

    def describe(self) -> list[Any]:
        """Nothing: the metrics are known when there is a query."""
        return []

    def collect(self) -> Iterator[Any]:
        """As prometheus_client asks."""
        with self._lock:
            found = {name: dict(sources) for name, sources in self._found.items()}
            last, running = dict(self._last), set(self._names.values())
        gauge = self._core.GaugeMetricFamily
        for table, kind in ((COUNTERS, self._core.CounterMetricFamily), (GAUGES, gauge)):
            for key, (metric, text) in table.items():
                family = kind(_PREFIX + metric, text, labels=_LABELS)
                for name, sources in found.items():
                    for number, said in sources.items():
                        if key in said:
                            family.add_metric((name, number), said[key])
                yield family
        alive, moments = (gauge(_PREFIX + metric, text, labels=("query",)) for metric, text in (_RUNNING, _PROGRESS))
        for name, moment in last.items():
            alive.add_metric((name,), float(name in running))
            moments.add_metric((name,), moment)
        yield from (alive, moments)


def _said(offset: Any) -> Mapping[str, Any]:
    """The numbers of a source of ours; none of another one."""
    try:
        found = json.loads(offset) if isinstance(offset, str) else offset
    except ValueError:
        return {}
    ours = isinstance(found, dict) and {"v", "wal"} <= found.keys()
    return {key: found[key] for key in (*COUNTERS, *GAUGES) if key in found} if ours else {}
