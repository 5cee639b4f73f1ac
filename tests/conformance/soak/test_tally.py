"""What the soak counts: it says why a message was handled again, and finds the one that nothing explains."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.conformance.soak import memory
from tests.conformance.soak.memory import MEGABYTE, Memory
from tests.conformance.soak.tally import Handled

from redelivery import ConnectionLostError, InDoubtError
from redelivery.events import Acknowledged, ConnectionLost, InDoubt, Released
from redelivery.transports.wire.clock import utc_now


def delivery() -> Any:
    return SimpleNamespace()


def handled_once(handled: Handled, kind: str, number: int = 1) -> None:
    """One handling of a message, and how it ended."""
    source = delivery()
    handled.handle(number, source)
    match kind:
        case "acknowledged":
            handled(Acknowledged(1, source, 1))
        case "released":
            handled(Released(1, source, 1))
        case "in doubt":
            message: Any = SimpleNamespace(source=source)
            handled(InDoubt(1, (), (message,), InDoubtError("no answer")))


def lose(handled: Handled) -> None:
    handled.fault()
    handled(ConnectionLost("stomp://…", ConnectionLostError("lost"), utc_now()))


@pytest.mark.parametrize(("first", "cause"), [("released", "uncommitted"), ("in doubt", "in doubt")])
def test_what_was_not_committed_explains_the_next_handling(first: str, cause: str) -> None:
    handled = Handled(confirmed=True)
    handled_once(handled, first)
    handled_once(handled, "acknowledged")
    assert handled.more_than_once() == {1: 2}
    assert {name: count for name, count in handled.causes().items() if count} == {cause: 1}
    assert handled.unexplained() == []


@pytest.mark.parametrize("second", ["acknowledged", "in doubt", "released"])
def test_nothing_explains_a_handling_after_a_confirmed_acknowledgement(second: str) -> None:
    handled = Handled(confirmed=True)
    handled_once(handled, "acknowledged")
    lose(handled)
    handled_once(handled, second)
    assert handled.unexplained() == [1]


def test_one_excuse_explains_one_more_handling() -> None:
    handled = Handled(confirmed=True)
    for kind in ("released", "acknowledged", "acknowledged"):
        handled_once(handled, kind)
    assert handled.unexplained() == [1]


def test_an_acknowledgement_that_nobody_confirms_may_be_lost_with_its_connection() -> None:
    handled = Handled(confirmed=False)
    handled_once(handled, "acknowledged")
    handled_once(handled, "acknowledged", number=2)
    lose(handled)
    handled_once(handled, "acknowledged")
    assert handled.causes()["ack lost"] == 1
    assert handled.unexplained() == []
    handled_once(handled, "acknowledged")  # once more, and no connection was lost
    assert handled.unexplained() == [1]


def test_the_slope_is_that_of_the_second_half(monkeypatch: pytest.MonkeyPatch) -> None:
    now, used = [0.0], [100.0]
    monkeypatch.setattr(memory, "monotonic", lambda: now[0])
    monkeypatch.setattr(
        Memory, "now", staticmethod(lambda: {"memory": int(used[0] * MEGABYTE), "descriptors": 5, "threads": 3})
    )
    process = Memory(seconds=240)
    for now[0] in range(0, 241, 10):
        used[0] = 100 + now[0] if now[0] < 120 else 220 + (now[0] - 120) / 120
        process.sample()
    assert process.slope() == pytest.approx(0.5, abs=0.01)
    assert process.growth()["memory"] == 121 * MEGABYTE
