"""Carries the context of a send in the message's properties, by the application's propagator.

W3C's ``traceparent``, ``tracestate`` and ``baggage`` are names that JMS allows. Of others a ``-`` is written
``__dash__``, as OpenTelemetry's and Datadog's instrumentations of JMS do, so that both sides understand each other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry.context import Context
from opentelemetry.propagate import get_global_textmap
from opentelemetry.propagators.textmap import Getter, TextMapPropagator

from redelivery.model.errors import MessageFormatError
from redelivery.model.messages import Message, MessageSource

_DASH: Final = "__dash__"


class _Properties(Getter[Mapping[str, object]]):
    def get(self, carrier: Mapping[str, object], key: str) -> list[str] | None:
        value = carrier.get(key.replace("-", _DASH))
        return [value] if isinstance(value, str) else None

    def keys(self, carrier: Mapping[str, object]) -> list[str]:
        return [name.replace(_DASH, "-") for name in carrier]


_PROPERTIES: Final = _Properties()


def inject(message: Message, context: Context, propagator: TextMapPropagator) -> None:
    """Write the context into the properties of a message that is about to be sent, over one that is there."""
    carried: dict[str, str] = {}
    propagator.inject(carried, context)
    if carried:
        own = {name.replace("-", _DASH): value for name, value in carried.items()}
        message.properties = {**message.properties, **own}


def extract(source: Message | MessageSource, propagator: TextMapPropagator) -> Context:
    """The context in which it was sent; an empty one where it carries none, or cannot be read."""
    try:
        properties = source.properties if isinstance(source, Message) else source.properties()
    except MessageFormatError:
        return Context()
    return propagator.extract(properties, Context(), _PROPERTIES)


def context_of(message: Message) -> Context:
    """The context in which a message was sent, as its properties say; an empty one where they do not.

    For one's own span of a message that was received by `receive`:
    ``with tracer.start_as_current_span("bill", context=redelivery.otel.context_of(message)): …``
    """
    return extract(message, get_global_textmap())
