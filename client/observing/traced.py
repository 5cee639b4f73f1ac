"""A session's work for an observer that follows it (`model.tracing`): in the thread or task of the caller."""

from __future__ import annotations

from collections.abc import Iterable
from time import time_ns
from types import TracebackType
from typing import Self

from redelivery.client.observing.log_lines import count_of
from redelivery.client.observing.observed import Observed
from redelivery.model.events import Delivered
from redelivery.model.messages import Message
from redelivery.model.tracing import Server, Step, Tracer, Work
from redelivery.transports.dialects.detect import messaging_system
from redelivery.transports.seam import Delivery, Flow, T, Transport


class Traced:
    """Something that has begun: ended by the end of its ``with`` block, or by `ended`."""

    __slots__ = ("_observed", "_step")

    def __init__(self, observed: Observed, step: Step | None) -> None:
        self._observed = observed
        self._step = step  # None: the observer failed

    def ended(self, error: BaseException | None) -> None:
        """See Step."""
        step, self._step = self._step, None  # twice is harmless: the first one counts
        if step is not None:
            self._observed.ask(step.ended, error)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended(error)


class TracedWork(Traced):
    """A listener's or handler's work, left at the end of its ``with`` block."""

    __slots__ = ("_work",)

    def __init__(self, observed: Observed, work: Work | None) -> None:
        super().__init__(observed, work)
        self._work = work

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ended(error)
        if self._work is not None:
            self._observed.ask(self._work.left)


class SessionTracer:
    """The questions of a session to its observer.

    ``pushes``: a container receives for its handler, so that to receive is not what the application does.
    """

    def __init__(self, observed: Observed, session: int, transport: Transport) -> None:
        self._observed = observed
        self._session = session
        self._tracer: Tracer | None = None
        self._asked: int | None = None  # since when a call waits for a message (epoch nanoseconds)
        self.pushes = False
        self.connected(transport)

    def connected(self, transport: Transport) -> None:
        """Note that its session has another connection."""
        tracing, options = self._observed.tracing, transport.options
        assert tracing is not None, "else there is none of us"
        system = messaging_system(transport.peer.dialect)
        server = Server(system, options.host, options.port, options.client_id)
        self._tracer = self._observed.ask(tracing.tracer, self._session, server)

    def sending(self, message: Message) -> Traced:
        """See Tracer."""
        tracer = self._tracer
        return Traced(self._observed, None if tracer is None else self._observed.ask(tracer.sending, message))

    def receiving(self, flow: Flow[T | None]) -> Flow[T | None]:
        """A call that has begun to wait for a message."""
        self._asked = time_ns()
        delivery: T | None = None
        try:
            delivery = yield from flow
        finally:
            if delivery is None:
                self._asked = None
        return delivery

    def received(self, deliveries: Iterable[Delivery], *, held: bool) -> None:
        """The caller gets them."""
        began, self._asked = self._asked or time_ns(), None
        if self._tracer is not None and not self.pushes:
            for each in deliveries:
                self._observed.ask(self._tracer.received, self._delivered(each), began, held=held)

    def processing(self, delivery: Delivery) -> TracedWork:
        """See Tracer."""
        tracer = self._tracer
        work = None if tracer is None else self._observed.ask(tracer.processing, self._delivered(delivery))
        return TracedWork(self._observed, work)

    def settling(self, action: str, deliveries: Iterable[Delivery], sent: int = 0) -> Traced:
        """See Tracer."""
        tracer, covered = self._tracer, [self._delivered(each) for each in deliveries]
        step = None if tracer is None else self._observed.ask(tracer.settling, action, covered, sent)
        return Traced(self._observed, step)

    def _delivered(self, delivery: Delivery) -> Delivered:
        return Delivered(self._session, delivery, count_of(delivery))


def session_tracer(observed: Observed | None, session: int, transport: Transport) -> SessionTracer | None:
    """For a session that has a channel now; None where nobody follows it."""
    if observed is None or observed.tracing is None:
        return None
    return SessionTracer(observed, session, transport)


def traced(step: Traced, flow: Flow[T]) -> Flow[T]:
    """The flow, whose end is that of the step, which has begun in the thread or task of the caller."""
    with step:
        return (yield from flow)
