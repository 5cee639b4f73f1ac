"""Metrics as prometheus-client has them. This module imports it, and so is imported only where it is installed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from redelivery.client.entry.metrics import Family, RunningApp, families


def library_metrics(found: Iterable[Family]) -> Iterator[Metric]:
    """The same for the library."""
    for name, kind, help, samples in found:
        make = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
        family = make(name, help, labels=[label for label, _ in next(iter(samples), ())])
        for labels, value in samples.items():
            family.add_metric([text for _, text in labels], value)
        yield family


def library_page(app: RunningApp, accept: str) -> tuple[bytes, str]:
    """The page of metrics and its content type: the one that is accepted, which is OpenMetrics or Prometheus' text."""
    registry = CollectorRegistry()
    registry.register(_Metrics(app))
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Metrics(Collector):
    def __init__(self, app: RunningApp) -> None:
        self._app = app

    def collect(self) -> Iterator[Metric]:
        return library_metrics(families((self._app,)))
