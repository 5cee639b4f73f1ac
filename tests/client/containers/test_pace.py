"""How far ahead a worker's window goes: not at all, unless its handler is quick for long."""

from __future__ import annotations

import pytest

from redelivery import Queue
from redelivery.client.containers.lanes import AHEAD, IN_A_ROW, QUICK, Pace
from redelivery.client.ledger import ConsumerState
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.seam import Link


def consumer(*, prefetch: int | None = None, pulls: bool = True) -> ConsumerState:
    return ConsumerState(Link(Queue("orders"), prefetch=prefetch, pulls=pulls), lambda _: RedeliveryPolicy(), name="a")


def test_more_comes_ahead_once_a_handler_was_quick_for_long_and_none_behind_a_slow_message() -> None:
    state = consumer()
    pace = Pace(state)
    for _ in range(IN_A_ROW - 1):
        pace.handled(0.0)
    assert state.link.ahead == 0
    pace.handled(0.0)
    assert state.link.ahead == AHEAD
    pace.handled(QUICK)
    assert state.link.ahead == 0


def test_a_new_connection_begins_with_what_was_learnt() -> None:
    state = consumer()
    pace = Pace(state)
    for _ in range(IN_A_ROW):
        pace.handled(0.0)
    state.renew()
    assert (state.link.pulls, state.link.ahead) == (True, 0)
    pace.handled(0.0)
    assert state.link.ahead == AHEAD


@pytest.mark.parametrize("state", [consumer(prefetch=0), consumer(prefetch=10, pulls=False), consumer(pulls=False)])
def test_a_window_that_was_asked_for_stays(state: ConsumerState) -> None:
    pace = Pace(state)
    for _ in range(IN_A_ROW):
        pace.handled(0.0)
    assert state.link.ahead == 0
