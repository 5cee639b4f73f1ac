"""What is asked for, and what a run has found so far."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from benchmarks import amqp_cases, stomp_cases
from benchmarks.cases import Case
from benchmarks.places import FAKE, PAIRS
from benchmarks.results import Comparison, Curve, Measure, Profile, Stored

CASES: Final = {"stomp": stomp_cases.cases(), "amqp": amqp_cases.cases()}


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked for. ``only``: parts of names; ``targets_only``: real brokers only where there is a target."""

    rounds: int
    scale: float
    only: tuple[str, ...] = ()
    fake_only: bool = False
    targets_only: bool = False

    @property
    def complete(self) -> bool:
        """Whether the page of the documentation may be written."""
        return not (self.only or self.fake_only or self.targets_only) and self.scale >= 1

    @property
    def settings(self) -> dict[str, float]:
        """What a number depends on."""
        return {"rounds": self.rounds, "scale": self.scale}

    def wants(self, name: str) -> bool:
        return not self.only or any(text in name for text in self.only)

    def cases(self, protocol: str, broker: str) -> list[Case]:
        """Those of one pair, those included that cannot be run there."""
        return [
            case
            for case in CASES[protocol]
            if (case.runs_at(broker) or broker in case.cannot)
            and self.wants(f"{protocol}/{broker}/{case.key}")
            and (broker == FAKE or not self.targets_only or case.has_target(protocol, broker))
        ]


@dataclass(slots=True)
class Found:
    """What a run has found so far."""

    comparisons: list[Comparison] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    profiles: list[Profile] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    stored: list[Stored] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)

    def begin(self, name: str) -> None:
        """Say so, and note it."""
        print(f"{name} …", file=sys.stderr, flush=True)
        self.ran.append(name)

    def fail(self, name: str, error: Exception, how: str = "") -> None:
        """The same of what broke off."""
        self.failures.append(f"{name}{how} failed: {type(error).__name__}: {error}")
        print(self.failures[-1], file=sys.stderr, flush=True)


def names() -> Iterator[str]:
    """Of all that can be run, in the order of the page."""
    for broker, protocols in ((FAKE, tuple(CASES)), *PAIRS):
        for protocol in protocols:
            yield from (f"{protocol}/{broker}/{case.key}" for case in CASES[protocol] if case.runs_at(broker))
