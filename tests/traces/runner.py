"""Plays scenarios at targets, tries again where only the machine was slow, and says what came of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from tests.traces.compare import LATE_MS, Mismatch, closest, only_late
from tests.traces.courses import courses
from tests.traces.differences import difference
from tests.traces.notation import line
from tests.traces.player import Player
from tests.traces.scenario import Scenario, Trace, scenarios
from tests.traces.targets import Target

SIDE_BY_SIDE = 4  # scenarios wait most of their time, but on two cores more of them make each other late
TRIES = 3  # where nothing but lateness was found
WARM_UP = "delay-all-zero"  # a broker's and an interpreter's first messages are slow
REPETITIONS = 3  # of scenarios whose course is left to chance in Java; ours should not be


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one scenario at one target.

    ``from_java``: the mismatches with the closest of the recorded traces; empty if equal.
    ``from_stated``: the mismatches with what `differences` states instead; None where it states nothing.
    """

    scenario: Scenario
    target: Target
    got: Trace
    from_java: tuple[Mismatch, ...]
    from_stated: tuple[Mismatch, ...] | None
    chance: bool

    @property
    def problems(self) -> tuple[Mismatch, ...]:
        """What is wrong: neither recorded nor stated."""
        if self.from_stated is None or (self.chance and not self.from_java):
            return self.from_java
        return self.from_stated

    @property
    def expired_early(self) -> bool:
        """Whether a slow machine may have let messages expire before their time in the scenario."""
        slow = sum(event["setup"] for event in self.got.events) > LATE_MS
        return bool(self.problems) and slow and self.scenario.has_expiring_messages

    def report(self) -> str:
        """For a person who has to find out why."""
        lines = [f"{self.scenario.id} at {self.target.name}: {self.scenario.title}"]
        lines += [f"  {mismatch}" for mismatch in self.problems]
        lines += ["what happened:", *(f"  {line(event)}" for event in self.got.events)]
        lines += [f"  {queue}: {[*messages]}" for queue, messages in self.got.end.items()]
        return "\n".join(lines)


def run(scenario: Scenario, target: Target, stomp_url: str | None) -> Outcome:
    """Play it, as often as its course was left to chance; the first outcome with a problem, else the last."""
    for _ in range(min(scenario.repetitions, REPETITIONS)):
        for _ in range(TRIES):
            outcome = _once(scenario, target, stomp_url)
            if not (only_late(outcome.problems) or outcome.expired_early):
                break
        if outcome.problems:
            break
    return outcome


def _once(scenario: Scenario, target: Target, stomp_url: str | None) -> Outcome:
    with target.place(scenario, stomp_url) as place:
        got = Player(scenario, place).play()
    stated = difference(scenario, target.name)
    overlapping = bool(scenario.connection.get("nonBlockingRedelivery"))

    def mismatches(traces: Sequence[Trace]) -> tuple[Mismatch, ...]:
        return tuple(closest(traces, got, target.sight, overlapping=overlapping))

    return Outcome(
        scenario,
        target,
        got,
        mismatches(scenario.traces),
        None if stated is None else mismatches(courses(scenario, target.name)),
        chance=stated is not None and stated.chance,
    )


class Runs:
    """Many runs side by side; the outcome of each is waited for by name. A context manager."""

    def __init__(self, wanted: Iterable[tuple[str, Target]], stomp_url: str | None) -> None:
        wanted = tuple(wanted)
        for target in {target.name: target for _, target in wanted}.values():
            _once(scenarios()[WARM_UP], target, stomp_url)
        self._pool = ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="scenario")
        self._outcomes: Mapping[tuple[str, str], Future[Outcome]] = {
            (name, target.name): self._pool.submit(run, scenarios()[name], target, stomp_url) for name, target in wanted
        }

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def outcome(self, name: str, target: str, timeout: float | None = None) -> Outcome:
        """Wait up to ``timeout`` seconds for one of them."""
        return self._outcomes[name, target].result(timeout)
