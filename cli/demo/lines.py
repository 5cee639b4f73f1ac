"""The demo without a terminal: plain lines for a log, JSON lines for a program."""

from __future__ import annotations

import json
from types import TracebackType
from typing import Self, TypeAlias

from redelivery.cli.demo.events import (
    Back,
    DeadLettered,
    Delivered,
    Event,
    Failed,
    Gone,
    Killed,
    OutageStarted,
    OutageSummary,
    Processed,
    Redialled,
    Restarted,
    Sent,
    SparkReads,
    SparkTable,
    Started,
    Summary,
    Uncertain,
    as_dict,
)

OutageEvent: TypeAlias = OutageStarted | Uncertain | Killed | Gone | Redialled | Restarted | Back


class LineView:
    """Prints one line for each event."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def __call__(self, event: Event) -> None:
        """Print one event."""
        print(self.line(event), flush=True)

    def line(self, event: Event) -> str:
        """The text of one event."""
        match event:
            case Started():
                delays = ", ".join(f"{delay:g}" for delay in event.delays)
                return (
                    f"{event.broker} over {event.protocol}, {event.url}; queue {event.queue}, "
                    f"dead-letter queue {event.dead_letter_queue}; redelivery after {delays} s, then dead-lettered"
                )
            case Sent(order):
                return f"order {order}  sent"
            case Delivered():
                return f"order {event.order}  delivery {event.delivery}{_again(event)}"
            case Processed(order):
                return f"order {order}  processed, committed"
            case Failed(order, error, again_in):
                then = "that was the last delivery: poison ack" if again_in is None else f"again in {again_in:.3f} s"
                return f"order {order}  {error}; rolled back, {then}"
            case DeadLettered():
                return (
                    f"order {event.order}  stands in the dead-letter queue after {event.after * 1000:.0f} ms: "
                    f"from {event.origin}, {event.deliveries} deliveries, {event.short_cause}"
                )
            case _:
                return _last_line(event)


class JsonView(LineView):
    """Prints one JSON object for each event."""

    def line(self, event: Event) -> str:
        """The event as JSON; times in seconds."""
        return json.dumps(as_dict(event))


def _again(event: Delivered) -> str:
    flag = ", redelivered" if event.redelivered else ""
    if event.planned is None or event.measured is None:
        return flag
    return f"{flag} after {event.measured:.3f} s (policy {event.planned:.3f} s)"


def _last_line(event: Event) -> str:
    match event:
        case Summary():
            return "\n".join((_counts(event), *(f"does not add up: {each}" for each in event.problems)))
        case SparkReads(queue):
            return f"a Spark stream reads {queue}"
        case SparkTable():
            groups = [f"Spark: {letters} from {origin}: {cause}" for origin, cause, letters in event.groups]
            return "\n".join((*groups, f"Spark {event.version} read {event.letters} in {event.seconds:.1f} s"))
        case OutageSummary():
            return "\n".join((_outage_counts(event), *(f"does not add up: {each}" for each in event.problems)))
        case OutageStarted() | Uncertain() | Killed() | Gone() | Redialled() | Restarted() | Back():
            return _outage_line(event)
    raise AssertionError(f"{event} has a line of its own")


def _outage_line(event: OutageEvent) -> str:
    match event:
        case OutageStarted():
            return f"{event.broker} {event.pid}, {event.url}; {len(event.orders)} orders in queue {event.queue}"
        case Uncertain(order, what):
            then = "sent again" if what == "send" else "redelivered, if it has not happened"
            return f"order {order}  its {what} is in doubt: {then}"
        case Killed(pid):
            return f"broker {pid} killed"
        case Gone(error):
            return f"connection lost, sends wait: {error}"
        case Redialled(attempt, error):
            return f"attempt {attempt} to connect failed: {error}"
        case Restarted(pid):
            return f"broker {pid} started, with what its store has kept"
        case Back(away):
            return f"connected again after {away:.1f} s"


def _outage_counts(event: OutageSummary) -> str:
    return (
        f"{event.sent} orders sent, {event.processed} processed, {event.redelivered} of them delivered again; "
        f"{event.in_doubt} in doubt, {event.doubled} processed twice; "
        f"the broker was away for {event.away:.1f} s of {event.seconds:.1f} s"
    )


def _counts(event: Summary) -> str:
    return (
        f"{event.sent} orders sent = {event.processed} processed + {event.dead_letters} dead letters; "
        f"{event.deliveries} deliveries, {event.redeliveries} of them redeliveries, "
        f"at most {event.worst_lateness * 1000:.0f} ms late; {event.seconds:.1f} s"
    )
