"""What happens in the demo, as values: the flow reports them, a view shows them, the tally counts them."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeAlias


@dataclass(frozen=True, slots=True)
class Started:
    """Connected: where, and what will happen. ``delays``: seconds before each redelivery that the policy allows."""

    event: ClassVar[str] = "started"
    broker: str
    protocol: str
    url: str
    queue: str
    dead_letter_queue: str
    orders: tuple[str, ...]
    delays: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Sent:
    """The broker has confirmed one order."""

    event: ClassVar[str] = "sent"
    order: str


@dataclass(frozen=True, slots=True)
class Delivered:
    """The handler is given an order. Again: how many seconds after the rollback, by the policy and by the clock."""

    event: ClassVar[str] = "delivered"
    order: str
    delivery: int
    redelivered: bool
    planned: float | None
    measured: float | None


@dataclass(frozen=True, slots=True)
class Processed:
    """The handler returned and the session committed."""

    event: ClassVar[str] = "processed"
    order: str


@dataclass(frozen=True, slots=True)
class Failed:
    """The handler raised and the session rolled back; ``again_in``: seconds by the policy, None: no more deliveries."""

    event: ClassVar[str] = "failed"
    order: str
    error: str
    again_in: float | None


@dataclass(frozen=True, slots=True)
class DeadLettered:
    """A dead letter, as it was read from the dead-letter queue; ``after``: seconds since the last rollback."""

    event: ClassVar[str] = "dead_lettered"
    order: str
    origin: str
    deliveries: int
    cause: str
    after: float

    @property
    def short_cause(self) -> str:
        """Without the fields of the policy that it repeats; --json shows it whole."""
        return re.sub(r"\{[^{}]*\}", "{…}", self.cause)


@dataclass(frozen=True, slots=True)
class Summary:
    """The end. Every number is a count of what happened; ``problems`` says what does not add up."""

    event: ClassVar[str] = "summary"
    sent: int
    processed: int
    dead_letters: int
    deliveries: int
    redeliveries: int
    worst_lateness: float
    seconds: float
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SparkReads:
    """A Spark stream begins to read the dead-letter queue."""

    event: ClassVar[str] = "spark_reads"
    queue: str


@dataclass(frozen=True, slots=True)
class SparkTable:
    """What it read: origin, cause and number of dead letters of each group; ``batches``: micro-batches with rows."""

    event: ClassVar[str] = "spark_table"
    version: str
    groups: tuple[tuple[str, str, int], ...]
    batches: int
    seconds: float

    @property
    def letters(self) -> int:
        """All of them."""
        return sum(letters for _, _, letters in self.groups)


@dataclass(frozen=True, slots=True)
class OutageStarted:
    """A worker and a sender are connected to a broker of this process id."""

    event: ClassVar[str] = "outage_started"
    broker: str
    pid: int
    url: str
    queue: str
    orders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Uncertain:
    """The answer to a ``send`` or ``commit`` of an order did not come: it may or may not have happened."""

    event: ClassVar[str] = "in_doubt"
    order: str
    what: str


@dataclass(frozen=True, slots=True)
class Killed:
    """The broker was killed (-9)."""

    event: ClassVar[str] = "broker_killed"
    pid: int


@dataclass(frozen=True, slots=True)
class Gone:
    """The connection was lost, and is dialled again."""

    event: ClassVar[str] = "connection_lost"
    error: str


@dataclass(frozen=True, slots=True)
class Redialled:
    """An attempt to connect has failed."""

    event: ClassVar[str] = "attempt_failed"
    attempt: int
    error: str


@dataclass(frozen=True, slots=True)
class Restarted:
    """The broker runs again, with what its store has kept."""

    event: ClassVar[str] = "broker_restarted"
    pid: int


@dataclass(frozen=True, slots=True)
class Back:
    """The connection is there again, ``away`` seconds after it was lost."""

    event: ClassVar[str] = "connection_back"
    away: float


@dataclass(frozen=True, slots=True)
class OutageSummary:
    """The end of the outage; ``doubled``: orders that were processed twice."""

    event: ClassVar[str] = "outage_summary"
    sent: int
    processed: int
    redelivered: int
    in_doubt: int
    doubled: int
    away: float
    seconds: float
    problems: tuple[str, ...]


Event: TypeAlias = (
    Started
    | Sent
    | Delivered
    | Processed
    | Failed
    | DeadLettered
    | Summary
    | SparkReads
    | SparkTable
    | OutageStarted
    | Uncertain
    | Killed
    | Gone
    | Redialled
    | Restarted
    | Back
    | OutageSummary
)


def as_dict(event: Event) -> dict[str, Any]:
    """The event as a JSON object; ``event`` names its kind."""
    return {"event": event.event, **asdict(event)}
