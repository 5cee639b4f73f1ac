"""Attempts that Spark believes to be dead, and that go on when another one has done their work."""

from __future__ import annotations

from pathlib import Path
from time import sleep
from typing import Literal

from tests.spark.faults.cases import Case, Play, add, case
from tests.spark.faults.kills import SEGMENT
from tests.spark.faults.orders import Order
from tests.spark.faults.stage import Stage, summary, until

_HELD: dict[str, Literal["before", "after"]] = {"received, not published": "before", "published": "after"}
# The second batch is number 1; the log learns of a batch when the next one is planned, and keeps one more.
_WAKES = {"while its batch runs": 1, "when its batch is committed": 2, "when its segment is deleted": 3}


def zombie(held: Literal["before", "after"], wakes: int) -> Play:
    """A task of the second batch loses its JVM, its retry wins; it goes on while batch number ``wakes`` runs."""

    def play(stage: Stage) -> str:
        stage.send()
        stage.order(Order(do="zombie", when=held, operation="write", name=SEGMENT, who="worker"))
        flag = stage.folder / "batch"
        stage.settings |= {"batch": wakes, "touch": str(flag)}
        started = stage.start()
        until(flag.exists, f"batch {wakes}")
        assert stage.orders.happened() == 1, "no attempt was held"
        stage.orders.open_gate()
        until(stage.orders.went_on, "waking")
        _settled(stage, flag)
        return summary(stage.complete(stage.finish(started)))

    return play


def _settled(stage: Stage, flag: Path) -> None:
    """The batch goes on when the zombie has had the time to do what it can."""
    before, now = None, stage.wal_file("*/*")
    while before != now:
        sleep(0.7)
        before, now = now, stage.wal_file("*/*")
    flag.with_name(f"{flag.name}.seen").touch()


for _name, _when in _HELD.items():
    for _then, _batch in _WAKES.items():
        add(
            Case(
                f"executor: zombie task: {_name}, wakes {_then}",
                "executor",
                zombie(_when, _batch),
                short=(_when, _batch) in {("before", 2), ("before", 3), ("after", 3)},
            )
        )


@case("zombie runner: received, not published, wakes under a new driver", receivers=("driver",))
def runner_received(stage: Stage) -> str:
    return _runner(stage, "before", meanwhile=True)


@case("zombie runner: published, wakes under a new driver", receivers=("driver",), short=("driver",))
def runner_published(stage: Stage) -> str:
    return _runner(stage, "after", meanwhile=True)


@case("zombie runner: received, not published, wakes when the new query has ended", receivers=("driver",))
def runner_late(stage: Stage) -> str:
    return _runner(stage, "before", meanwhile=False)


def _runner(stage: Stage, held: Literal["before", "after"], *, meanwhile: bool) -> str:
    stage.send()
    stage.options["prefetch"] = "20"  # what the zombie holds, nobody else gets; 20 KiB on Artemis over STOMP
    where = {"when": held, "operation": "write", "name": SEGMENT, "who": "runner"}
    stage.order(Order(do="driver", **where), Order(do="freeze", **where))  # type: ignore[arg-type]  # as Order checks
    first = stage.run()
    assert first.died
    assert stage.orders.happened() == 2
    flag = stage.folder / "batch"
    stage.settings |= {"batch": 1, "touch": str(flag)} if meanwhile else {}
    started = stage.start()
    if meanwhile:
        until(flag.exists, "a batch of the new driver")
        stage.orders.open_gate()
        until(stage.orders.went_on, "waking")
        _settled(stage, flag)
    outcomes = [first, stage.finish(started)]
    stage.orders.open_gate()
    until(stage.orders.went_on, "waking")
    return summary(stage.complete(*outcomes))
