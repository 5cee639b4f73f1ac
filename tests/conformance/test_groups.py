"""Message groups (JMSXGroupID): one consumer at a time gets a group, in order, whatever is redelivered or closed"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from tests.conformance.stage import SOON, Stage, receive

from redelivery import AckMode, Consumer, Message, Session

pytestmark = pytest.mark.needs("message groups")
GROUPS = "ABCD"


def send(stage: Stage, *numbers: int, groups: str = GROUPS) -> None:
    session = stage.session(AckMode.AUTO)
    producer = session.producer(stage.queue)
    for number in numbers:
        for group in groups:
            producer.send(f"{group}{number}", group_id=group)


def drain(consuming: Sequence[tuple[Session, Consumer]], total: int) -> list[dict[str, list[int]]]:
    """What each consumer gets, by group, until there are so many."""
    found: list[dict[str, list[int]]] = [{} for _ in consuming]
    seen, patience = 0, 0.05
    while seen < total and patience < SOON:
        before = seen
        for (session, consumer), groups in zip(consuming, found, strict=True):
            while (message := consumer.receive(timeout=patience)) is not None:
                groups.setdefault(message.body[0], []).append(int(message.body[1:]))
                session.acknowledge()
                seen += 1
        patience = patience * 2 if seen == before else 0.05
    assert seen == total, found
    return found


def all_in_order(found: Sequence[dict[str, list[int]]], number: int, groups: str = GROUPS) -> bool:
    """Whether each group was one consumer's, and all of it."""
    owned = [item for each in found for item in each.items()]
    return sorted(owned) == [(group, [*range(number)]) for group in groups]


def test_each_group_goes_to_one_consumer_in_order(stage: Stage) -> None:
    consuming = [stage.consuming(AckMode.CLIENT) for _ in range(2)]
    send(stage, *range(5))
    found = drain(consuming, 20)
    assert all_in_order(found, 5)
    assert [len(each) for each in found] == [2, 2]


def test_a_group_stays_in_order_while_its_messages_are_redelivered(stage: Stage) -> None:
    consuming = [stage.consuming(AckMode.CLIENT) for _ in range(2)]
    send(stage, *range(3))
    first = receive(consuming[0][1])
    assert first.body[1:] == "0"
    consuming[0][0].recover()
    send(stage, 3, 4)
    assert all_in_order(drain(consuming, 20), 5)


def test_the_groups_of_a_consumer_that_leaves_go_to_another_in_order(stage: Stage) -> None:
    consuming = [stage.consuming(AckMode.CLIENT) for _ in range(2)]
    send(stage, *range(3))
    receive(consuming[0][1])  # and holds it
    consuming[0][0].close()
    send(stage, 3)
    assert all_in_order(drain(consuming[1:], 16), 4)


@pytest.mark.needs("closing a group")
def test_a_sequence_of_minus_one_closes_the_group(stage: Stage) -> None:
    consuming = [stage.consuming(AckMode.CLIENT) for _ in range(2)]
    send(stage, 0, groups="AB")
    before = drain(consuming, 2)
    (owner,) = [number for number, each in enumerate(before) if "A" in each]
    producer = stage.session(AckMode.AUTO).producer(stage.queue)
    producer.send(Message("A1", group_id="A", group_sequence=-1))
    assert drain(consuming, 1)[owner] == {"A": [1]}
    send(stage, 0, 1, groups="A")  # a new group of that name
    again = drain(consuming, 2)
    assert sorted(map(len, again)) == [0, 1]
    assert [each["A"] for each in again if each] == [[0, 1]]
