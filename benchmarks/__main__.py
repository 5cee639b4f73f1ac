"""``python -m benchmarks``: see --help."""

from __future__ import annotations

import argparse
import cProfile
import os
import platform
import pstats
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from benchmarks import bodies, capacity, ledger, report, timers
from benchmarks.cases import all_cases, compare, once
from benchmarks.java_client import JavaClient, java_client, missing
from benchmarks.places import BenchmarkError, ClassicPlace, FakePlace, Place, fake_place
from benchmarks.results import Comparison, Measure, Results
from redelivery.testing.real import UnavailableError, running

HERE = Path(__file__).parent
OUT = HERE / "out"
PAGE = HERE.parent / "docs" / "benchmarks.md"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Ratios to raw stomp.py and to the Java client. A complete run writes docs/benchmarks.md.",
        epilog="REDELIVERY_ACTIVEMQ_URL=stomp://…,tcp://… uses an ActiveMQ Classic that runs already.",
    )
    parser.add_argument("--rounds", type=int, help="how often each contender runs (5, or 2 with --short)")
    parser.add_argument("--short", action="store_true", help="about a minute: 2 rounds of a tenth, the fake peer only")
    parser.add_argument("--scale", type=float, help="of the number of messages (1, or 0.1 with --short)")
    parser.add_argument("--only", action="append", metavar="TEXT", help="only cases whose name contains it; repeatable")
    parser.add_argument("--fake-only", action="store_true", help="without ActiveMQ Classic and the Java client")
    parser.add_argument("--json", type=Path, default=OUT / "results.json", help="where to (%(default)s)")
    parser.add_argument("--profile", metavar="CASE", help="profile our side of one case on the fake peer, and stop")
    options = parser.parse_args()
    options.fake_only = options.fake_only or options.short
    options.rounds = options.rounds or (2 if options.short else 5)
    options.scale = options.scale or (0.1 if options.short else 1.0)
    return options


def wanted(options: argparse.Namespace, key: str) -> bool:
    return not options.only or any(text in key for text in options.only)


@contextmanager
def places(options: argparse.Namespace, notes: list[str]) -> Iterator[tuple[FakePlace, list[Place], JavaClient | None]]:
    """The fake peer, and whatever else is there; what is not is a note."""
    with ExitStack() as stack:
        fake = stack.enter_context(fake_place())
        found: list[Place] = [fake]
        java = None
        if not options.fake_only:
            try:
                broker = stack.enter_context(running("activemq"))
                found.append(ClassicPlace(broker.title, broker.stomp_url))
                lacking = missing()
                if lacking:
                    notes.append(f"Without the Java client: {lacking}.")
                else:
                    java = stack.enter_context(java_client(broker.openwire_url))
            except UnavailableError as error:
                notes.append(f"Not everything of ActiveMQ Classic: {error}.")
        yield fake, found, java


def run(options: argparse.Namespace) -> Results:
    notes: list[str] = []
    comparisons: list[Comparison] = []
    measures: list[Measure] = []
    with places(options, notes) as (fake, found, java):
        for place in found:
            for case in all_cases(java):
                if wanted(options, case.key):
                    print(f"{place.name}: {case.title} …", file=sys.stderr, flush=True)
                    comparisons.append(compare(place, case, options.rounds, options.scale))
        takes: tuple[tuple[str, Callable[[], tuple[Measure, ...]]], ...] = (
            ("peer", lambda: capacity.measure(fake, options.scale)),
            ("body", lambda: bodies.measure(fake, options.rounds, options.scale)),
            ("ledger", lambda: ledger.measure(options.rounds, options.scale)),
            ("timers", lambda: timers.measure(fake, options.scale)),
        )
        for key, take in takes:
            if wanted(options, key):
                print(f"{key} …", file=sys.stderr, flush=True)
                measures += take()
    machine = {
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "stomp.py": version("stomp.py"),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }
    settings = {"rounds": options.rounds, "scale": options.scale}
    return Results(machine, settings, tuple(comparisons), tuple(measures), tuple(notes))


def profile(options: argparse.Namespace) -> None:
    """Where our own thread spends its time in one case."""
    case = next((case for case in all_cases(None) if case.key == options.profile), None)
    if case is None:
        raise BenchmarkError(
            f"no case {options.profile!r}; there are {', '.join(each.key for each in all_cases(None))}"
        )
    mine = case.contenders[0]
    count = int(mine.counts["fake"] * options.scale)
    profiler = cProfile.Profile()
    with fake_place() as place:
        once(place, case, mine, max(case.batch, 500))
        profiler.enable()
        seconds = once(place, case, mine, count)
        profiler.disable()
    OUT.mkdir(exist_ok=True)
    profiler.dump_stats(OUT / f"{case.key}.prof")
    print(f"{case.title}: {seconds / count * 1e6:.1f} µs per message under the profiler")
    pstats.Stats(profiler).sort_stats("tottime").print_stats(30)


def main() -> None:
    options = arguments()
    try:
        if options.profile:
            profile(options)
            return
        results = run(options)
    except BenchmarkError as error:
        sys.exit(f"benchmarks: {error}")
    print(report.terminal(results))
    report.write_json(results, options.json)
    if options.only or options.fake_only or options.scale < 1:
        return
    plotted = report.write_plot(results, PAGE.with_suffix(".png"))
    PAGE.write_text(report.markdown(results, PAGE.with_suffix(".png").name if plotted else None), encoding="utf-8")
    print(f"{PAGE} is written")


if __name__ == "__main__":
    main()
