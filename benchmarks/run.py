"""A run of the benchmarks: the fake peers, each broker by each protocol, and the measures by themselves."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from cProfile import Profile
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from queue import Empty
from typing import Final, NamedTuple

from proton import ProtonException
from stomp.exception import StompException

from benchmarks import by_themselves, letters, stored
from benchmarks.cases import CASES, Contender, cannot, compare, contenders, names, once, whole
from benchmarks.java_client import NO_TRANSACTIONS, JavaClient
from benchmarks.machine import BenchmarkError, facts
from benchmarks.places import PAIRS, BrokerPlace, Place, fake_place, key
from benchmarks.profiles import functions_of
from benchmarks.record import Behind, Measure, Record
from benchmarks.targets import CASES as TITLES
from benchmarks.targets import SPEED
from redelivery.model.errors import JMSError
from redelivery.testing.brokers.ports import NotStartedError
from redelivery.testing.brokers.real import RealBroker, UnavailableError, running

WITHOUT_TARGET: Final = 3  # rounds at most, at a real broker
# A real broker may fail one case, by an error of one of the four libraries, and the others go on.
FAILURES: Final = (BenchmarkError, JMSError, ProtonException, StompException, Empty, OSError)
BEHIND: Final = 0.95  # of the speed of a Java client: below that, a profile says why
COUNT: Final = 4_000  # messages under a profiler
SPARK: Final = "artemis"


class Plan(NamedTuple):
    """``only``: parts of names."""

    rounds: int
    scale: float
    only: Sequence[str] = ()
    fake_only: bool = False

    @property
    def complete(self) -> bool:
        """True: the page of the documentation may be written."""
        return not (self.only or self.fake_only) and self.scale >= 1

    def wants(self, name: str) -> bool:
        return not self.only or any(text in name for text in self.only)


class Run:
    """The record of a run, and the names of what was begun."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.ran = plan, list[str]()
        self.record = Record(facts(), plan.rounds, plan.scale)

    def all(self) -> None:
        """Run all that is wanted; a broker that is not there is a note. Raises BenchmarkError."""
        rounds, scale = self.plan.rounds, self.plan.scale
        with ExitStack() as stack:
            fakes = {protocol: stack.enter_context(fake_place(protocol)) for protocol in CASES}
            for place in fakes.values():
                self.compare(place)
            takes = {f"{name}/peer": partial(by_themselves.peer, at, scale) for name, at in fakes.items()}
            takes |= {f"{name}/body": partial(by_themselves.bodies, at, rounds, scale) for name, at in fakes.items()}
            takes["body/bare"] = partial(by_themselves.bodies_without_a_client, rounds)
            takes["ledger"] = partial(by_themselves.ledger, rounds, scale)
            takes["console"] = partial(letters.first_page, rounds, scale)
            takes["timers"] = partial(by_themselves.waiting, fakes, scale)
            for name in filter(self.plan.wants, takes):
                self.measured(name, takes[name]())
        if not self.plan.fake_only:
            self.real()
            self.letters()
            self.stored()
        self.spark()

    def begin(self, name: str) -> None:
        print(f"{name} …", file=sys.stderr, flush=True)
        self.ran.append(name)

    def measured(self, name: str, found: Iterable[tuple[str, Measure]]) -> None:
        self.begin(name)
        self.record.measures |= dict(found)

    def fail(self, name: str, error: Exception) -> None:
        self.record.failures[name] = f"{type(error).__name__}: {error}"
        print(f"{name} failed: {self.record.failures[name]}", file=sys.stderr, flush=True)

    def note(self, text: str) -> None:
        if text not in self.record.notes:
            self.record.notes.append(text)

    def cases(self, protocol: str, broker: str) -> list[str]:
        its = (name for name in names() if name.startswith(f"{protocol}/{broker}/") and self.plan.wants(name))
        return [name.rpartition("/")[2] for name in its]

    @contextmanager
    def without(self, what: str) -> Iterator[None]:
        """Note why a broker is not there."""
        try:
            yield
        except (UnavailableError, NotStartedError) as error:
            self.note(f"{what}: {error}.")

    def real(self) -> None:
        """Run every broker in turn, alone."""
        wanted = [pair for pair in PAIRS if any(self.cases(protocol, pair[0]) for protocol in pair[1])]
        with ExitStack() as stack:
            java = None
            with self.without("Without the Java clients"):
                java = stack.enter_context(closing(JavaClient())) if wanted else None
            for name, protocols in wanted:
                with self.without(f"Without {name}"), running(name) as broker:
                    for protocol in protocols:
                        self.compare(BrokerPlace(protocol, broker), broker, java)

    def compare(self, place: Place, broker: RealBroker | None = None, java: JavaClient | None = None) -> None:
        """Run every case at one place."""
        title = f"{place.protocol.upper()}, {place.title}"
        for case in self.cases(place.protocol, place.broker):
            if reason := cannot(place.protocol, place.broker, case):
                self.note(f"No {TITLES[case]} on {title}: {reason}.")
                continue
            name = f"{key(place)}/{case}"
            self.record.places[key(place)] = title
            self.begin(name)
            rounds = self.plan.rounds if broker is None or name in SPEED else min(self.plan.rounds, WITHOUT_TARGET)
            beside = () if java is None or broker is None else self.java(java, broker, place, case)
            if broker is None:
                self.rows(name, place, case, (), rounds)
                continue
            try:
                self.rows(name, place, case, beside, rounds)
            except FAILURES as error:
                self.fail(name, error)
                if beside:  # it may have been the Java client
                    with self.failing(f"{name} without the Java client"):
                        self.rows(name, place, case, (), rounds)

    @contextmanager
    def failing(self, name: str, *errors: type[Exception]) -> Iterator[None]:
        """Note an error of a broker or of one of the libraries."""
        try:
            yield
        except (*FAILURES, *errors) as error:
            self.fail(name, error)

    def rows(self, name: str, place: Place, case: str, java: Sequence[Contender], rounds: int) -> None:
        """Run a case; where a Java client is ahead, look why."""
        rivals = contenders(place.protocol, case)[1:]
        self.record.rows[name] = compare(place, case, (*java, *rivals), rounds, self.plan.scale)
        for row in self.record.beside(name):
            if row.name in [each.name for each in java] and row.ratio < BEHIND:
                self.record.behind[name] = self.why(place, case, row.name, row.ratio)

    def java(self, java: JavaClient, broker: RealBroker, place: Place, case: str) -> tuple[Contender, ...]:
        contender = java.contender(broker, place.protocol, case)
        if contender is not None:
            return (contender,)
        part = ", in transactions" if broker.name in NO_TRANSACTIONS else ""
        title = f"{place.protocol.upper()}, {place.title}{part}"
        self.note(f"No Java client beside {title}: it speaks no OpenWire, and its AMQP 1.0 cannot do it.")
        return ()

    def why(self, place: Place, case: str, against: str, ratio: float) -> Behind:
        """Return the functions that cost most, and how long we wait."""
        count = whole(case, self.plan.scale * COUNT)
        mine, *_ = contenders(place.protocol, case)
        plain, profiler = once(place, case, mine, count), Profile()
        once(place, case, mine, count, profiler)
        functions = {each.name: each.share for each in functions_of(profiler, count, 5).functions}
        return Behind(against, ratio, max(0.0, 1 - (plain.cpu or 0.0) / plain.seconds), functions)

    def letters(self) -> None:
        """Run the commands for dead letters, broker by broker."""
        for name, protocols in letters.PAIRS.items():
            if not (wanted := [each for each in protocols if self.plan.wants(f"letters/{name}/{each}")]):
                continue
            with self.without(f"Dead letters without {name}"), running(name) as broker:
                for each in wanted:
                    title, rounds = f"{each.upper()}, {broker.title}", min(self.plan.rounds, WITHOUT_TARGET)
                    found = letters.commands(f"{each}-{name}", title, broker.urls[each], rounds, self.plan.scale)
                    self.measured(f"letters/{name}/{each}", found)

    def stored(self) -> None:
        """Run the embedded broker with a store; without Classic there is a note."""
        wanted = [name for name in stored.NAMES if self.plan.wants(name)]
        with tempfile.TemporaryDirectory(prefix="bench-stored-") as name:
            folder = Path(name)
            if stored.FILL in wanted:
                wanted.remove(stored.FILL)
                self.measured(stored.FILL, stored.fill(folder / "filled.db"))
            if not wanted:
                return
            beside = self.without("No embedded broker beside ActiveMQ Classic")
            with beside, running("activemq") as theirs, stored.embedded(folder) as ours:
                for each in wanted:
                    self.begin(each)
                    protocol = each.partition("/")[2]
                    for step in stored.compare(protocol, theirs.urls[protocol], ours[protocol]):
                        self.record.stored[f"{protocol}/{step.title}"] = step

    def spark(self) -> None:
        """Run the part that needs Spark; without it, or the broker, there is a note."""
        places = [] if self.plan.fake_only else [f"spark/{SPARK}/{each}" for each in ("stomp", "amqp", "latency")]
        wanted = [name for name in ("spark/fake", *places) if self.plan.wants(name)]
        if not wanted:
            return
        if find_spec("pyspark") is None:
            self.note("Without Spark: pyspark is not installed.")
            return
        from pyspark.errors import PySparkException

        from benchmarks import spark_cases
        from benchmarks.spark_session import spark_session

        rounds, scale = self.plan.rounds, self.plan.scale
        with self.without(f"Spark without {SPARK}"), spark_session() as spark, ExitStack() as stack:
            if "spark/fake" in wanted:
                wanted.remove("spark/fake")
                with self.failing("spark/fake", PySparkException):
                    self.measured("spark/fake", spark_cases.fake(spark, rounds, scale))
            broker = stack.enter_context(running(SPARK)) if wanted else None
            for name in wanted:
                assert broker is not None, "it is wanted"
                last = name.rpartition("/")[2]
                with self.failing(name, PySparkException):
                    if last == "latency":
                        self.measured(name, spark_cases.latency(spark, BrokerPlace("stomp", broker), scale))
                    else:
                        self.measured(name, spark_cases.of_place(spark, BrokerPlace(last, broker), rounds, scale))
