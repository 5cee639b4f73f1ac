"""The cases by name: what is played on a stage, with which receiver and Spark, and on which brokers.

A play raises AssertionError where the case did not come about, and returns what was seen, in words; what became of the
messages is judged by `Stage.verdict` afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from tests.spark.faults.stage import Stage

# What `make test` plays of the cases marked ``short``: each way to fail once, unless a test without Spark says the same
# (test_driver_reader.py, test_executor_reader.py, test_wal_claims.py, test_wal_zombies.py). `make test-all` plays all.
FIRST: Final = frozenset(
    (
        "driver: line cut after the commit",
        "executor: line cut before the commit",
        "driver: runner killed between publication and commit, and again when the ids in doubt are written",
        "executor: all killed after the table is written",
        "executor: disk full when a segment is written",
        "driver: a lane killed: published, not committed at the broker",
        "executor: zombie task: published, wakes when its segment is deleted",
    )
)

Play: TypeAlias = Callable[[Stage], str]

LOCAL = "local[2]"
RETRIES = "local[2,3]"
CLUSTER = "local-cluster[2,1,1024]"


@dataclass(frozen=True, slots=True)
class Case:
    """``short``: a part of the short form. ``on``: an embedded broker only, a real one only, or either."""

    name: str
    receiver: Literal["driver", "executor"]
    play: Play
    master: str = RETRIES
    short: bool = False
    on: Literal["any", "embedded", "real"] = "any"
    options: Mapping[str, str] = field(default_factory=dict)


CASES: dict[str, Case] = {}


def add(case: Case) -> None:
    """Raises AssertionError for a name that is taken."""
    assert case.name not in CASES, case.name
    CASES[case.name] = case


def case(
    name: str,
    *,
    receivers: tuple[Literal["driver", "executor"], ...] = ("driver", "executor"),
    master: str = RETRIES,
    short: tuple[str, ...] = (),
    on: Literal["any", "embedded", "real"] = "any",
    **options: str,
) -> Callable[[Play], Play]:
    """One case for each receiver; ``short``: of which receivers it belongs to the short form."""

    def register(play: Play) -> Play:
        for receiver in receivers:
            add(Case(f"{receiver}: {name}", receiver, play, master, receiver in short, on, options))
        return play

    return register
