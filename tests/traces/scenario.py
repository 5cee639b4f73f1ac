"""The recorded scenarios and traces, parsed: what to do, and what the Java client did then."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

DATA = Path(__file__).parent / "data"
DEAD_LETTERS = "ActiveMQ.DLQ"

Event: TypeAlias = Mapping[str, Any]  # a line of a trace; "ms" or "ms_min" and "ms_max" are its times
End: TypeAlias = Mapping[str, Sequence[Mapping[str, Any]]]  # the messages left, by logical queue


@dataclass(frozen=True, slots=True)
class Step:
    """One step; repetitions are unrolled, and ``path`` says which one it is."""

    path: str
    do: str
    fields: Mapping[str, Any]

    def get(self, name: str, default: Any = None) -> Any:
        return self.fields.get(name, default)


@dataclass(frozen=True, slots=True)
class Trace:
    """One course that a scenario took."""

    events: tuple[Event, ...]
    end: End
    heard: int = 0  # calls of exception listeners


@dataclass(frozen=True, slots=True)
class Scenario:
    id: str
    title: str
    client: str
    brokers: tuple[str, ...]
    connection: Mapping[str, Any]
    show: tuple[str, ...]
    steps: tuple[Step, ...]
    repetitions: int
    recordings: Mapping[str, tuple[Trace, ...]]  # by the broker of the recording; any of its traces is right

    @property
    def traces(self) -> tuple[Trace, ...]:
        """The traces of all its recordings."""
        return tuple(trace for traces in self.recordings.values() for trace in traces)

    def traces_of(self, broker: str | None) -> tuple[Trace, ...]:
        """The traces recorded on a broker; all of them, where it was recorded on one only."""
        return self.recordings.get(broker or "", self.traces)

    @property
    def qpid_outcome(self) -> str | None:
        """What Qpid JMS does with a message that is over the limit; None: another client, or no limit."""
        redelivery: Mapping[str, str] = self.connection.get("redelivery", {})
        if self.client != "qpid" or not redelivery:
            return None
        return redelivery.get("outcome", "MODIFIED_FAILED_UNDELIVERABLE")

    @property
    def needs(self) -> tuple[str, ...]:
        """What not each broker has."""
        sources = [str(step.get("from", "")) for step in self.steps if step.do == "consumer"]
        needs = {
            "transactions": any(step.get("mode") == "transacted" for step in self.steps),
            "wildcards": any(wildcard in source for source in sources for wildcard in "*>"),
            "selectors": any("selector" in step.fields and "{ref}" not in step.get("selector") for step in self.steps),
            "composite": any("," in str(step.get("to", "")) for step in self.steps),
            "kill": self.does("kill"),
            "browsing": self.does("browse"),
            "durable": self.does("durable"),
        }
        return tuple(name for name, needed in needs.items() if needed)

    @property
    def has_dead_letters(self) -> bool:
        """Some message was poisoned by the client (not expired)."""
        return any(
            "exceeds redelivery policy limit" in str(message.get("dlqDeliveryFailureCause"))
            for trace in self.traces
            for messages in trace.end.values()
            for message in messages
        )

    def does(self, what: str) -> bool:
        """Whether a step, or a field of a step, of that name occurs."""
        return any(step.do == what or what in step.fields for step in self.steps)


@cache
def scenarios() -> Mapping[str, Scenario]:
    """All recorded scenarios by id, in the order of the file."""
    by_id: dict[str, dict[str, tuple[Trace, ...]]] = {}
    for recorded in json.loads((DATA / "traces.json").read_text(encoding="utf-8"))["traces"]:
        courses = recorded.get("variants") or [recorded]
        name, _, broker = recorded["id"].partition("@")
        by_id.setdefault(name, {})[broker or "classic"] = tuple(_trace(course) for course in courses)
    raw = json.loads((DATA / "scenarios.json").read_text(encoding="utf-8"))["scenarios"]
    return {each["id"]: _scenario(each, by_id[each["id"]]) for each in raw}


def _scenario(raw: Mapping[str, Any], recordings: Mapping[str, tuple[Trace, ...]]) -> Scenario:
    return Scenario(
        id=raw["id"],
        title=raw["title"],
        client=raw.get("client", "activemq"),
        brokers=tuple(raw.get("brokers", ("classic",))),
        connection=raw.get("connection", {}),
        show=tuple(raw.get("show", ())),
        steps=tuple(_unrolled(raw["steps"], "")),
        repetitions=raw.get("repetitions", 1),
        recordings=recordings,
    )


def _unrolled(steps: Sequence[Mapping[str, Any]], prefix: str) -> Iterator[Step]:
    for number, raw in enumerate(steps):
        path = f"{prefix}{number}"
        if raw["do"] == "repeat":
            for turn in range(raw["times"]):
                yield from _unrolled(raw["steps"], f"{path}.{turn}.")
        else:
            yield Step(path, raw["do"], {name: value for name, value in raw.items() if name != "do"})


def _trace(raw: Mapping[str, Any]) -> Trace:
    return Trace(tuple(raw["events"]), raw["end"], len(raw.get("exceptionListener", ())))
