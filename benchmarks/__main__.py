"""``python -m benchmarks``: see --help."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path

from benchmarks import plot, profiling, quiet, report, runner, spread, update
from benchmarks.plan import CASES, Plan, names
from benchmarks.results import BenchmarkError, Results

HERE = Path(__file__).parent
OUT = HERE / "out"
PAGE = HERE.parent / "docs" / "benchmarks.md"
COMPLETE, SELECTED = PAGE.with_suffix(".json"), OUT / "selected.json"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Ratios to raw stomp.py, raw proton and Java clients. A complete run writes docs/benchmarks.md.",
        epilog="REDELIVERY_ACTIVEMQ_URL=stomp://…,amqp://…,tcp://… uses an ActiveMQ Classic that runs already; "
        "the same for ARTEMIS, QPID, RABBITMQ, HORNETQ.",
    )
    parser.add_argument("--rounds", type=int, help="how often each contender runs (5, or 2 with --short)")
    parser.add_argument(
        "--short", action="store_true", help="minutes: 2 rounds of a tenth; of the real brokers what has a target"
    )
    parser.add_argument("--scale", type=float, help="of the length of a run (1, or 0.1 with --short)")
    parser.add_argument(
        "--only",
        action="append",
        metavar="TEXT",
        help="only cases whose name, as in amqp/artemis/auto, contains it; repeatable",
    )
    parser.add_argument("--fake-only", action="store_true", help="without real brokers and Java clients")
    parser.add_argument(
        "--update",
        action="store_true",
        help="with --only: replace these cases of the last complete run, in its JSON and on the page",
    )
    parser.add_argument(
        "--judge", action="store_true", help="measure nothing: judge the last complete run by the targets of today"
    )
    parser.add_argument(
        "--json", type=Path, help=f"where to ({COMPLETE.relative_to(HERE.parent)}; {SELECTED.name} unless complete)"
    )
    parser.add_argument(
        "--profile", metavar="CASE", help="profile our side of one case, as in amqp/fake/auto or stomp/auto, and stop"
    )
    parser.add_argument("--busy", action="store_true", help="run though other programs use the processors")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    rounds = options.rounds or (2 if options.short else 5)
    scale = options.scale or (0.1 if options.short else 1.0)
    plan = Plan(rounds, scale, tuple(options.only or ()), options.fake_only, options.short)
    whole = options.update or options.judge or plan.complete
    file = options.json or (COMPLETE if whole else SELECTED)
    try:
        if options.profile:
            print(profiling.listing(options.profile, scale, OUT))
            return
        if options.judge:
            write(update.judged(update.read(file), CASES), file, page=True)
            return
        if not options.busy:
            quiet.check()
        earlier = complete_run(file, plan) if options.update else None
        results = runner.run(plan)
        if options.busy:
            results = said_busy(results)
    except BenchmarkError as error:
        sys.exit(f"benchmarks: {error}")
    print(report.terminal(results))
    if earlier is not None:
        results = update.judged(update.merged(earlier, results, names()), CASES)
    write(results, file, page=whole)
    if results.failures:
        sys.exit(f"benchmarks: {len(results.failures)} cases failed")


def complete_run(file: Path, plan: Plan) -> Results:
    """What is to be updated. Raises BenchmarkError."""
    if not plan.only:
        raise BenchmarkError("--update replaces what --only names: name something")
    earlier = update.read(file)
    update.check(earlier, runner.machine(), plan.settings)
    return earlier


def said_busy(results: Results) -> Results:
    """The page has to say so."""
    ran = ", ".join(results.ran)
    note = f"Other programs were at work meanwhile, so that the ratios say something, and the times little: {ran}."
    return replace(results, notes=(*results.notes, note))


def write(results: Results, file: Path, *, page: bool) -> None:
    """As JSON, and as the page of the documentation with its plots. Raises OSError."""
    report.write_json(results, file)
    if page:
        bars, curves = PAGE.with_suffix(".png"), PAGE.with_name("benchmarks-spark.png")
        plotted, curved = plot.write(results, bars), plot.write_curves(results, curves)
        drawn = curved or curves.exists()  # a record that was made of the page has no curves, and the picture stays
        text = report.markdown(results, bars.name if plotted else None, curves.name if drawn else None)
        text += spread.kept(PAGE.read_text(encoding="utf-8"))  # measured apart
        PAGE.write_text(text, encoding="utf-8")
        print(f"{PAGE} is written")


if __name__ == "__main__":
    main()
