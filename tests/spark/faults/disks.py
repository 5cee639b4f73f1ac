"""Disks of walLocation that fail: full, broken, read-only, slow."""

from __future__ import annotations

from typing import Any

from tests.spark.faults.cases import case
from tests.spark.faults.kills import CONFIRMED, SEGMENT
from tests.spark.faults.orders import Order
from tests.spark.faults.stage import Stage, summary

BOTH = ("driver", "executor")
_WRITES: dict[str, Any] = {"when": "before", "operation": "write", "times": 0}
_SAYS = {"full": "No space left on device", "broken": "Input/output error", "readonly": "Read-only file system"}


def _fails(stage: Stage, order: Order) -> str:
    """The query fails and names the file; when the disk is repaired, it goes on."""
    stage.send()
    stage.order(order)
    first = stage.run()
    assert stage.orders.happened() >= 1, f"no operation has failed: {first}"
    assert "StoreError" in first.cause, first.error
    assert _SAYS[order.do] in first.cause, first.error
    stage.orders.forget()
    return summary(stage.complete(first))


def _retried(stage: Stage, order: Order) -> str:
    """A task fails; its next attempt reads what is there."""
    stage.send()
    stage.order(order)
    first = stage.run()
    assert stage.orders.happened() >= 1, f"no operation has failed: {first}"
    assert first.well, first.error
    return summary(stage.complete(first))


@case("disk full when a segment is written", short=BOTH)
def full_segment(stage: Stage) -> str:
    return _fails(stage, Order(do="full", name=SEGMENT, **_WRITES))


@case("disk full when a batch is committed")
def full_commit(stage: Stage) -> str:
    return _fails(stage, Order(do="full", name="commits/*", **_WRITES))


@case("disk broken (EIO) when a segment is written", short=("driver",))
def broken_segment(stage: Stage) -> str:
    return _fails(stage, Order(do="broken", name=SEGMENT, **_WRITES))


@case("disk broken (EIO) between the broker's commit and its mark", short=("executor",))
def broken_mark(stage: Stage) -> str:
    order = Order(do="broken", name=CONFIRMED, **_WRITES)
    return _fails(stage, order) if stage.receiver == "driver" else _retried(stage, order)


@case("disk broken (EIO) when a batch is committed")
def broken_commit(stage: Stage) -> str:
    return _fails(stage, Order(do="broken", name="commits/*", **_WRITES))


@case("disk broken (EIO) when segments are deleted", receivers=("driver",))
def broken_delete(stage: Stage) -> str:
    return _fails(stage, Order(do="broken", when="before", operation="delete", name="seg/*", times=0))


@case("disk broken (EIO) when a segment is read, always", short=("driver",))
def broken_read(stage: Stage) -> str:
    return _fails(stage, Order(do="broken", when="before", operation="read", name=SEGMENT, who="worker", times=0))


@case("disk broken (EIO) when a segment is read, once", short=("executor",))
def broken_read_once(stage: Stage) -> str:
    return _retried(stage, Order(do="broken", when="before", operation="read", name=SEGMENT, who="worker"))


@case("disk becomes read-only", short=("driver",))
def read_only(stage: Stage) -> str:
    return _fails(stage, Order(do="readonly", name="*", skip=8, **_WRITES))


@case("disk takes a second for each write", short=("driver",), maxMessagesPerBatch="200")
def slow(stage: Stage) -> str:
    stage.send()
    stage.order(Order(do="slow", name="*", **_WRITES))
    first = stage.run()
    assert stage.orders.happened() >= 5
    assert first.well, first.error
    return summary(stage.complete(first))
