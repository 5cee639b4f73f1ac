"""Counts the demo's events and checks that they add up; it trusts nothing but what was reported."""

from __future__ import annotations

from collections import Counter, defaultdict

from redelivery.cli.demo.events import (
    DeadLettered,
    Delivered,
    Event,
    Failed,
    Processed,
    Sent,
    SparkReads,
    SparkTable,
    Started,
    Summary,
)


class Tally:
    """Fed with every event; `summary` gives the counts and whatever contradicts the promises."""

    def __init__(self) -> None:
        self._started: Started | None = None
        self._sent: Counter[str] = Counter()
        self._processed: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._deliveries: defaultdict[str, list[Delivered]] = defaultdict(list)
        self._dead: defaultdict[str, list[DeadLettered]] = defaultdict(list)
        self._lateness = 0.0
        self._problems: list[str] = []

    def add(self, event: Event) -> None:
        """Count one event."""
        match event:
            case Started():
                self._started = event
            case Sent():
                self._sent[event.order] += 1
            case Delivered():
                self._deliveries[event.order].append(event)
                if event.planned is not None and event.measured is not None:
                    self._lateness = max(self._lateness, event.measured - event.planned)
            case Processed():
                self._processed[event.order] += 1
            case Failed():
                self._failures[event.order] += 1
            case DeadLettered():
                self._dead[event.order].append(event)
            case Summary() | SparkReads() | SparkTable():
                pass  # that comes from here, or after the end

    def complain(self, problem: str) -> None:
        """Something else that must not be."""
        self._problems.append(problem)

    @property
    def done(self) -> bool:
        """Whether every order that was sent has been processed or dead-lettered."""
        return all(self._processed[order] or self._dead[order] for order in self._sent)

    def summary(self, seconds: float) -> Summary:
        """The counts after ``seconds``, and what does not add up."""
        deliveries = sum(len(each) for each in self._deliveries.values())
        return Summary(
            sent=self._sent.total(),
            processed=self._processed.total(),
            dead_letters=sum(len(each) for each in self._dead.values()),
            deliveries=deliveries,
            redeliveries=sum(each.redelivered for order in self._deliveries.values() for each in order),
            worst_lateness=self._lateness,
            seconds=seconds,
            problems=(*self._problems, *self._contradictions()),
        )

    def _contradictions(self) -> list[str]:
        if self._started is None:
            return ["the demo never started"]
        found = []
        for order in sorted({*self._started.orders, *self._sent, *self._deliveries, *self._processed, *self._dead}):
            found += [f"order {order}: {problem}" for problem in self._of_order(order, self._started)]
        return found

    def _of_order(self, order: str, started: Started) -> list[str]:
        deliveries, letters = self._deliveries[order], self._dead[order]
        processed, failures = self._processed[order], self._failures[order]
        counts = [each.delivery for each in deliveries]
        early = [each for each in deliveries if each.measured is not None and each.measured < (each.planned or 0.0)]
        checks = (
            (self._sent[order] == 1, f"sent {self._sent[order]} times"),
            (processed + len(letters) == 1, f"processed {processed} times, dead-lettered {len(letters)} times"),
            (
                len(counts) == processed + failures,
                f"{len(counts)} deliveries, {processed} commits, {failures} rollbacks",
            ),
            (counts == list(range(1, len(counts) + 1)), f"its deliveries were counted {counts}"),
            (all(each.redelivered == (each.delivery > 1) for each in deliveries), "a redelivered flag is wrong"),
            (not early, f"redelivered before the policy's delay had passed: {early}"),
        )
        found = [problem for good, problem in checks if not good]
        for letter in letters:
            found += self._of_letter(letter, len(deliveries), started)
        return found

    def _of_letter(self, letter: DeadLettered, deliveries: int, started: Started) -> list[str]:
        limit, origin = len(started.delays) + 1, f"queue://{started.queue}"
        checks = (
            (deliveries == limit, f"dead-lettered after {deliveries} deliveries instead of {limit}"),
            (letter.deliveries == deliveries, f"its dead letter speaks of {letter.deliveries} deliveries"),
            (letter.origin == origin, f"its dead letter names the origin {letter.origin!r}"),
            (bool(letter.cause), "its dead letter has no cause"),
        )
        return [problem for good, problem in checks if not good]
