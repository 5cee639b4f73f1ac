"""``python -m benchmarks``: see --help."""

from __future__ import annotations

import argparse
import sys
from typing import Final

from benchmarks import page, spread
from benchmarks.figures import deliver
from benchmarks.machine import HERE, BenchmarkError, check_quiet, facts
from benchmarks.record import Record, read

PAGE: Final = HERE / "docs" / "benchmarks.md"
COMPLETE: Final = PAGE.with_suffix(".json")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Ratios to raw stomp.py, raw proton and Java clients. A complete run writes docs/benchmarks.md.",
        epilog="REDELIVERY_ACTIVEMQ_URL=stomp://…,amqp://…,tcp://… uses an ActiveMQ Classic that runs already; "
        "the same for ARTEMIS, QPID, RABBITMQ, HORNETQ.",
    )
    add = parser.add_argument
    add("--rounds", type=int, default=5, help="how often each contender runs (5)")
    add("--scale", type=float, default=1.0, help="of the length of a run (1)")
    add("--only", action="append", default=[], metavar="TEXT", help="cases with it in their name; repeatable")
    add("--fake-only", action="store_true", help="without real brokers and Java clients")
    add("--update", action="store_true", help="with --only: replace these cases of the last complete run")
    add("--judge", action="store_true", help="measure nothing: write the page by the targets of today")
    add("--check", action="store_true", help="measure and write nothing: exit code 1 where the page is another")
    add("--busy", action="store_true", help="run though other programs use the processors")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    try:
        if options.check or options.judge:
            write(read(COMPLETE), check=options.check)
        else:
            run(options)
    except BenchmarkError as error:
        sys.exit(f"benchmarks: {error}")


def run(options: argparse.Namespace) -> None:
    """Measure. Raises BenchmarkError."""
    from benchmarks.run import Plan, Run  # the page itself is made without proton

    plan = Plan(options.rounds, options.scale, options.only, options.fake_only)
    earlier = read(COMPLETE) if options.update else None
    if earlier is not None:
        if not options.only:
            raise BenchmarkError("--update replaces what --only names: name something")
        earlier.check(facts(), plan.rounds, plan.scale)
    if not options.busy:
        check_quiet()
    found = Run(plan)
    found.all()
    record = found.record
    if options.busy:
        said = "Other programs were at work meanwhile, so that the ratios say something, and the times little"
        record.notes.append(f"{said}: {', '.join(found.ran)}.")
    print(page.terminal(record))
    if earlier is not None:
        earlier.update(record, found.ran)
    if earlier is not None or plan.complete:
        (earlier or record).write(COMPLETE)
        write(earlier or record)
    if record.failures:
        raise BenchmarkError(f"{len(record.failures)} cases failed")


def write(record: Record, *, check: bool = False) -> None:
    """Write the page of the documentation with its picture; or see whether it is so written."""
    if not check:
        page.draw(record, PAGE.with_suffix(".png"))
    text = "\n".join([page.page(record), *spread.section()])  # measured apart
    deliver(PAGE, text, check=check)


if __name__ == "__main__":
    main()
