"""What was tried again because a machine or a broker was held up: counted over the whole run, and limited.

A retry that is never seen hides a defect, so each kind has a budget: a run that needs more of it fails.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

import pytest
from _pytest.runner import runtestprotocol
from tests.run import calm, scopes

from redelivery.testing.brokers.real import RealBroker

MEASURED = "delays measured again"
PLAYED = "recorded scenarios played again"
STALLED = "Java clients that RabbitMQ stopped answering"
SPARK = "Spark programs run again"
HIDDEN = "tests run again, as Artemis or HornetQ may have hidden a message"

# About three times what a machine with two processors and six processes of tests was seen to need (55 plays).
BUDGET: Final[Mapping[str, int]] = {MEASURED: 6, PLAYED: 150, STALLED: 4, SPARK: 9, HIDDEN: 4}

# For a test that drops a STOMP connection and then waits for what it held: in about 1 of 150 drops these brokers keep
# that from everybody until they are restarted (docs/brokers/artemis.md). There such a test that fails is run again,
# with new fixtures; before the last time the broker is started again.
may_hide = pytest.mark.may_hide
_HIDING: Final = ("artemis", "hornetq")
_PLAYS: Final = 3
_running: Final[dict[str, RealBroker]] = {}  # in this process, by name

# Spark gives a Python process 10 s to begin, which a busy machine may not keep: it says this then.
TOO_SLOW: Final = "failed to connect back"

_PROPERTY = "again"
_noted: list[str] = []  # in this process, since the last report
_lock = threading.Lock()


def note(kind: str) -> None:
    """Count one; any thread. It is told with the report of the test that ends next in this process."""
    assert kind in BUDGET, kind
    with _lock:
        _noted.append(kind)


@contextlib.contextmanager
def hides(broker: RealBroker) -> Iterator[RealBroker]:
    """It hides messages: it is started again before the last play of a test that it may hide one from."""
    _running[broker.name] = broker
    try:
        yield broker
    finally:
        del _running[broker.name]


def spark_tries(most: int) -> Iterator[int]:
    """Numbers from 0: a Spark program is run until it does not say `TOO_SLOW`, again when the machine is calm."""
    for number in range(most):
        if number:
            note(SPARK)
            calm.wait()
        yield number


def play(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Run a test that is marked so, again where it fails; only the last play is reported."""
    where = f"{scopes.scope(item)} {item.name}"  # which has its parameters
    plays = _PLAYS if any(name in where for name in _HIDING) else 1
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for number in range(1, plays + 1):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if number == plays or not any(report.failed for report in reports):
            break
        if isinstance(item, pytest.Function):
            item._initrequest()  # fixtures of its own  # pytest has no public name for it
        if number == plays - 1:
            _start_again(where)
    reports[-1].user_properties += [(_PROPERTY, HIDDEN)] * (number - 1)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)


def _start_again(where: str) -> None:
    for name, broker in _running.items():
        if name in where and broker.provider is not None:
            broker.kill()
            broker.restart()


def hand_over(report: pytest.TestReport) -> None:
    """Into the report of a test, which pytest-xdist brings to the process that counts."""
    with _lock:
        report.user_properties += [(_PROPERTY, kind) for kind in _noted]
        _noted.clear()


def count(report: pytest.TestReport) -> Counter[str]:
    """What the report of a phase brought, by kind."""
    return Counter(str(kind) for name, kind in report.user_properties if name == _PROPERTY)


def too_many(counted: Mapping[str, int]) -> list[str]:
    """What is over its budget, a line for each kind."""
    return [
        f"{kind}: {number}, more than the budget of {BUDGET[kind]} (tests/run/again.py)"
        for kind, number in counted.items()
        if number > BUDGET[kind]
    ]
