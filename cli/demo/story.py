"""The events of the library as the story of some orders: its steps, and what has become of each order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any, Final, TypeAlias

from redelivery import RedeliveryPolicy, events

NEXT: Final = "waiting for the next delivery"
_ROW: Final = 48  # columns before the outcome of a delivery


@dataclass(frozen=True, slots=True)
class StoryStep:
    """One thing that has happened.

    ``event``, ``fields``: its name, and its values for a program. ``text``: the line for people; empty for none.
    ``state``: of the order in ``fields``, from now on. ``now``: what goes on until the next step that has one, with
    ``{gone}`` for the seconds since, and ``{left}`` for what is left of ``seconds``.
    ``title``: a terminal frames the text, with ``code`` below it.
    """

    event: str
    fields: dict[str, Any]
    text: str = ""
    style: str = "none"
    state: str = ""
    now: str = ""
    seconds: float | None = None
    title: str = ""
    code: str = ""


Shows: TypeAlias = Callable[[StoryStep], None]


@dataclass(slots=True)
class Order:
    """The fate of an order: how often it was sent, and so on.

    ``letters``: the count, the origin and the cause that its dead letters say, the latter as True.
    ``failed_at``: when its handler failed last, by the monotonic clock; ``planned``, ``measured``: seconds from there.
    """

    sent: int = 0
    deliveries: list[int] = field(default_factory=list)
    processed: int = 0
    failures: int = 0
    letters: list[tuple[int, str, bool]] = field(default_factory=list)
    doubts: int = field(default=0, repr=False)
    failed_at: float = field(default=0.0, repr=False, compare=False)
    planned: float | None = field(default=None, repr=False, compare=False)
    measured: float | None = field(default=None, repr=False, compare=False)


class Story:
    """Counts what the events say of the orders in ``queue``, and reports it in steps.

    `observe` may be called in any thread; all else happens in the one that calls `report`.
    """

    def __init__(self, show: Shows, orders: tuple[str, ...], queue: str, policy: RedeliveryPolicy) -> None:
        self.show = show
        self.orders = {name: Order() for name in orders}
        self.began, self.lateness, self.away = monotonic(), 0.0, 0.0
        self.problems: list[str] = []
        self._queue, self._policy = queue, policy
        self._heard: SimpleQueue[tuple[float, events.Event]] = SimpleQueue()
        self._lost_at = 0.0

    def observe(self, event: events.Event) -> None:
        """Keep an event until it is reported."""
        self._heard.put((monotonic(), event))

    def report(self, wait: float = 0.0) -> None:
        """Report what has been heard; ``wait``: seconds for the first of it."""
        with suppress(Empty):
            while True:
                at, event = self._heard.get(wait > 0, wait)
                wait = 0.0
                if not isinstance(event, events.MessageEvent):
                    self._report(event, at)
                elif event.destination is not None and event.destination.name == self._queue:
                    self._report_message(event, at)

    def end(self, event: str, counts: dict[str, Any], text: str, fine: str) -> dict[str, Any]:
        """Report the counts, and what does not add up; ``fine``: what it means that all does. Returns its fields."""
        fields = {**counts, "seconds": monotonic() - self.began, "problems": self.problems}
        lines = [f"✘ it does not add up: {each}" for each in self.problems]
        lines = lines or [f"✔ it adds up: {fine}   {fields['seconds']:.1f} s"]
        said, style = "\n".join((text.format(**fields), *lines)), "bold red" if self.problems else "green"
        self.show(StoryStep(event, fields, said, style, title="summary"))
        return fields

    def _report_message(self, event: events.MessageEvent, at: float) -> None:
        name, count = str(event.source.body()), event.delivery_count
        order = self.orders[name]
        match event:
            case events.Delivered():
                order.deliveries.append(count)
                if order.planned is not None:
                    order.measured = at - order.failed_at
                    self.lateness = max(self.lateness, order.measured - order.planned)
                    if order.measured < order.planned:
                        self.problems.append(f"order {name}: redelivered before the policy's delay had passed")
                times = {"planned": order.planned, "measured": order.measured}
                fields = {"order": name, "delivery": count, "redelivered": count > 1, **times}
                self.show(StoryStep("delivered", fields, state="working", now=f"{name} is with the handler"))
            case events.Acknowledged():
                order.processed += 1
                row = _row(name, order, "✔ commit")
                self.show(StoryStep("processed", {"order": name}, row, "green", "processed", NEXT))
            case events.RolledBack(cause=cause) | events.DeadLettered(cause=cause) if cause is not None:
                last = isinstance(event, events.DeadLettered)
                row = _row(name, order, f"✘ {'poison ack' if last else 'rollback'}: {cause}")
                order.failures += 1
                delay = None if last else self._policy.delay(count)
                order.planned, order.measured = delay, None
                fields = {"order": name, "error": f"{type(cause).__name__}: {cause}", "again_in": delay}
                now = "" if last else f"{name} is redelivered in {{left:.1f}} s; the next ones wait: order kept"
                style, state = ("red", "dead") if last else ("yellow", "waiting")
                self.show(StoryStep("failed", fields, row, style, state, now, delay))

    def _report(self, event: events.Event, at: float) -> None:
        match event:
            case events.Sent(message=message):
                self.orders[message.body].sent += 1
                self.show(StoryStep("sent", {"order": message.body}, state="sent"))
            case events.InDoubt(sent=sent, received=received):
                for what, messages in (("send", sent), ("commit", received)):
                    for message in messages:
                        self.orders[message.body].doubts += 1
                        text = f"{message.body}  its {what} is in doubt: it may have happened, or not"
                        self.show(StoryStep("in_doubt", {"order": message.body, "what": what}, text, "yellow"))
            case events.ConnectionLost(error=error):
                self._lost_at = at
                text, now = f"connection lost, sends wait: {error}", "○ connection lost {gone:.1f} s ago, dialling"
                self.show(StoryStep("connection_lost", {"error": str(error)}, text, "red", now=now))
            case events.ReconnectFailed(error=error, attempt=attempt):
                text = f"attempt {attempt} to connect failed: {error}"
                self.show(StoryStep("attempt_failed", {"attempt": attempt, "error": str(error)}, text, "dim red"))
            case events.Reconnected():
                self.away = at - self._lost_at
                text = f"connected again after {self.away:.1f} s"
                self.show(StoryStep("connection_back", {"away": self.away}, text, "bold green", now="● connected"))


def _row(name: str, order: Order, outcome: str) -> str:
    """A line for the delivery that has ended."""
    text = f"{name}  delivery {order.deliveries[-1]}"
    if order.planned is not None and order.measured is not None:
        text += f", after {order.measured:.3f} s (plan {order.planned:.3f} s)"
    return f"{text:<{_ROW}}{outcome}"
