"""Plays scenarios at targets, tries again where it was the machine or chance, and says what came of it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TypeAlias

from tests.run import again, calm
from tests.traces.compare import LATE_MS, Mismatch, closest, only_late
from tests.traces.courses import courses
from tests.traces.differences import difference
from tests.traces.notation import line
from tests.traces.player import Player
from tests.traces.scenario import Scenario, Step, Trace, scenarios
from tests.traces.targets import Target

Urls: TypeAlias = Mapping[str, str]  # of the real brokers, by target
SIDE_BY_SIDE = 4  # scenarios wait most of their time, but on two cores more of them make each other late
TRIES = 8  # where nothing but lateness was found; all but the first while nothing else of ours is played
TRIES_OF_A_BROKER = 3  # where it may have failed; one takes up to 15 s
STRETCH = 4  # times to live, and the sleeps beside them, in every second try: a broker may be held up for longer
WARM_UP = "delay-all-zero"  # a broker's and an interpreter's first messages are slow
REPETITIONS = 3  # at the embedded broker, of scenarios whose course is left to chance in Java; ours should not be


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
    def held_up(self) -> bool:
        """Whether a slow machine may have let a delay or a message's time pass before its time in the scenario."""
        return bool(self.problems) and sum(event["setup"] for event in self.got.events) > LATE_MS

    @property
    def broker_failed(self) -> bool:
        """Whether it may be a broker's own fault, which comes randomly (docs/brokers/hornetq.md, rabbitmq.md).

        HornetQ drops a message for a consumer that it is still making, and has it again after the consumer's end.
        RabbitMQ 3.10 stops answering an AMQP session; the exception listener hears it when the session is closed.
        """
        if self.target.name == "stomp-hornetq":
            return any(map(_not_come, self.problems))
        if self.target.name == "amqp-rabbitmq":
            return bool(self.problems) and all(each.kind == "heard" for each in self.problems)
        return False

    def report(self) -> str:
        """For a person who has to find out why."""
        lines = [f"{self.scenario.id} at {self.target.name}: {self.scenario.title}"]
        lines += [f"  {mismatch}" for mismatch in self.problems]
        lines += ["what happened:", *(f"  {line(event)}" for event in self.got.events)]
        lines += [f"  {queue}: {[*messages]}" for queue, messages in self.got.end.items()]
        return "\n".join(lines)


def _not_come(mismatch: Mismatch) -> bool:
    """Whether a message was waited for in vain, or is left that should have been consumed."""
    match mismatch:
        case Mismatch("order", _, (_, _, str()), (_, _, None)):
            return True
        case Mismatch("end", _, [*expected], [*left]):
            return len(left) > len(expected)
    return False


def run(scenario: Scenario, target: Target, urls: Urls) -> Outcome:
    """Play it, as often as its course was left to chance; the first outcome with a problem, else the last."""
    for _ in range(min(scenario.repetitions, REPETITIONS if target.broker is None else 1)):
        for number in range(TRIES):
            if number:
                again.note(again.PLAYED)
                calm.wait()
            with _room(1 if number == 0 else SIDE_BY_SIDE):
                outcome = _once(scenario if number % 2 == 0 else _stretched(scenario), target, urls)
            by_chance = outcome.broker_failed and number < TRIES_OF_A_BROKER - 1
            if not (by_chance or only_late(outcome.problems) or outcome.held_up):
                break
        if outcome.problems:
            break
    return outcome


_entrance = threading.Lock()
_places = threading.Semaphore(SIDE_BY_SIDE)


@contextmanager
def _room(places: int) -> Iterator[None]:
    """So many of the places where scenarios are played side by side; who waits for them all is not overtaken."""
    with _entrance:
        for _ in range(places):
            _places.acquire()
    try:
        yield
    finally:
        _places.release(places)


def alone() -> AbstractContextManager[None]:
    """Nothing is played meanwhile: for tests that count the threads of the process, or its time."""
    return _room(SIDE_BY_SIDE)


def _stretched(scenario: Scenario) -> Scenario:
    """The same where messages expire later, and what sleeps until then sleeps longer."""
    sleeps = any(step.do == "sleep" for step in scenario.steps)
    if not sleeps or not any("ttl" in message for message in _messages(scenario)):
        return scenario
    return replace(scenario, steps=tuple(_later(step) for step in scenario.steps))


def _messages(scenario: Scenario) -> Iterator[Mapping[str, object]]:
    for step in scenario.steps:
        yield from (each for each in step.get("messages", ()) if isinstance(each, Mapping))


def _later(step: Step) -> Step:
    if step.do == "sleep":
        return replace(step, fields={**step.fields, "ms": step.get("ms") * STRETCH})
    if "messages" not in step.fields:
        return step
    messages = [
        {**each, "ttl": each["ttl"] * STRETCH} if isinstance(each, Mapping) and "ttl" in each else each
        for each in step.get("messages")
    ]
    return replace(step, fields={**step.fields, "messages": messages})


def _once(scenario: Scenario, target: Target, urls: Urls) -> Outcome:
    stated = difference(scenario, target.name)
    recorded = scenario.traces_of(target.recorded)
    instead = courses(scenario, target.name) if stated is not None else ()
    right = instead if stated is not None and not stated.chance else (*recorded, *instead)
    with target.place(scenario, urls.get(target.name)) as place:
        got = Player(scenario, place, right).play()
    overlapping = bool(scenario.connection.get("nonBlockingRedelivery"))

    def mismatches(traces: Sequence[Trace]) -> tuple[Mismatch, ...]:
        found = closest(traces, got, target.sight, overlapping=overlapping)
        # Qpid JMS knows no delays: its times on Classic are those of Nagle's algorithm
        return tuple(each for each in found if scenario.client != "qpid" or each.kind != "early")

    return Outcome(
        scenario,
        target,
        got,
        mismatches(recorded),
        None if stated is None else mismatches(instead),
        chance=stated is not None and stated.chance,
    )


class Runs:
    """Many runs side by side; the outcome of each is waited for by name. A context manager."""

    def __init__(self, wanted: Iterable[tuple[str, Target]], urls: Urls) -> None:
        wanted = tuple(wanted)
        for target in {target.name: target for _, target in wanted}.values():
            _once(scenarios()[WARM_UP], target, urls)
        self._pool = ThreadPoolExecutor(SIDE_BY_SIDE, thread_name_prefix="scenario")
        self._outcomes: Mapping[tuple[str, str], Future[Outcome]] = {
            (name, target.name): self._pool.submit(run, scenarios()[name], target, urls) for name, target in wanted
        }

    def __enter__(self) -> Runs:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def outcome(self, name: str, target: str, timeout: float | None = None) -> Outcome:
        """Wait up to ``timeout`` seconds for one of them."""
        return self._outcomes[name, target].result(timeout)
