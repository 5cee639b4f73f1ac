"""Letters whose ids another producer has made: each is found by its own, whatever stands in it."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.model.destinations import destination
from redelivery.operate.letters.folding import failure, literal
from redelivery.operate.letters.moving import Mover, plan
from redelivery.operate.letters.routes import back
from redelivery.operate.letters.selection import Selection

DLQ = destination("dead")
# With quotes, and with what would be another selector if they were not quoted.
IDS = ("plain", "it's", "''", "'", "a','b", "x') OR (1=1", "\\'", 'say "no"', "ID:it's-1:1", "äö'ü", "")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redelivery.operate.letters.moving._COMES", 0.2)


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(f"letters-{uuid4().hex}", amqp_port=0) as broker:
        yield broker


def fill(broker: EmbeddedBroker) -> None:
    """Two of each id's: one of a group that is replayed, and one of another."""
    from tests.broker.amqp.amqp_client import Peer  # planted faults use this file, also where there is no proton

    with Peer(broker.amqp_url) as peer:
        link = peer.sender(DLQ.name)
        for number, message_id in enumerate(IDS):
            for what in ("even", "odd"):
                said = {"originalDestination": "queue://orders", "dlqDeliveryFailureCause": f"ValueError: it is {what}"}
                letter = {"body": f"{number} {what}", "durable": True, "properties": said}
                peer.send(link, {**letter, "id": f"{message_id}{'' if what == 'odd' else ' too'}"})


@pytest.mark.parametrize("protocol", ["vm", "amqp"])
@pytest.mark.parametrize("first", range(len(IDS)))
def test_those_of_a_group_leave_and_no_other(broker: EmbeddedBroker, protocol: str, first: int) -> None:
    fill(broker)
    with redelivery.connect(getattr(broker, f"{protocol}_url")) as connection:
        odd = next(each for each in Selection(DLQ).browse(connection) if str(each.body).endswith("odd"))
        selection, route = Selection(DLQ, group=literal(failure(odd)), limit=first + 1), back(None, "run")
        planned = plan(connection, selection, route)
        assert (len(planned.ids), bool(planned.others)) == (first + 1, True)
        assert Mover(connection, selection, route).move(planned) == first + 1
    moved = [f"{number} odd" for number in range(first + 1)]
    assert [message.body for message in broker.messages("orders")] == moved
    stayed = {message.body for message in broker.messages(DLQ.name)}
    assert stayed == {f"{number} {what}" for number in range(len(IDS)) for what in ("odd", "even")} - set(moved)
