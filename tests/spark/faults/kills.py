"""kill -9 of each process at each step of the protocol: every step is next to an operation of the store."""

from __future__ import annotations

from itertools import count
from random import Random
from time import sleep
from typing import Any, Literal

from tests.spark.faults.cases import CLUSTER, RETRIES, Case, Play, add, case
from tests.spark.faults.jobs import Outcome
from tests.spark.faults.orders import Order
from tests.spark.faults.stage import Stage, summary

# What the second batch writes, so that there is something to lose before and after it.
SEGMENT = "seg/000000000002-0000.arrow"
CONFIRMED = "seg/000000000002-0000.*ok"
RECORD = "commits/000000000002.json"
_SEED = count(20_26)

# At which step: before or after, which operation, on what, how many are let by.
_RECEIVER: dict[str, dict[str, Any]] = {
    "received, not published": {"when": "before", "operation": "write", "name": SEGMENT},
    "published, not committed at the broker": {"when": "after", "operation": "write", "name": SEGMENT},
    "committed at the broker, not confirmed": {"when": "before", "operation": "write", "name": CONFIRMED},
    "confirmed": {"when": "after", "operation": "write", "name": CONFIRMED},
}
_DRIVER: dict[str, dict[str, Any]] = {
    "the query's turn taken": {"when": "after", "operation": "write", "name": "epochs/*"},
    **_RECEIVER,
    "before the batch's record": {"when": "before", "operation": "write", "name": "commits/*", "skip": 1},
    "after the batch's record": {"when": "after", "operation": "write", "name": "commits/*", "skip": 1},
    "between the deletions": {"when": "after", "operation": "delete", "name": "seg/*", "skip": 1},
}
_COMMIT = {step: _DRIVER[step] for step in _DRIVER if step not in _RECEIVER}
_TASK: dict[str, dict[str, Any]] = {
    "before it receives": {"when": "before", "operation": "read", "name": "epochs/*"},
    **_RECEIVER,
    "between publication and the check of the record": {"when": "before", "operation": "read", "name": RECORD},
    "while it reads": {"when": "after", "operation": "read", "name": SEGMENT},
}

_SHORT_RUNNER = ("published, not committed at the broker", "before the batch's record")
_SHORT_COMMIT = ("before the batch's record",)
_SHORT_TASK = ("before it receives", "received, not published", "published, not committed at the broker")


def dies(order: Order, *, well: bool) -> Play:
    """The order is carried out in the first run; ``well``: which ends well all the same, by retries."""

    def play(stage: Stage) -> str:
        stage.send()
        stage.order(order)
        first = stage.run()
        assert stage.orders.happened() == 1, f"nobody was killed: {first}"
        assert first.well == well, f"{first}: {first.error}"
        return summary(stage.complete(first))

    return play


def _kills(
    whom: str,
    do: Literal["kill", "all", "driver"],
    receiver: Literal["driver", "executor"],
    who: Literal["runner", "worker"],
    steps: dict[str, dict[str, Any]],
    short: tuple[str, ...] = (),
    *,
    well: bool = False,
) -> None:
    for step, where in steps.items():
        order = Order(do=do, who=who, **where)
        add(Case(f"{receiver}: {whom} killed: {step}", receiver, dies(order, well=well), RETRIES, step in short))


_kills("runner", "kill", "driver", "runner", _DRIVER, _SHORT_RUNNER)
_kills("runner", "kill", "executor", "runner", _COMMIT, _SHORT_COMMIT)
_kills("worker", "kill", "executor", "worker", _TASK, _SHORT_TASK, well=True)
_kills("worker", "kill", "driver", "worker", {"while it reads": _TASK["while it reads"]}, well=True)
_kills("all", "all", "driver", "runner", _DRIVER, ("published, not committed at the broker",))
_kills("all", "all", "executor", "worker", _TASK)
_kills("all", "all", "executor", "runner", _COMMIT)
_kills("driver", "driver", "driver", "runner", {"published": _RECEIVER["published, not committed at the broker"]})
_kills("driver", "driver", "executor", "worker", {"published": _RECEIVER["published, not committed at the broker"]})


@case("runner killed between publication and commit, and again when the ids in doubt are written", short=("driver",))
def killed_twice(stage: Stage) -> str:
    """What is redelivered after the second kill is known from the ids in doubt, or from the segment."""
    stage.send()
    published: dict[str, Any] = {"when": "after", "operation": "write", "name": SEGMENT}
    runner = stage.receiver == "driver"  # which receives; a task whose worker alone is killed is tried again
    stage.order(
        Order(do="kill", who="runner", **published) if runner else Order(do="all", who="worker", **published),
        Order(do="kill", when="after", operation="write", name="doubt/*", who="runner"),
    )
    outcomes = stage.complete(stage.run())
    assert stage.orders.happened() == 2
    return summary(outcomes)


@case("all killed before the table is written")
def before_the_table(stage: Stage) -> str:
    return _in_batch(stage, "before")


@case("all killed after the table is written", short=("executor",))
def after_the_table(stage: Stage) -> str:
    return _in_batch(stage, "after")


def _in_batch(stage: Stage, when: str) -> str:
    stage.send()
    stage.settings["kill"] = when
    first = stage.run()
    assert first.died
    return summary(stage.complete(first))


@case("all killed at random moments")
def at_random_moments(stage: Stage) -> str:
    """Of queries that go on, while messages come."""
    chance = Random(next(_SEED))  # noqa: S311  # a test that can be repeated
    for _ in range(3):
        stage.send(MESSAGES_EACH)
        started = stage.start(forever=True)
        assert isinstance(started, int), started
        sleep(chance.uniform(0.5, 8.0))
        stage.job_now().kill()
    return summary(stage.complete(Outcome(died=True)))


MESSAGES_EACH = 150


@case("executor's JVM killed: published, not committed at the broker", receivers=("executor",), master=CLUSTER)
def executor_published(stage: Stage) -> str:
    return _executor(stage, "after", "write")


@case("executor's JVM killed: received, not published", receivers=("executor",), master=CLUSTER)
def executor_received(stage: Stage) -> str:
    return _executor(stage, "before", "write")


@case("executor's JVM killed while it reads", receivers=("driver",), master=CLUSTER)
def executor_reads(stage: Stage) -> str:
    return _executor(stage, "after", "read")


def _executor(stage: Stage, when: Literal["before", "after"], operation: Literal["write", "read"]) -> str:
    stage.send()
    stage.order(Order(do="jvm", when=when, operation=operation, name=SEGMENT, who="worker"))
    first = stage.run()
    assert stage.orders.happened() == 1, f"nobody was killed: {first}"
    return summary(stage.complete(first))
