"""When a task of receiver=executor ends its share: soon where it keeps up with its queue, late with a backlog."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

pytest.importorskip("pyspark")

from redelivery import Message
from redelivery.spark.read.receiving import keeping_up
from redelivery.spark.read.receiving.keeping_up import KeepingUp
from redelivery.spark.read.receiving.received_batch import BatchPause

NOW = 1_700_000_000_000
PAUSE = BatchPause(0.02, 5.0, least=0.1, target=0.5)


class Sent(Message):
    """A message that was sent so many milliseconds after the transaction began; None: it has no time."""

    def __init__(self, after: int | None) -> None:
        super().__init__(b"x")
        self._after = after

    @property
    def timestamp(self) -> Any:
        return None if self._after is None else datetime.fromtimestamp((NOW + self._after) / 1000, UTC)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> KeepingUp:
    monkeypatch.setattr(keeping_up, "epoch_ms", lambda: NOW)
    made = KeepingUp()
    made.begin()
    return made


def end(seen: KeepingUp, pause: BatchPause = PAUSE) -> float:
    """Seconds after the first message, if one has come just now, a second after it."""
    return pause.end(10.0, 11.0, seen) - 10.0


@pytest.mark.parametrize(
    ("after", "seconds"),
    [
        pytest.param(1, 0.1, id="sent meanwhile"),
        pytest.param(-400, 0.5, id="it was there"),
        pytest.param(-501, 1.1, id="backlog"),
        pytest.param(500_000, 1.1, id="a clock that is ahead"),
    ],
)
def test_by_the_time_of_the_last_message(seen: KeepingUp, after: int, seconds: float) -> None:
    seen.took([Sent(-9_000), Sent(after)], 64, 0.0)
    assert end(seen) == pytest.approx(seconds)


def test_a_backlog_ends_at_the_longest_time(seen: KeepingUp) -> None:
    seen.took([Sent(-9_000)], 1, 0.0)
    assert PAUSE.end(10.0, 14.99, seen) == 15.0
    assert PAUSE.end(10.0, 12.0, seen) == pytest.approx(12.1), "none came for receiveTimeout"


def test_without_times_by_how_the_messages_come(seen: KeepingUp) -> None:
    def calls(count: int, found: int, seconds: float) -> None:
        for _ in range(count):
            seen.took([Sent(None)] * found, 64, seconds)

    calls(8, 64, 0.0)
    assert end(seen) == pytest.approx(1.1), "each call finds all that it asks for"
    calls(2, 8, 0.0)
    assert end(seen) == pytest.approx(1.1), "a window was used up"
    calls(2, 1, 0.003)
    assert end(seen) == 0.5, "it waits for messages"
    calls(8, 64, 0.003)
    assert end(seen) == 0.5, "it waits for them, too"


def test_one_that_waits_for_all_is_not_asked(seen: KeepingUp) -> None:
    seen.took([Sent(1)], 64, 0.0)
    assert end(seen, BatchPause(2.0, math.inf)) == 3.0
    assert end(seen, BatchPause(0.005, 0.1)) == pytest.approx(0.1)
