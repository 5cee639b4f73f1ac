"""What a case is: what we do, what the others do for the same, and the ratio to reach; and how it is run."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from cProfile import Profile
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from benchmarks.places import FAKE, Place, key
from benchmarks.results import BenchmarkError, Comparison, Timing
from benchmarks.stopwatch import Spent

Run: TypeAlias = Callable[[Place, str, int], Spent]  # where, queue, messages: what they took
OURS: Final = "redelivery"
SECONDS: Final = {True: 1.0, False: 0.4}  # of one run, at a fake peer or a real broker
MOST: Final = {True: 60_000, False: 8_000}  # messages of one run: a queue must be filled first


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to do a case.

    ``targets``: by place, how many times as fast as this we want to be; ``cpu_targets``: how many times as much
    processor time this is to take. ``acks``: its acknowledgements are counted.
    ``first``: messages of the warm-up, from which the length of the other runs follows; at least so many.
    ``remark``: what a reader must know of its number. ``fake_only``: it does not run at a real broker.
    """

    name: str
    run: Run
    targets: Mapping[str, float] = field(default_factory=dict)
    acks: bool = True
    first: int = 500
    remark: str = ""
    fake_only: bool = False
    cpu_targets: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class JavaRun:
    """The same by a JMS client: a mode of JMS and messages per commit, or the window of a sender."""

    mode: int = 0
    batch: int = 0
    window: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """The first contender is ours. A count is always a multiple of ``batch``.

    ``brokers``: where it is run; None: everywhere. ``cannot``: by broker, why it is not run there.
    """

    key: str
    title: str
    contenders: tuple[Contender, ...]
    java: JavaRun | None
    batch: int = 1
    sends: bool = False
    brokers: frozenset[str] | None = None
    cannot: Mapping[str, str] = field(default_factory=dict)

    def runs_at(self, broker: str) -> bool:
        """Whether it is run there."""
        return broker not in self.cannot and (self.brokers is None or broker in self.brokers)

    def has_target(self, protocol: str, broker: str) -> bool:
        """Whether somebody is to be outrun there."""
        return any(f"{protocol}/{broker}" in contender.targets for contender in self.contenders)


@dataclass(frozen=True, slots=True)
class Effort:
    """How often each contender runs after a warm-up, and the scale of the length of a run."""

    rounds: int
    scale: float


def compare(place: Place, case: Case, rivals: Iterable[Contender], effort: Effort) -> Comparison:
    """Ours and each rival in turn, round after round, each run about as long as the others."""
    fake = place.broker == FAKE
    contenders = (case.contenders[0], *[each for each in rivals if fake or not each.fake_only])
    least = {each.name: each.first * min(1.0, 4 * effort.scale) for each in contenders}
    counts = {name: whole(case, count) for name, count in least.items()}
    runs: dict[str, list[tuple[int, Spent]]] = {name: [] for name in counts}
    for number in range(effort.rounds + 1):
        for contender in contenders:
            name = contender.name
            count = counts[name]
            spent = once(place, case, contender, count)
            length = min(MOST[fake], count / spent.seconds * SECONDS[fake]) * effort.scale
            counts[name] = whole(case, max(length, least[name]))
            if number:
                runs[name].append((count, spent))
    remarks = {each.name: each.remark for each in contenders}
    mine, *others = (timing(name, found, remarks[name]) for name, found in runs.items())
    compared = Comparison(key(place), place.name, case.key, case.title, mine, tuple(others), {})
    return judged(compared, contenders)


def judged(compared: Comparison, contenders: Iterable[Contender]) -> Comparison:
    """The same by the targets that these contenders have there."""
    here = compared.place
    names = {each.name: each for each in contenders if here.endswith(f"/{FAKE}") or not each.fake_only}
    measured = {each.name for each in (compared.mine, *compared.others)}
    return replace(
        compared,
        unmeasured=tuple(name for name in names if name not in measured),
        targets={name: each.targets.get(here) for name, each in names.items()},
        cpu_targets={name: each.cpu_targets[here] for name, each in names.items() if here in each.cpu_targets},
    )


def timing(name: str, runs: list[tuple[int, Spent]], remark: str = "") -> Timing:
    """Of all rounds."""
    rates = [count / spent.seconds for count, spent in runs]
    costs = [spent.cpu / count * 1e6 for count, spent in runs if spent.cpu is not None]
    cpu = statistics.median(costs) if costs else None
    return Timing(name, statistics.median(rates), min(rates), max(rates), cpu, remark)


def whole(case: Case, count: float) -> int:
    """The nearest number of messages that is a number of batches."""
    return max(1, round(count / case.batch)) * case.batch


def once(place: Place, case: Case, contender: Contender, count: int, profiler: Profile | None = None) -> Spent:
    """One run, and a look whether it did its work. Raises BenchmarkError."""
    queue = place.prepare(0 if case.sends else count)
    gc.collect()  # nobody pays for the garbage of the one before
    with profiler or nullcontext():
        spent = contender.run(place, queue, count)
    try:
        if case.sends:
            place.finish(queue, sent=count)
        else:
            place.finish(queue, acked=count if contender.acks else 0)
    except BenchmarkError as error:
        raise BenchmarkError(f"{contender.name}, {count} messages: {error}") from None
    return spent
