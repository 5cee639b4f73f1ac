"""One session's spans and durations: each a step that begins in the caller's context, and ends with its outcome."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from contextvars import Token
from time import time_ns
from typing import Final

from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.metrics import Histogram
from opentelemetry.propagators.textmap import TextMapPropagator
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace import Tracer as SpanMaker

from redelivery.model.destinations import Destination
from redelivery.model.events import Delivered, MessageEvent
from redelivery.model.messages import Message
from redelivery.model.tracing import Server
from redelivery.otel import names
from redelivery.otel.metrics import Instruments
from redelivery.otel.names import Attributes
from redelivery.otel.propagation import extract, inject

_REMEMBERED: Final = 10_000  # messages
_SECOND: Final = 1_000_000_000  # nanoseconds


class FirstDeliveries:
    """First deliveries by message id: of this process, neither consumed nor dead letters yet, the latest ones."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spans: OrderedDict[str, SpanContext] = OrderedDict()

    def note(self, event: MessageEvent, span: SpanContext) -> None:
        """Remember that a message is delivered in this span, for the first time."""
        identifier = event.message_id
        if identifier is None or not span.is_valid:
            return
        with self._lock:
            self._spans[identifier] = span
            if len(self._spans) > _REMEMBERED:
                self._spans.popitem(last=False)

    def of(self, event: MessageEvent) -> SpanContext | None:
        """The span of its first delivery; None where that was elsewhere, or is forgotten."""
        identifier = event.message_id
        return None if identifier is None else self._spans.get(identifier)

    def forget(self, event: MessageEvent) -> None:
        """Forget a message that is not delivered again."""
        if self._spans:
            identifier = event.message_id
            if identifier is not None:
                self._spans.pop(identifier, None)


class SpanStep:
    """A span that has begun, and the number that its duration is added to."""

    def __init__(self, span: Span, began: int, duration: Histogram, attributes: Attributes) -> None:
        self._span = span
        self._began = began
        self._duration = duration
        self._attributes = attributes

    def ended(self, error: BaseException | None) -> None:
        """See `model.tracing.Step`."""
        now = time_ns()
        if error is not None:
            kind = names.error_type(error)
            self._attributes[names.ERROR] = kind
            self._span.set_attribute(names.ERROR, kind)
            self._span.record_exception(error)
            self._span.set_status(Status(StatusCode.ERROR, str(error)))
        self._finish()
        self._span.end(now)
        self._duration.record((now - self._began) / _SECOND, self._attributes)

    def _finish(self) -> None:
        """Add what is known at the end only."""


class SendStep(SpanStep):
    """A send, which is counted, and whose message has an id when it is sent."""

    def __init__(
        self, span: Span, began: int, instruments: Instruments, attributes: Attributes, message: Message
    ) -> None:
        super().__init__(span, began, instruments.operation, {**attributes, **names.of_operation(names.SENDING)})
        self._number = attributes
        self._sent = instruments.sent
        self._message = message

    def _finish(self) -> None:
        error = self._attributes.get(names.ERROR)
        self._sent.add(1, self._number if error is None else {**self._number, names.ERROR: error})
        if self._message.message_id is not None:
            self._span.set_attribute(names.MESSAGE_ID, self._message.message_id)


class ProcessStep(SpanStep):
    """Work on a message, whose context is the current one until it is left."""

    def __init__(self, span: Span, began: int, duration: Histogram, attributes: Attributes, context: Context) -> None:
        super().__init__(span, began, duration, attributes)
        self._token: Token[Context] = attach(set_span_in_context(span, context))

    def left(self) -> None:
        """See `model.tracing.Work`."""
        detach(self._token)


class SessionSpans:
    """See `model.tracing.Tracer`."""

    def __init__(
        self,
        server: Server,
        maker: SpanMaker,
        instruments: Instruments,
        propagator: TextMapPropagator,
        firsts: FirstDeliveries,
    ) -> None:
        self.attributes: Attributes = names.of_server(server)
        self._own = dict(self.attributes)
        if server.client_id is not None:
            self._own[names.CLIENT] = server.client_id
        self._maker = maker
        self._instruments = instruments
        self._propagator = propagator
        self._firsts = firsts

    def sending(self, message: Message) -> SendStep:
        """A span of kind PRODUCER, whose context the message carries; linked to the one that it carried before."""
        began, destination = time_ns(), message.destination
        attributes = {**self._own, **names.of_operation(names.SENDING), **names.of_destination(destination)}
        if isinstance(message.correlation_id, str):
            attributes[names.CORRELATED] = message.correlation_id
        before = extract(message, self._propagator) if message.properties else Context()
        span = self._maker.start_span(
            names.span_name(names.SENDING, destination),
            kind=SpanKind.PRODUCER,
            attributes=attributes,
            links=_links(before),
            start_time=began,
        )
        inject(message, set_span_in_context(span), self._propagator)
        return SendStep(span, began, self._instruments, self._number(names.SENDING, destination), message)

    def received(self, delivered: Delivered, began: int, *, held: bool) -> None:
        """A span of kind CLIENT, linked to the send, and that of a redelivery to the first delivery."""
        sent_in = extract(delivered.source, self._propagator)
        span = self._consuming(delivered, names.RECEIVING, SpanKind.CLIENT, sent_in, None, began, remembers=held)
        numbers = self._number(names.RECEIVING, delivered.destination, delivered.subscription)
        numbers |= names.of_operation(names.RECEIVING)
        SpanStep(span, began, self._instruments.operation, numbers).ended(None)

    def processing(self, delivered: Delivered) -> ProcessStep:
        """A span of kind CONSUMER: a child of what goes on here, or else of the send; linked as for `received`."""
        began, context, sent_in = time_ns(), get_current(), extract(delivered.source, self._propagator)
        if not get_current_span(context).get_span_context().is_valid:
            context = sent_in
        span = self._consuming(delivered, names.PROCESSING, SpanKind.CONSUMER, sent_in, context, began)
        numbers = self._number(names.PROCESSING, delivered.destination, delivered.subscription)
        return ProcessStep(span, began, self._instruments.process, numbers, context)

    def settling(self, action: str, delivered: Sequence[Delivered], sent: int) -> SpanStep:
        """A span of kind CLIENT; of a destination where there is one alone."""
        began, operation = time_ns(), (action, "settle")
        found = {each.destination for each in delivered}
        destination = next(iter(found)) if len(found) == 1 else None
        subscriptions = {each.subscription for each in delivered}
        subscription = next(iter(subscriptions)) if len(subscriptions) == 1 else None
        attributes = {**self._own, **names.of_operation(operation), **names.of_destination(destination)}
        if len(delivered) == 1:
            attributes.update(names.of_message(delivered[0].source, subscription))
        else:
            attributes[names.COUNT] = len(delivered)
        if sent:
            attributes["redelivery.sent_count"] = sent
        span = self._maker.start_span(
            names.span_name(operation, destination), kind=SpanKind.CLIENT, attributes=attributes, start_time=began
        )
        numbers = {**self._number(operation, destination, subscription), **names.of_operation(operation)}
        return SpanStep(span, began, self._instruments.operation, numbers)

    def _consuming(
        self,
        delivered: Delivered,
        operation: tuple[str, str],
        kind: SpanKind,
        sent_in: Context,
        context: Context | None,
        began: int,
        *,
        remembers: bool = True,
    ) -> Span:
        source, destination = delivered.source, delivered.destination
        links = _links(sent_in)
        first = self._firsts.of(delivered) if delivered.delivery_count > 1 else None
        if first is not None:
            links.append(Link(first, {names.FIRST_DELIVERY: True}))
        span = self._maker.start_span(
            names.span_name(operation, destination),
            context=context,
            kind=kind,
            attributes={
                **self._own,
                **names.of_operation(operation),
                **names.of_destination(destination),
                **names.of_message(source, delivered.subscription),
                names.DELIVERY_COUNT: delivered.delivery_count,
            },
            links=links,
            start_time=began,
        )
        if remembers and first is None:
            self._firsts.note(delivered, span.get_span_context())
        return span

    def _number(
        self, operation: tuple[str, str], destination: Destination | None, subscription: str | None = None
    ) -> Attributes:
        return {**self.attributes, **names.of_number(operation, destination, subscription)}


def _links(context: Context) -> list[Link]:
    creation = get_current_span(context).get_span_context()
    return [Link(creation)] if creation.is_valid else []
