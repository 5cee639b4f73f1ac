"""An observer whose spans and numbers a test can look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, Metric, ScopeMetrics
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext

import redelivery
from redelivery.events import Observer


class Collected:
    """What an observer has made, until now."""

    def __init__(self, also: Observer | None = None) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self._reader = InMemoryMetricReader()
        meters = MeterProvider(metric_readers=[self._reader])
        self.observer = redelivery.otel.observer(tracer_provider=self.provider, meter_provider=meters, also=also)
        self.tracer = self.provider.get_tracer("the application")

    @property
    def spans(self) -> list[ReadableSpan]:
        """Those that have ended, in the order in which they began."""
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def span(self, name: str) -> ReadableSpan:
        """The only one of that name."""
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def metrics(self) -> list[Metric]:
        """All of them."""
        return [metric for scope in self._scopes() for metric in scope.metrics]

    def schemas(self) -> set[str | None]:
        """Of the meters."""
        return {scope.schema_url for scope in self._scopes()}

    def _scopes(self) -> list[ScopeMetrics]:
        data = self._reader.get_metrics_data()
        return [scope for resource in (data.resource_metrics if data else ()) for scope in resource.scope_metrics]

    def numbers(self, name: str) -> list[tuple[Mapping[str, Any], Any]]:
        """The points of a metric: attributes, and a counter's value or how many durations a histogram has."""
        return [
            (dict(point.attributes or {}), getattr(point, "count", getattr(point, "value", None)))
            for metric in self.metrics()
            if metric.name == name
            for point in metric.data.data_points
        ]


def context(span: ReadableSpan) -> SpanContext:
    found = span.get_span_context()
    assert found is not None, "it has ended"
    return found


def linked(span: ReadableSpan) -> list[int]:
    """The ids of the spans that it links to."""
    return [link.context.span_id for link in span.links]


def parent(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id
