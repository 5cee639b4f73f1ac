"""The whole run: the fake peers, each broker by each protocol, and what is measured by itself."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from queue import Empty
from typing import Final

from proton import ProtonException
from stomp.exception import StompException

from benchmarks import bodies, capacity, ledger, profiling, spark_runner, stored, timers
from benchmarks.cases import Case, Contender, Effort, compare
from benchmarks.java_client import NO_TRANSACTIONS, JavaClient, java_client, missing
from benchmarks.places import PAIRS, BrokerPlace, Place, fake_place, key
from benchmarks.plan import CASES, Found, Plan
from benchmarks.results import BenchmarkError, Measure, Results
from redelivery.model.errors import JMSError
from redelivery.testing.brokers.real import RealBroker, UnavailableError, running

WITHOUT_TARGET: Final = 3  # rounds at most, at a real broker
# What a real broker may do to one case, and the others go on: what the four libraries raise.
FAILURES: Final = (BenchmarkError, JMSError, ProtonException, StompException, Empty, OSError)
BEHIND: Final = 0.95  # of the speed of a Java client: below that, a profile says why


def run(plan: Plan) -> Results:
    """All of it. What is not there is a note. Raises BenchmarkError."""
    found = Found()
    with ExitStack() as stack:
        fakes = {protocol: stack.enter_context(fake_place(protocol)) for protocol in CASES}
        for place in fakes.values():
            _compare_all(plan, found, place)
        takes: tuple[tuple[str, Callable[[], tuple[Measure, ...]]], ...] = (
            *(
                (f"{name}/peer", lambda place=place: capacity.measure(place, plan.scale))
                for name, place in fakes.items()
            ),
            *(
                (f"{name}/body", lambda place=place: bodies.measure(place, plan.rounds, plan.scale))
                for name, place in fakes.items()
            ),
            ("body/bare", lambda: bodies.without_a_client(plan.rounds)),
            ("ledger", lambda: ledger.measure(plan.rounds, plan.scale)),
            ("timers", lambda: timers.measure(tuple(fakes.values()), plan.scale)),
        )
        for name, take in takes:
            if plan.wants(name):
                found.begin(name)
                found.measures += take()
    if not plan.fake_only:
        _real(plan, found)
    stored.run(plan, found)
    spark_runner.run(plan, found)
    return Results(
        machine(),
        plan.settings,
        tuple(found.comparisons),
        tuple(found.measures),
        tuple(found.profiles),
        tuple(found.notes),
        tuple(found.failures),
        curves=tuple(found.curves),
        stored=tuple(found.stored),
        ran=tuple(found.ran),
    )


def _real(plan: Plan, found: Found) -> None:
    """Every broker in turn, alone."""
    wanted = [pair for pair in PAIRS if any(plan.cases(protocol, pair[0]) for protocol in pair[1])]
    with ExitStack() as stack:
        java = None
        lacking = missing()
        if lacking:
            found.notes.append(f"Without the Java clients: {lacking}.")
        elif wanted and not plan.targets_only:
            java = stack.enter_context(java_client())
        for name, protocols in wanted:
            try:
                with running(name) as broker:
                    for protocol in protocols:
                        _compare_all(plan, found, BrokerPlace(protocol, broker), broker, java)
            except UnavailableError as error:
                found.notes.append(f"Without {name}: {error}.")


def _compare_all(
    plan: Plan, found: Found, place: Place, broker: RealBroker | None = None, java: JavaClient | None = None
) -> None:
    """Every case at one place."""
    for case in plan.cases(place.protocol, place.broker):
        if not case.runs_at(place.broker):
            found.notes.append(f"No {case.title} on {place.name}: {case.cannot[place.broker]}.")
            continue
        name = f"{key(place)}/{case.key}"
        found.begin(name)
        rounds = plan.rounds
        if broker is not None and not case.has_target(place.protocol, place.broker):
            rounds = min(rounds, WITHOUT_TARGET)
        beside = list(_java(case, place, broker, java, found.notes))
        effort = Effort(rounds, plan.scale)
        try:
            compared = compare(place, case, (*beside, *case.contenders[1:]), effort)
        except FAILURES as error:
            if broker is None:
                raise
            found.fail(name, error)
            if not beside:
                continue
            try:  # it may have been the Java client
                compared, beside = compare(place, case, case.contenders[1:], effort), []
            except FAILURES as again:
                found.fail(name, again, " without the Java client")
                continue
        found.comparisons.append(compared)
        ratios = {other.name: compared.ratio(other) for other in compared.others}
        found.profiles += [
            profiling.why(place, case, each.name, ratios[each.name], plan.scale)
            for each in beside
            if ratios[each.name] < BEHIND
        ]


def _java(
    case: Case, place: Place, broker: RealBroker | None, java: JavaClient | None, notes: list[str]
) -> Iterator[Contender]:
    if java is None or broker is None or case.java is None:
        return
    contender = java.contender(broker, place.protocol, case.java)
    if contender is None:
        part = ", in transactions" if broker.name in NO_TRANSACTIONS else ""
        note = f"No Java client beside {place.name}{part}: it speaks no OpenWire, and its AMQP 1.0 cannot do it."
        if note not in notes:
            notes.append(note)
        return
    yield contender


def machine() -> dict[str, str]:
    """What the numbers depend on, and the date."""
    return {
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "stomp.py": version("stomp.py"),
        "proton": version("python-qpid-proton"),
        **_installed("pyspark", "pyarrow"),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def _installed(*names: str) -> dict[str, str]:
    found = {}
    for name in names:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
