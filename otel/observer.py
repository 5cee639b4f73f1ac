"""The observer that a connection is given: events become numbers, work becomes spans."""

from __future__ import annotations

from weakref import WeakValueDictionary

from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.propagate import get_global_textmap
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import TracerProvider, get_tracer

from redelivery.model.events import (
    Acknowledged,
    DeadLettered,
    Delivered,
    Discarded,
    Event,
    GuardedObserver,
    MessageEvent,
    Observer,
)
from redelivery.model.tracing import Server
from redelivery.model.version import VERSION
from redelivery.otel.metrics import Instruments
from redelivery.otel.names import RECEIVING, of_number
from redelivery.otel.spans import FirstDeliveries, SessionSpans

_CONVENTIONS = "https://opentelemetry.io/schemas/1.44.0"
_OVER = (Acknowledged, DeadLettered, Discarded)


class TelemetryObserver:
    """For ``observer=`` of any number of connections. Made by `observer`."""

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
        propagator: TextMapPropagator | None,
        also: Observer | None,
    ) -> None:
        self._maker = get_tracer("redelivery", VERSION, tracer_provider, schema_url=_CONVENTIONS)
        self._instruments = Instruments(get_meter("redelivery", VERSION, meter_provider, schema_url=_CONVENTIONS))
        self._propagator = propagator
        self._also = None if also is None else GuardedObserver(also)
        self._firsts = FirstDeliveries()
        self._sessions: WeakValueDictionary[int, SessionSpans] = WeakValueDictionary()

    def __call__(self, event: Event) -> None:
        """Count it."""
        session = self._sessions.get(getattr(event, "session", 0))
        known = {} if session is None else session.attributes
        if isinstance(event, Delivered):
            number = of_number(RECEIVING, event.destination, event.subscription)
            self._instruments.consumed.add(1, {**known, **number})
        else:
            self._instruments.count(event, known)
        if isinstance(event, MessageEvent) and isinstance(event, _OVER):
            self._firsts.forget(event)
        if self._also is not None:
            self._also.notify(event)

    def tracer(self, session: int, server: Server) -> SessionSpans:
        """For the library: see `model.tracing`."""
        found = SessionSpans(
            server, self._maker, self._instruments, self._propagator or get_global_textmap(), self._firsts
        )
        self._sessions[session] = found
        return found


def observer(
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    propagator: TextMapPropagator | None = None,
    also: Observer | None = None,
) -> TelemetryObserver:
    """An observer for ``connect(url, observer=…)``, which makes spans and counts.

    Spans: ``send``, ``receive``, ``process`` (around a listener or a container's handler, in which it is the current
    one), and ``commit``, ``rollback``, ``recover`` and ``acknowledge``. What AUTO and DUPS_OK acknowledge is a part of
    ``receive``. A message carries the context of its send in its properties. A ``process`` span is a child of the
    span that is current where the handler is called, or else of the send, and always linked to it.

    Args:
        tracer_provider, meter_provider, propagator: instead of the global ones.
        also: another observer, which is given each event too.

    Raises:
        ConfigError: ``also`` cannot be called with an event.
    """
    return TelemetryObserver(tracer_provider, meter_provider, propagator, also)
