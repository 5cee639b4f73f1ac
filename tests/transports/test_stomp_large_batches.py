"""Batches larger than the window where no ACK may leave, on real brokers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from tests.transports.live import Place, bodies, held, numbers
from tests.transports.scripted import Session

from redelivery import AckMode

SIZES = pytest.mark.parametrize("number", [101, 201, 401, 5000])
ORDERED = pytest.mark.parametrize("place", ["artemis", "rabbitmq"], indirect=True)  # a further subscription goes on
MODES = pytest.mark.parametrize("mode", [AckMode.TRANSACTED, AckMode.CLIENT])


@pytest.fixture(params=["artemis", "hornetq", "rabbitmq"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    with ExitStack() as opened:
        yield Place(request.getfixturevalue(request.param).stomp_url, opened)


def commit_after_a_rollback(session: Session, deliveries: list[Any]) -> None:
    """They are still ours then: dispatched again, and committed; and the session is closed."""
    session.do(session.channel.rollback())
    for delivery in deliveries:
        session.channel.dispatched(delivery)
    session.do(session.channel.commit(deliveries), 30)
    session.do(session.channel.close())


@ORDERED
@MODES
@SIZES
def test_a_batch_larger_than_the_window_does_not_stall(place: Place, mode: AckMode, number: int) -> None:
    place.fill(*numbers(number))
    session = place.client().session(mode)
    session.attach(place.queue)
    first = held(session, number)
    assert bodies(first) == numbers(number)
    commit_after_a_rollback(session, first)
    assert place.left() == []


@pytest.mark.parametrize("place", ["hornetq"], indirect=True)
@MODES
@SIZES
def test_what_a_further_subscription_holds_back_comes_when_it_has_ended(
    place: Place, mode: AckMode, number: int
) -> None:
    """HornetQ now and then believes to have delivered what it dropped for a SUBSCRIBE that it is still making."""
    place.fill(*numbers(number))
    session = place.client().session(mode)
    session.attach(place.queue)
    first: list[Any] = []
    while len(first) < number and (delivery := session.receive(2)) is not None:
        session.channel.dispatched(delivery)
        first.append(delivery)
    assert len(first) > 30  # the first window
    commit_after_a_rollback(session, first)
    assert sorted(bodies([*first, *place.left(at_least=number - len(first))]), key=int) == numbers(number)


@ORDERED
def test_a_window_that_grew_falls_back_and_keeps_the_order(place: Place) -> None:
    """Where the broker keeps up: the next message has come before the commit (else: docs/brokers/artemis.md)."""
    place.fill(*numbers(300))
    session = place.client().session(AckMode.TRANSACTED)
    session.attach(place.queue, window=2)
    expected = iter(numbers(300))
    for size in (50, 1, 100, 3, 146):
        batch = held(session, size)
        assert bodies(batch) == [next(expected) for _ in range(size)]
        if size < 146:
            session.inbox.appendleft(session.receive())
        session.do(session.channel.commit(batch))
    place.fill("last")
    session.do(session.channel.commit(held(session, 1)))
    subscriptions = session.channel._subscriptions  # type: ignore[attr-defined]  # how many there are is on no wire
    assert [len(each) for each in subscriptions.values()] == [1]


def test_parked_messages_do_not_stop_the_others(place: Place) -> None:
    place.fill(*["x" * 1000] * 30)
    session = place.client().session()
    session.attach(place.queue, window=4)
    parked: list[Any] = []
    for _ in range(30):
        delivery = session.receive()
        assert delivery is not None, f"no message after {len(parked)}"
        session.channel.park([delivery])
        parked.append(delivery)
    session.channel.unpark(parked)
    session.channel.accept(parked, batched=False)
    session.do(session.channel.close())
    assert place.left() == []
