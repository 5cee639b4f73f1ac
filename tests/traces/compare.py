"""Whether what we did is what the Java client did.

Exact: the order of events, what was received, JMSRedelivered, JMSXDeliveryCount, which call failed, and what was left.

Times, in ms: never earlier than recorded minus 10 (recorded times are rounded to 10); later by at most 50 or 25 %.
A delay begins while the rollback runs and is recorded from its end, so a rollback that took 5 ms may make the next
receive 5 ms earlier; the same goes for whatever else overslept since then.

Texts: errors are compared by class, our class for Java's. Java's cause begins with the class of a Throwable that only
carries the text; an application's exception has Java's class name there and Python's here; a policy of a map names its
destination. Ids and times are placeholders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.traces.scenario import End, Event, Trace

from redelivery.model import errors

EARLY_MS = 10
LATE_MS, LATE_SHARE = 50, 0.25
TIMES = frozenset(("ms", "ms_min", "ms_max", "setup"))
ERRORS: Mapping[str, type[Exception]] = {
    "javax.jms.IllegalStateException": errors.IllegalStateError,
    "javax.jms.TransactionRolledBackException": errors.TransactionRolledBackError,
    "javax.jms.JMSException": errors.JMSError,
}
CAUSE = "dlqDeliveryFailureCause"
OURS = "dlqDeliveryCount"  # on our copies only; Java's dead letters have it in the cause
FAILED_AT, PASSPORT = "dlqFailedAt", "dlqPassport"  # on our copies only
_DELAY_BEGINS = frozenset(("rollback", "recover", "close", "kill"))


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One difference; ``kind`` is order, redelivered, count, another field, error, early, late, end or heard."""

    kind: str
    where: str
    expected: object
    got: object

    def __str__(self) -> str:
        return f"{self.where}: {self.kind}: expected {self.expected!r}, got {self.got!r}"


@dataclass(frozen=True, slots=True)
class Sight:
    """What can be seen of the messages left: counts (or only the flag), why they were poisoned, and persistence.

    ``late_ms``: by how much an event may be late there.
    """

    counts: bool = True
    causes: bool = True
    persistence: bool = True
    late_ms: float = LATE_MS


def closest(traces: Sequence[Trace], got: Trace, sight: Sight, *, overlapping: bool = False) -> list[Mismatch]:
    """The mismatches with the trace that fits best; empty if one fits. ``overlapping``: see `compare`."""
    found = (compare(trace, got, sight, overlapping=overlapping) for trace in traces)
    nothing = [Mismatch("course", "this scenario at this target", "a stated course", None)]
    return min(found, key=lambda each: (any(map(_hard, each)), len(each)), default=nothing)


def only_late(found: Sequence[Mismatch]) -> bool:
    """Whether a busy machine may be the reason, so that another try is fair."""
    return bool(found) and not any(map(_hard, found))


def _hard(mismatch: Mismatch) -> bool:
    return mismatch.kind != "late"


def compare(expected: Trace, got: Trace, sight: Sight, *, overlapping: bool = False) -> list[Mismatch]:
    """Every difference between the recorded trace and ours.

    ``overlapping``: delays of several rollbacks may run at once, as in non-blocking redelivery.
    """
    found = [*_events(expected.events, got.events, sight.late_ms, overlapping), *_ends(expected.end, got.end, sight)]
    if expected.heard != got.heard:
        found.append(Mismatch("heard", "exception listeners", expected.heard, got.heard))
    return found


def _events(expected: Sequence[Event], got: Sequence[Event], late_ms: float, overlapping: bool) -> Iterator[Mismatch]:
    slack, begun = 0.0, False
    for number, (theirs, ours) in enumerate(zip(expected, got, strict=False)):
        where = f"event {number} ({theirs.get('step', 'listener')} {theirs['op']})"
        if _what(theirs) != _what(ours):
            yield Mismatch("order", where, _what(theirs), _what(ours))
            return  # from here on nothing lies side by side
        for name in sorted((theirs.keys() | ours.keys()) - TIMES - {"step", "op", "body", "error"}):
            if _value(name, theirs.get(name)) != _value(name, ours.get(name)):
                yield Mismatch(name, where, theirs.get(name), ours.get(name))
        if not _same_error(theirs.get("error"), ours.get("error")):
            yield Mismatch("error", where, theirs.get("error"), ours.get("error"))
        slack += ours["setup"]
        yield from _times(theirs, ours, where, slack, late_ms)
        begins = ours["op"] in _DELAY_BEGINS
        slack = _slack_after(theirs, ours, slack, overlapping or (begun and begins))  # a second rollback begins none
        begun = begins
    if len(expected) != len(got):
        first = min(len(expected), len(got))
        yield Mismatch("order", f"event {first}", _at(expected, first), _at(got, first))


def _times(theirs: Event, ours: Event, where: str, slack: float, late_ms: float) -> Iterator[Mismatch]:
    bounds = _bounds(theirs)
    if bounds is None:
        return
    low, high = bounds
    if ours["ms"] < low - EARLY_MS - slack:
        yield Mismatch("early", where, low, round(ours["ms"], 1))
    if ours["ms"] > high + max(late_ms, LATE_SHARE * high):
        yield Mismatch("late", where, high, round(ours["ms"], 1))


def _slack_after(theirs: Event, ours: Event, slack: float, overlapping: bool) -> float:
    """By how many ms the next event may seem early, because a delay has begun before our last mark."""
    earlier = slack if overlapping else 0.0  # what a delay that begins now has to do with
    if ours["op"] in _DELAY_BEGINS:
        return earlier + float(ours["ms"])
    if "then" in ours:
        bounds = _bounds(theirs)
        late = 0.0 if bounds is None or not overlapping else max(0.0, ours["ms"] - bounds[1])
        return earlier + late
    if ours["op"] == "browse":  # recorded without its time
        return slack + float(ours["ms"])
    bounds = _bounds(theirs)
    return slack if bounds is None else slack + max(0.0, ours["ms"] - bounds[1])


def _at(events: Sequence[Event], number: int) -> object:
    return _what(events[number]) if number < len(events) else "the end"


def _what(event: Event) -> tuple[object, ...]:
    return event.get("step"), event["op"], event.get("body")


def _bounds(event: Event) -> tuple[float, float] | None:
    if "ms" in event:
        return event["ms"], event["ms"]
    return (event["ms_min"], event["ms_max"]) if "ms_min" in event else None


def _same_error(theirs: Mapping[str, str] | None, ours: Mapping[str, str] | None) -> bool:
    if theirs is None or ours is None:
        return theirs is ours
    wanted = ERRORS.get(theirs["class"]) or getattr(errors, theirs["class"])
    return issubclass(getattr(errors, ours["class"]), wanted)


def _ends(expected: End, got: End, sight: Sight) -> Iterator[Mismatch]:
    for queue in sorted(expected.keys() | got.keys()):
        if queue.startswith("subscription "):
            continue
        theirs = [_left(message, sight) for message in expected.get(queue, ())]
        ours = [_left(message, sight) for message in got.get(queue, ())]
        if [message["body"] for message in theirs] != [message["body"] for message in ours]:
            bodies = [[message["body"] for message in messages] for messages in (theirs, ours)]
            yield Mismatch("end", queue, *bodies)
            continue
        for left, right in zip(theirs, ours, strict=True):
            for name in sorted(left.keys() | right.keys()):
                if left.get(name) != right.get(name):
                    yield Mismatch("end", f"{queue} {left['body']} {name}", left.get(name), right.get(name))


def _left(message: Mapping[str, Any], sight: Sight) -> dict[str, object]:
    hidden = {OURS, FAILED_AT, PASSPORT, "__AMQ_CID"}  # the last is Artemis' mark of an OpenWire client
    if not sight.counts:
        hidden.add("count")
    if not sight.persistence:
        hidden.add("persistent")
    if not sight.causes and "redelivery policy limit" in message.get(CAUSE, ""):
        hidden.add(CAUSE)
    seen = {name: _value(name, value) for name, value in message.items() if name not in hidden}
    reported = re.match(r"Delivery\[(\d+)\]", str(seen.get(CAUSE)))
    if OURS in message and reported and str(message[OURS]) != reported[1]:
        seen[OURS] = f"{message[OURS]}, but the cause says {reported[1]}"
    return seen


def _value(name: str, value: object) -> object:
    if name == CAUSE and value is not None:
        return cause(str(value))
    if name in ("originalExpiration", "expiration") and value not in (None, "0", 0):
        return "<ms>"
    if name == "destination" and value is not None and "://" not in str(value):
        return f"queue://{value}"  # Qpid JMS names it so
    if isinstance(value, bool | int | float) and name not in ("redelivered", "persistent", "count", "priority"):
        return str(value).lower()  # recorded as text, whatever the property's type
    return value


def cause(text: str) -> str:
    """A cause in the one form that both clients' texts are compared in."""
    text = text.removeprefix("java.lang.Throwable: ").replace("java.lang.RuntimeException: ", "RuntimeError: ")
    text = re.sub(r"\{destination = .*?, (?=collision)", "{", text)
    text = re.sub(r"(?<=\] to ).+?(?= exceeds)", "<id>", text)
    return re.sub(r"(?<=Expiration:)\d+", "<ms>", text)
