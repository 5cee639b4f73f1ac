"""The pairs of transport and broker that the suite runs over, and what each cannot do.

Where a pair cannot do a thing, the test asserts that a clear error says so, or skips; the reason stands here, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DEAD_LETTERS = "ActiveMQ.DLQ"

_STOMP: Mapping[str, str] = {
    "stream": "STOMP has no frame for a StreamMessage",
    "exact counts": "STOMP carries a redelivered flag, no delivery count",
    "typed properties": "STOMP headers are strings",
    "group id": "ActiveMQ does not write JMSXGroupID on a STOMP message, nor does the embedded broker",
    "NUL in a text": "a STOMP text has no length, it ends at the first NUL",
}
_EMBEDDED: Mapping[str, str] = {
    "selectors": "the embedded broker has none yet",
    "refusals": "the embedded broker refuses nothing by itself; tests/faults makes it",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """One row: ``cannot`` maps a feature to the reason; ``real`` brokers are shared by all tests, and slower."""

    name: str
    remote: bool = True
    real: bool = False
    cannot: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Pair:
    """A kind that runs now, at ``url``."""

    kind: Kind
    url: str

    @property
    def real(self) -> bool:
        return self.kind.real

    def can(self, feature: str) -> bool:
        assert feature in FEATURES, f"{feature!r} is in no row of the table"
        return feature not in self.kind.cannot


PAIRS: Mapping[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("vm", remote=False, cannot=_EMBEDDED),
        Kind("stomp-embedded", cannot={**_STOMP, **_EMBEDDED}),
        Kind("stomp-activemq", real=True, cannot=_STOMP),
    )
}
FEATURES = {feature for kind in PAIRS.values() for feature in kind.cannot}
