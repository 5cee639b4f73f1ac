"""How far ahead a worker's window goes: not at all, unless its handler is quick for long."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

import redelivery
from redelivery import PrefetchPolicy, Queue
from redelivery.client.containers.lanes import AHEAD, IN_A_ROW, QUICK, Pace
from redelivery.client.ledger import ConsumerState
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.seam import Link, LinkSpec


def consumer(*, prefetch: int | None = None, pulls: bool = True) -> ConsumerState:
    return ConsumerState(
        Link(LinkSpec(Queue("orders"), window=prefetch, pulls=pulls)), lambda _: RedeliveryPolicy(), name="a"
    )


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
    assert (state.link.spec.pulls, state.link.ahead) == (True, 0)
    pace.handled(0.0)
    assert state.link.ahead == AHEAD


@pytest.mark.parametrize("state", [consumer(prefetch=0), consumer(prefetch=10, pulls=False), consumer(pulls=False)])
def test_a_window_that_was_asked_for_stays(state: ConsumerState) -> None:
    pace = Pace(state)
    for _ in range(IN_A_ROW):
        pace.handled(0.0)
    assert state.link.ahead == 0


@pytest.mark.parametrize(
    ("options", "of_container", "pulls"),
    [
        ({}, {"concurrency": 2}, True),
        ({}, {"concurrency": (1, 2)}, True),
        ({}, {"concurrency": 1}, False),
        ({}, {"concurrency": 1, "prefetch": 0}, True),
        ({}, {"concurrency": 2, "prefetch": 5}, False),
        ({"prefetch": 5}, {"concurrency": 2}, False),
        ({"prefetch": 0}, {"concurrency": 1}, True),
        ({"prefetch": PrefetchPolicy(topic=5)}, {"concurrency": 2}, True),
        ({"prefetch": 5}, {"concurrency": 2, "prefetch": 0}, True),
    ],
)
def test_a_number_that_was_given_is_the_window(
    options: dict[str, Any], of_container: dict[str, Any], pulls: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        redelivery.connect(f"vm://pace-{uuid4().hex}", **options) as connection,
        connection.listener_container("orders", print, **of_container) as container,
    ):
        assert {lane.consumer._state.link.spec.pulls for lane in container._lanes} == {pulls}
    assert "works as 1" not in caplog.text
