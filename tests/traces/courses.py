"""Reads courses.txt: the courses that scenarios take here where they differ from the recorded ones.

    == stop-receive @ vm stomp          which scenario, at which targets (none named: all)
    4 receive m1 #1 @0                  its events, see `notation`
    left q: m1 #2, m2 #1                what stays in a queue; a queue that is not named is empty
    left ActiveMQ.DLQ: m1 #1 from=q delivery=2 cause=null
    heard 1                             calls of exception listeners

Of a dead letter, ``from`` is its queue and ``delivery=n`` (``dispatch=n``, ``expired``) the kind of its cause;
``cause`` is the error in it (~ for a space), ``limit=n`` the limit of its policy, where that is not the connection's;
``ttl``: it had an expiration; ``volatile``: it is not persistent. Two courses of one scenario at one target are both
right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from tests.traces.by_broker import ALIKE
from tests.traces.compare import CAUSE
from tests.traces.notation import event
from tests.traces.scenario import Scenario, Trace

from redelivery import RedeliveryPolicy

AT_ONCE: Mapping[str, int] = {"initialRedeliveryDelay": 0, "redeliveryDelay": 0}  # Qpid JMS knows no delay
FILE = Path(__file__).with_name("courses.txt")


def courses(scenario: Scenario, target: str) -> tuple[Trace, ...]:
    """The courses stated for a scenario at a target; those that name the target before those for all."""
    target = ALIKE.get(target, target)
    mine = [(targets, lines) for targets, lines in _all().get(scenario.id, ()) if not targets or target in targets]
    named = [lines for targets, lines in mine if targets]
    policy = _policy(scenario)
    return tuple(_trace(lines, policy) for lines in named or [lines for _, lines in mine])


def stated_courses() -> Iterator[tuple[str, tuple[str, ...]]]:
    """The scenario of each course, and the targets that it names."""
    for name, stated in _all().items():
        for targets, _ in stated:
            yield name, targets


def _policy(scenario: Scenario) -> RedeliveryPolicy:
    stated: Mapping[str, Any] = scenario.connection.get("redelivery", {})
    if scenario.client == "qpid":
        stated = {"maximumRedeliveries": stated.get("maxRedeliveries", -1), **AT_ONCE}
    return RedeliveryPolicy.from_activemq(stated)


@cache
def _all() -> Mapping[str, list[tuple[tuple[str, ...], list[str]]]]:
    read: dict[str, list[tuple[tuple[str, ...], list[str]]]] = {}
    lines: list[str] = []
    for line in FILE.read_text(encoding="utf-8").splitlines():
        if line.startswith("== "):
            name, _, targets = line.removeprefix("== ").partition(" @ ")
            lines = []
            read.setdefault(name, []).append((tuple(targets.split()), lines))
        elif line and not line.startswith("#"):
            lines.append(line)
    return read


def _trace(lines: list[str], policy: RedeliveryPolicy) -> Trace:
    events = tuple(event(line) for line in lines if not line.startswith(("left ", "heard ")))
    end = {}
    for line in lines:
        if line.startswith("left "):
            queue, _, messages = line.removeprefix("left ").partition(": ")
            end[queue] = [dict(_message(queue, each.split(), policy)) for each in messages.split(", ")]
    return Trace(events, end, sum(int(line.split()[1]) for line in lines if line.startswith("heard ")))


def _message(queue: str, words: list[str], policy: RedeliveryPolicy) -> Iterator[tuple[str, Any]]:
    body, count, *rest = words
    fields = dict(word.partition("=")[::2] for word in rest)
    yield "body", body
    yield "count", int(count[1:])
    yield "redelivered", int(count[1:]) > 1
    yield "persistent", "volatile" not in fields
    yield "destination", f"queue://{queue}"
    if "priority" in fields:
        yield "priority", int(fields["priority"])
    if "from" in fields:
        yield "originalDestination", fields["from"] if ":" in fields["from"] else f"queue://{fields['from']}"
        yield "originalExpiration", "<ms>" if fields.keys() & {"expired", "ttl"} else "0"
    if "limit" in fields:
        policy = replace(policy, maximum_redeliveries=int(fields["limit"]))
    if "delivery" in fields:
        text = f"Delivery[{fields['delivery']}] exceeds redelivery policy limit:{policy}, cause:"
        yield CAUSE, text + fields.get("cause", "null").replace("~", " ")
    if "dispatch" in fields:
        yield CAUSE, f"Dispatch[{fields['dispatch']}] to <id> exceeds redelivery policy limit:{policy}"
    if "expired" in fields:
        yield CAUSE, "Message Expired. Expiration:<ms>"
