"""Where we differ from the Java client on purpose: one table, each entry with its reason and what happens instead.

`test_traces` holds every entry to its word: the scenario must take exactly the course stated here, and that course must
differ from the recorded ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.traces.compare import CAUSE
from tests.traces.notation import event
from tests.traces.scenario import Scenario, Trace
from tests.traces.targets import Target

from redelivery import RedeliveryPolicy


@dataclass(frozen=True, slots=True)
class Difference:
    """What happens instead of what was recorded.

    ``why``: a key of `REASONS`; ``instead``: one sentence on what we do. ``targets``: where; none given: everywhere.
    ``events``: lines of `notation`, None where they are as recorded; ``end``: the same for the messages left.
    """

    why: str
    instead: str
    targets: tuple[str, ...] = ()
    events: str | None = None
    end: Mapping[str, Sequence[Mapping[str, Any]]] | None = None
    heard: int | None = None

    def traces(self, scenario: Scenario) -> tuple[Trace, ...]:
        """The course that is right here."""
        stated = scenario.traces
        if self.events is not None:
            events = tuple(event(text) for text in self.events.strip().splitlines())
            stated = tuple(replace(trace, events=events) for trace in stated)
        if self.end is not None:
            policy = RedeliveryPolicy.from_activemq(scenario.connection.get("redelivery", {})).describe()
            end = {
                queue: [
                    {**message, CAUSE: message[CAUSE].replace("<policy>", policy)} if CAUSE in message else message
                    for message in messages
                ]
                for queue, messages in self.end.items()
            }
            stated = tuple(replace(trace, end={**dict.fromkeys(trace.end, ()), **end}) for trace in stated)
        heard = self.heard
        return stated if heard is None else tuple(replace(trace, heard=heard) for trace in stated)


def left(body: str, count: int = 1, queue: str = "q") -> dict[str, Any]:
    """A message that stayed in its queue."""
    return {
        "body": body,
        "redelivered": count > 1,
        "count": count,
        "persistent": True,
        "destination": f"queue://{queue}",
    }


def dead(body: str, deliveries: int, queue: str = "q", cause: str = "null") -> dict[str, Any]:
    """A message that was dead-lettered after so many deliveries."""
    return {
        **left(body, 1, "ActiveMQ.DLQ"),
        "originalDestination": f"queue://{queue}",
        "originalExpiration": "0",
        CAUSE: f"Delivery[{deliveries}] exceeds redelivery policy limit:<policy>, cause:{cause}",
    }


REASONS: Mapping[str, str] = {}
DIFFERENCES: Mapping[str, Difference | Sequence[Difference]] = {}


def difference(scenario: Scenario, target: Target) -> Difference | None:
    """What the table says of a scenario at a target."""
    entries = DIFFERENCES.get(scenario.id, ())
    for entry in (entries,) if isinstance(entries, Difference) else entries:
        if not entry.targets or target.name in entry.targets:
            return entry
    return None
