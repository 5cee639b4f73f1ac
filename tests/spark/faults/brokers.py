"""Brokers that are down, die, or cut the line at the commit."""

from __future__ import annotations

from time import sleep
from typing import Literal

from tests.spark.faults.cases import case
from tests.spark.faults.kills import SEGMENT
from tests.spark.faults.orders import Order
from tests.spark.faults.stage import Stage, summary, until

from redelivery.testing.brokers.ports import free_ports

BOTH = ("driver", "executor")


@case("broker down at the start, and stays so", short=("driver",))
def down(stage: Stage) -> str:
    stage.send()
    port = free_ports(["nobody"])["nobody"]
    scheme = stage.broker.url.partition(":")[0]
    first = stage.run(url=f"{scheme}://127.0.0.1:{port}", maxReconnectTime="2 s")
    assert f"127.0.0.1:{port}" in first.cause, first.error
    assert "maxReconnectTime" in first.cause, first.error
    return summary(stage.complete(first))


@case("broker down at the start, and comes up", on="real")
def comes_up(stage: Stage) -> str:
    stage.send()
    stage.broker.kill()
    started = stage.start()
    sleep(5)
    stage.broker.restart()
    return summary(stage.complete(stage.finish(started)))


@case("broker killed: received, not published", on="real")
def killed_received(stage: Stage) -> str:
    return _killed(stage, "before")


@case("broker killed: published, not committed", on="real")
def killed_published(stage: Stage) -> str:
    return _killed(stage, "after")


def _killed(stage: Stage, when: Literal["before", "after"]) -> str:
    """The receiver is held while the broker is killed and started again."""
    stage.send()
    stage.order(Order(do="gate", when=when, operation="write", name=SEGMENT))
    started = stage.start()
    until(stage.orders.happened, "the receiver at the gate")
    stage.broker.kill()
    stage.broker.restart()
    stage.orders.open_gate()
    return summary(stage.complete(stage.finish(started)))


@case("broker killed while batches are written, twice", on="real")
def killed_in_between(stage: Stage) -> str:
    stage.send()
    started = stage.start(forever=True)
    assert isinstance(started, int), started
    for _ in range(2):
        before = len(stage.rows())
        stage.send()
        until(lambda before=before: len(stage.rows()) > before, "a batch", 120)  # type: ignore[misc]  # no float
        stage.broker.kill()
        stage.broker.restart()
    until(lambda: len(stage.rows()) >= len(stage.sent), "the rest")
    stopped = stage.job_now().stop(started)
    return summary(stage.complete(stopped, stage.run()))  # once more: commits in doubt bring messages again


@case("line cut before the commit", on="embedded", short=BOTH)
def cut_before(stage: Stage) -> str:
    stage.send()
    assert stage.broker.faults is not None
    fault = stage.broker.faults.drop("COMMIT", nth=2)
    outcomes = stage.complete()
    assert fault.hits == 1
    return summary(outcomes)


@case("line cut after the commit", on="embedded", short=BOTH)
def cut_after(stage: Stage) -> str:
    stage.send()
    assert stage.broker.faults is not None
    fault = stage.broker.faults.drop_after("COMMIT", nth=2)
    outcomes = stage.complete()
    assert fault.hits == 1
    return summary(outcomes)
