"""Letters are moved without being lost or doubled: where a run is interrupted, and where the broker can do less."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

import redelivery
from redelivery import Connection, Message
from redelivery.broker import EmbeddedBroker
from redelivery.model.destinations import destination
from redelivery.operate.letters.folding import failure, literal
from redelivery.operate.letters.moving import BATCH, Mover, plan
from redelivery.operate.letters.routes import REPLAYED, REPLAYS, Leaving, Route, back
from redelivery.operate.letters.selection import Selection

DLQ, ORDERS = destination("dead"), "queue://orders"
COUNT = 2 * BATCH + 20


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redelivery.operate.letters.moving._COMES", 0.2)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(f"letters-{uuid4().hex}") as broker:
        yield broker


def fill(broker: EmbeddedBroker, count: int = COUNT, **properties: Any) -> None:
    with redelivery.connect(broker.vm_url) as connection, connection.session("transacted") as session:
        producer = session.producer(DLQ)
        for number in range(count):
            what = "odd" if number % 2 else "even"
            cause = f"Delivery[1] exceeds redelivery policy limit:{{}}, cause:ValueError: order {number} is {what}"
            said = {"originalDestination": ORDERS, "dlqDeliveryFailureCause": cause, "number": number, **properties}
            producer.send(str(number), properties=said)
        session.commit()


def bodies(broker: EmbeddedBroker, queue: str) -> list[str]:
    return [message.body for message in broker.messages(queue)]


def weaken(connection: Connection, **capabilities: Any) -> None:
    """As if the broker could do less."""
    peer = connection._core.transport.peer
    connection._core.transport.peer = replace(peer, capabilities=replace(peer.capabilities, **capabilities))


def interrupting(after: int, route: Route) -> Route:
    left = [after]

    def leave(letter: Message) -> Leaving | None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return route(letter)

    return leave


@pytest.mark.parametrize(("size", "ahead"), [(1_000, BATCH), (100_000, 100)])
def test_a_transaction_of_small_letters_comes_ahead_whole(broker: EmbeddedBroker, size: int, ahead: int) -> None:
    """Then it does not wait for the broker in its middle; large ones would fill the memory."""
    with redelivery.connect(broker.vm_url) as connection:
        with connection.session() as session:
            session.producer(DLQ).send("x" * size, properties={"originalDestination": ORDERS})
        assert plan(connection, Selection(DLQ), back(None, "run")).ahead == ahead


@pytest.mark.parametrize("after", [0, 1, BATCH - 1, BATCH, BATCH + 7])
def test_an_interrupted_run_has_moved_whole_batches(broker: EmbeddedBroker, after: int) -> None:
    fill(broker)
    route = back(None, "run")
    counted: list[int] = []
    with redelivery.connect(broker.vm_url) as connection:
        planned = plan(connection, Selection(DLQ), route)
        mover = Mover(connection, Selection(DLQ), interrupting(after, route), moved=counted.append)
        with pytest.raises(KeyboardInterrupt):
            mover.move(planned)
    moved = after // BATCH * BATCH
    assert (mover.moved, counted) == (moved, [BATCH] if moved else [])
    assert bodies(broker, "orders") == [str(number) for number in range(moved)]
    assert Counter(bodies(broker, "dead")) == Counter(str(number) for number in range(moved, COUNT))


def test_large_letters_are_moved_by_fewer_at_a_time(broker: EmbeddedBroker) -> None:
    """What is sent in a transaction is kept until its commit, here and at the broker."""
    counted: list[int] = []
    with redelivery.connect(broker.vm_url) as connection:
        with connection.session("transacted") as session:
            for number in range(12):
                session.producer(DLQ).send("x" * 2_000_000, properties={"originalDestination": ORDERS, "n": number})
            session.commit()
        route = back(None, "run")
        planned = plan(connection, Selection(DLQ), route)
        assert Mover(connection, Selection(DLQ), route, moved=counted.append).move(planned) == 12
    assert counted == [5, 10, 12]


@pytest.mark.parametrize(
    "capabilities",
    [{}, {"selectors": False}, {"transactions": False}, {"selectors": False, "transactions": False}],
    ids=["all", "no selectors", "no transactions", "neither"],
)
def test_some_of_them_whatever_the_broker_can_do(broker: EmbeddedBroker, capabilities: dict[str, bool]) -> None:
    fill(broker)
    with redelivery.connect(broker.vm_url) as connection:
        weaken(connection, **capabilities)
        odd = next(each for each in Selection(DLQ, "number = 1").browse(connection))
        selection, route = Selection(DLQ, "number >= 10", literal(failure(odd)), 30), back(None, "run")
        planned = plan(connection, selection, route)
        assert (len(planned.ids), bool(planned.others)) == (30, True)
        assert Mover(connection, selection, route).move(planned) == 30
    moved = [str(number) for number in range(11, 71, 2)]
    assert bodies(broker, "orders") == moved
    assert Counter(bodies(broker, "dead")) == Counter(set(map(str, range(COUNT))) - set(moved))


@pytest.mark.parametrize("selectors", [True, False])
@pytest.mark.parametrize("limit", [0, 1, 2, 3, 4])
def test_a_limit_is_how_many_are_chosen(broker: EmbeddedBroker, limit: int, selectors: bool) -> None:
    fill(broker, 3)
    with redelivery.connect(broker.vm_url) as connection:
        weaken(connection, selectors=selectors)
        selection, route = Selection(DLQ, "number >= 0", limit=limit), back(None, "run")
        assert [each.body for each in selection.browse(connection)] == ["0", "1", "2"][:limit]
        assert len(plan(connection, selection, route).ids) == min(limit, 3)


@pytest.mark.parametrize("selectors", [True, False], ids=["judged there", "judged here"])
@pytest.mark.parametrize(
    "condition",
    [
        "JMSPriority = 7",
        "JMSDeliveryMode = 'NON_PERSISTENT'",
        "JMSType = 'order'",
        "JMSCorrelationID = 'c-1'",
        "JMSTimestamp > 0 AND colour = 'red'",
        "JMSMessageID IS NOT NULL AND colour = 'red'",
    ],
)
def test_a_selector_that_is_judged_here_sees_the_headers(
    broker: EmbeddedBroker, selectors: bool, condition: str
) -> None:
    fill(broker, 2)
    with redelivery.connect(broker.vm_url) as connection:
        with connection.session() as session:
            session.producer(DLQ).send(
                "wanted", properties={"colour": "red"}, priority=7, persistent=False, type="order", correlation_id="c-1"
            )
        weaken(connection, selectors=selectors)
        assert [each.body for each in Selection(DLQ, condition).browse(connection)] == ["wanted"]


def test_a_refused_commit_is_counted_by_nobody(broker: EmbeddedBroker) -> None:
    fill(broker, 3)
    counted: list[int] = []
    with redelivery.connect(broker.vm_url) as connection:
        route = back(None, "run")
        planned = plan(connection, Selection(DLQ), route)
        broker.faults.error("COMMIT", "no more today")
        mover = Mover(connection, Selection(DLQ), route, moved=counted.append)
        with pytest.raises(redelivery.JMSError, match="no more today"):
            mover.move(planned)
    assert (mover.moved, counted) == (0, [])
    assert (sorted(bodies(broker, "dead")), bodies(broker, "orders")) == (["0", "1", "2"], [])


def test_it_says_how_often_it_was_replayed(broker: EmbeddedBroker) -> None:
    fill(broker, 1)
    with redelivery.connect(broker.vm_url) as connection:
        for run in ("1", "2", "3"):
            route = back(DLQ, run)
            assert Mover(connection, Selection(DLQ), route).move(plan(connection, Selection(DLQ), route)) == 1
    (letter,) = broker.messages(DLQ.name)
    assert (letter.properties[REPLAYED], letter.properties[REPLAYS]) == ("3", 3)


def test_the_plan_is_not_exceeded_by_what_comes_meanwhile(broker: EmbeddedBroker) -> None:
    fill(broker, 3)
    with redelivery.connect(broker.vm_url) as connection:
        route = back(DLQ, "run")  # they come back at once, without their origin
        planned = plan(connection, Selection(DLQ), route)
        assert Mover(connection, Selection(DLQ), route).move(planned) == 3
    assert bodies(broker, "dead") == ["0", "1", "2"]


def test_a_batch_that_is_not_what_was_planned_stays(broker: EmbeddedBroker) -> None:
    fill(broker, 1)
    with redelivery.connect(broker.vm_url) as connection:
        (letter,) = Selection(DLQ).browse(connection)
        selection, route = Selection(DLQ, group=literal(failure(letter))), back(None, "run")
        planned = plan(connection, selection, route)
        with connection.session() as session:
            session.consumer(DLQ).receive(timeout=1)  # somebody takes it, and another one comes
        broker.send("dead", "another", properties={"originalDestination": ORDERS})
        with pytest.raises(redelivery.JMSError, match="the queue has changed meanwhile"):
            Mover(connection, selection, route).move(planned)
    assert (bodies(broker, "dead"), bodies(broker, "orders")) == (["another"], [])


def test_letters_that_come_meanwhile_and_must_stay_do_not_end_a_run(broker: EmbeddedBroker) -> None:
    """Somebody takes one that was planned, so that one comes in its place which has no origin."""
    fill(broker, 120)
    with redelivery.connect(broker.vm_url) as connection:
        selection, route = Selection(DLQ), back(None, "run")
        planned = plan(connection, selection, route)
        with connection.session() as session:
            assert session.consumer(DLQ, prefetch=1).receive(timeout=1)
        broker.send("dead", "no origin")
        assert Mover(connection, selection, route).move(planned) == 119
    assert (len(bodies(broker, "orders")), bodies(broker, "dead")) == (119, ["no origin"])


def test_slow_runs_keep_their_rate(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(broker, 10)
    slept: list[float] = []
    clock = [100.0]

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        clock[0] += seconds

    monkeypatch.setattr("redelivery.operate.letters.moving.time.sleep", sleep)
    monkeypatch.setattr("redelivery.operate.letters.moving.time.monotonic", lambda: clock[0])
    counts: list[int] = []
    with redelivery.connect(broker.vm_url) as connection:
        selection, route = Selection(DLQ), back(None, "run")
        Mover(connection, selection, route, rate=4, moved=counts.append).move(plan(connection, selection, route))
    assert sum(slept) == pytest.approx(9 / 4)
    assert counts == [4, 8, 10]  # committed once a second


@pytest.mark.parametrize("capabilities", [{}, {"selectors": False}, {"transactions": False}], ids=str)
def test_a_broker_that_cannot_browse_gives_all_that_it_has(
    broker: EmbeddedBroker, capabilities: dict[str, bool]
) -> None:
    fill(broker)
    with redelivery.connect(broker.vm_url) as connection:
        weaken(connection, browse=False, **capabilities)
        selection, route = Selection(DLQ, "number < 70"), back(None, "run")
        planned = plan(connection, selection, route)
        assert (planned.ids, planned.unseen) == ([], True)
        assert Mover(connection, replace(selection, limit=60), route).move(planned) == 60
        assert Mover(connection, selection, route).move(planned) == 10
        with pytest.raises(redelivery.UnsupportedError):
            plan(connection, Selection(DLQ, group="1"), route)
    assert bodies(broker, "orders") == [str(number) for number in range(70)]
    assert Counter(bodies(broker, "dead")) == Counter(str(number) for number in range(70, COUNT))


def test_a_dead_letter_that_was_replayed_can_become_one_again(broker: EmbeddedBroker) -> None:
    """The broker's audit keeps the same message from being two dead letters; a replayed one is another message."""
    letters, once = destination("ActiveMQ.DLQ"), redelivery.RedeliveryPolicy(maximum_redeliveries=0)
    broker.send("orders", "bad")
    ids = []
    with redelivery.connect(broker.vm_url, redelivery_policy=once) as connection:
        for run in ("1", "2", "3"):
            with connection.session("transacted") as session:
                assert session.consumer("orders").receive(5) is not None
                session.rollback()
            (letter,) = broker.messages(letters.name)
            assert bodies(broker, "orders") == []
            ids.append(letter.message_id)
            route = back(None, run)
            mover = Mover(connection, Selection(letters), route)
            assert mover.move(plan(connection, Selection(letters), route)) == 1
    assert bodies(broker, "orders") == ["bad"]
    assert len(set(ids)) == 3


def test_where_nobody_can_look_what_comes_back_ends_the_run(broker: EmbeddedBroker) -> None:
    fill(broker, 3)
    with redelivery.connect(broker.vm_url) as connection:
        weaken(connection, browse=False)
        route = back(DLQ, "run")
        mover = Mover(connection, replace(Selection(DLQ), limit=2), route)
        assert mover.move(plan(connection, Selection(DLQ), route)) == 2
        with pytest.raises(redelivery.JMSError, match="was replayed by this run, and is here again"):
            Mover(connection, Selection(DLQ), route).move(plan(connection, Selection(DLQ), route))
    assert sorted(bodies(broker, "dead")) == ["0", "1", "2"]


def test_a_letter_that_cannot_be_read_stays(broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(broker, 3)
    copy = Message.copy

    def unreadable(message: Message) -> Message:
        if message.body == "1":
            raise redelivery.MessageFormatError("no such codec")
        return copy(message)

    monkeypatch.setattr(Message, "copy", unreadable)
    with redelivery.connect(broker.vm_url) as connection:
        route = back(None, "run")
        planned = plan(connection, Selection(DLQ), route)
        assert (len(planned.ids), planned.stay) == (2, 1)
        assert Mover(connection, Selection(DLQ), route).move(planned) == 2
    assert (bodies(broker, "orders"), bodies(broker, "dead")) == (["0", "2"], ["1"])


def test_a_letter_behind_more_that_stay_than_are_held_unseen_is_reached(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of another client on Artemis: no selector finds it by its id."""
    monkeypatch.setattr("redelivery.operate.letters.moving._HELD", 3)
    fill(broker)
    last = frozenset((broker.messages(DLQ)[-1].message_id or "",))
    with redelivery.connect(broker.vm_url) as connection:
        weaken(connection, transactions=False)
        selection, route = Selection(DLQ, ids=last), back(None, "run")
        assert Mover(connection, selection, route).move(plan(connection, selection, route)) == 1
    assert bodies(broker, "orders") == [str(COUNT - 1)]
    assert len(bodies(broker, "dead")) == COUNT - 1
