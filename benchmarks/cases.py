"""The cases: what we do, what the others do for the same, and the ratio to reach."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from benchmarks import ours, raw_stomp
from benchmarks.java_client import JavaClient
from benchmarks.places import Place
from benchmarks.results import Comparison, Timing
from redelivery import AckMode

Run: TypeAlias = Callable[[str, str, int], float]  # url, queue, messages: the seconds they took
OURS, RAW, NODELAY, JAVA = "redelivery", "raw stomp.py", "raw stomp.py, NODELAY by hand", "Java activemq-client"


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to do a case; ``targets``: by place, how many times as fast as this we want to be."""

    name: str
    run: Run
    counts: Mapping[str, int]
    targets: Mapping[str, float] = field(default_factory=dict)
    acks: bool = True


@dataclass(frozen=True, slots=True)
class Case:
    """The first contender is ours. A count is always a multiple of ``batch``."""

    key: str
    title: str
    contenders: tuple[Contender, ...]
    batch: int = 1
    sends: bool = False


def all_cases(java: JavaClient | None) -> tuple[Case, ...]:
    """Every case, in the order of the table; the Java client joins where it is there."""

    def modern(mode: AckMode, batch: int = 0, fake: int = 60_000, classic: int = 10_000) -> tuple[Contender, ...]:
        mine: Run = partial(ours.consume, mode=mode, batch=batch)
        counts = {"fake": fake, "classic": classic}
        return (Contender(OURS, mine, counts), *_java(java, "consume", classic, mode=int(mode), batch=batch))

    def confirmed(window: int, fake: int, classic: int) -> tuple[Contender, ...]:
        mine: Run = partial(ours.send, window=window)
        counts = {"fake": fake, "classic": classic}
        return (Contender(OURS, mine, counts), *_java(java, "send", classic, window=window))

    consumed = {"fake": 20_000, "classic": 10_000}
    acked_each: Run = partial(raw_stomp.consume, ack="client-individual")
    acked_at_once: Run = partial(raw_stomp.consume, ack="auto")
    by_1, by_100 = modern(AckMode.TRANSACTED, 1, 5_000, 1_000), modern(AckMode.TRANSACTED, 100)
    return (
        Case(
            "auto",
            "AUTO",
            (
                *modern(AckMode.AUTO),
                Contender(f"{RAW}, ACK each", acked_each, consumed, {"fake": 3, "classic": 1.3}),
            ),
        ),
        Case(
            "individual",
            "INDIVIDUAL, acknowledge() each",
            (*modern(AckMode.INDIVIDUAL), Contender(f"{RAW}, ACK each", acked_each, consumed, {"fake": 4})),
        ),
        Case(
            "dups-ok",
            "DUPS_OK",
            (
                *modern(AckMode.DUPS_OK),
                Contender(f"{RAW}, ack:auto", acked_at_once, consumed, {"fake": 2.2}, acks=False),
            ),
        ),
        Case(
            "commit-1", "TRANSACTED, commit each", (*by_1, *_transacted(1, 60, 2_000, {"fake": 1.8}, {"classic": 15}))
        ),
        Case(
            "commit-100",
            "TRANSACTED, commit every 100",
            (*by_100, *_transacted(100, 5_000, 20_000, {"fake": 6}, {})),
            batch=100,
        ),
        Case(
            "send",
            "send, persistent, one by one",
            (
                *confirmed(1, 5_000, 1_000),
                Contender(RAW, partial(raw_stomp.send, window=1), {"fake": 5_000, "classic": 1_000}),
            ),
            sends=True,
        ),
        Case(
            "send-100",
            "send_async, persistent, window 100",
            (
                *confirmed(100, 40_000, 2_000),
                Contender(RAW, partial(raw_stomp.send, window=100), {"fake": 20_000, "classic": 2_000}, {"fake": 2.5}),
            ),
            sends=True,
        ),
    )


def _transacted(
    batch: int,
    count: int,
    nodelay_count: int,
    nodelay_targets: Mapping[str, float],
    targets: Mapping[str, float],
) -> tuple[Contender, Contender]:
    documented: Run = partial(raw_stomp.consume_transacted, batch=batch, nodelay=False)
    nodelay: Run = partial(raw_stomp.consume_transacted, batch=batch, nodelay=True)
    return (
        Contender(NODELAY, nodelay, {"fake": nodelay_count, "classic": min(nodelay_count, 10_000)}, nodelay_targets),
        Contender(RAW, documented, {"fake": count, "classic": count}, targets),
    )


def _java(java: JavaClient | None, verb: str, count: int, **arguments: int) -> tuple[Contender, ...]:
    if java is None:
        return ()
    call = java.send if verb == "send" else java.consume

    def run(_url: str, queue: str, messages: int) -> float:
        return call(queue, messages, **arguments)

    return (Contender(JAVA, run, {"classic": count}),)


def compare(place: Place, case: Case, rounds: int, scale: float) -> Comparison:
    """Each contender in turn, ``rounds`` times, after one warm-up each; ``scale`` shortens all of them."""
    there = [contender for contender in case.contenders if place.kind in contender.counts]
    rates: dict[str, list[float]] = {contender.name: [] for contender in there}
    for number in range(rounds + 1):
        for contender in there:
            full = contender.counts[place.kind] * (scale if number else scale / 10)
            count = max(1, round(full / case.batch)) * case.batch
            seconds = once(place, case, contender, count)
            if number:
                rates[contender.name].append(count / seconds)
    mine, *others = (Timing(name, statistics.median(found), min(found), max(found)) for name, found in rates.items())
    targets = {contender.name: contender.targets.get(place.kind) for contender in there}
    return Comparison(place.kind, place.name, case.key, case.title, mine, tuple(others), targets)


def once(place: Place, case: Case, contender: Contender, count: int) -> float:
    """The seconds of one run, and a look whether it did its work. Raises BenchmarkError."""
    queue = place.prepare(0 if case.sends else count)
    gc.collect()  # nobody pays for the garbage of the one before
    seconds = contender.run(place.url, queue, count)
    if case.sends:
        place.finish(queue, sent=count)
    else:
        place.finish(queue, acked=count if contender.acks else 0)
    return seconds
