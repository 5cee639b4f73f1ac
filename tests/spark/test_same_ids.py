"""Messages whose senders give the same id to several, or none, around a commit that is in doubt: each is one row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("proton")

from proton import Message
from proton.utils import BlockingConnection
from tests.spark.place import QUEUE, Place
from tests.spark.streams import ALL, drained, readers, rows

from redelivery.broker import EmbeddedBroker
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader

Reader = DriverStreamReader | ExecutorStreamReader
Sent = tuple[str | None, str]


@pytest.fixture
def place(broker: EmbeddedBroker, tmp_path: Path) -> Place:
    return Place(broker, tmp_path, "amqp")


@pytest.fixture(params=[DriverStreamReader, ExecutorStreamReader], ids=["driver", "executor"])
def make(request: pytest.FixtureRequest, place: Place) -> Iterator[Callable[..., Any]]:
    kind = request.param
    receiver = "driver" if kind is DriverStreamReader else "executor"
    with readers(kind, place, receiver=receiver) as made:
        yield made


def send(place: Place, messages: Sequence[Sent]) -> None:
    """As any AMQP program may: the id is its own, or there is none."""
    url = urlsplit(place.url)
    connection = BlockingConnection(f"amqp://{url.hostname}:{url.port}", allowed_mechs="ANONYMOUS")
    try:
        sender = connection.create_sender(QUEUE)
        for message_id, body in messages:
            sender.send(Message(id=message_id, body=body, durable=True))
    finally:
        connection.close()


@pytest.mark.in_turns("dropped")
@pytest.mark.parametrize("dropped", ["COMMIT", "answer"])
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ([("order-1", "a")], [("order-1", "b"), ("order-1", "c"), ("order-1", "d")]),
        ([(None, "a")], [(None, "b"), (None, "a"), (None, "a")]),
        ([("order-1", "a"), ("order-1", "b")], [("order-2", "a"), ("order-1", "c"), (None, "a")]),
    ],
    ids=["same id, new body", "no id", "mixed"],
)
def test_a_commit_in_doubt_costs_no_message_and_doubles_none(
    place: Place, make: Callable[..., Any], before: list[Sent], after: list[Sent], dropped: str
) -> None:
    if dropped == "COMMIT":
        place.broker.faults.drop("COMMIT")
    else:
        place.broker.faults.drop_after("COMMIT")
    send(place, before)
    stream = make()
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(start, ALL)
    found = rows(stream, start, end)
    stream.commit(end)
    if dropped == "COMMIT":
        send(place, after)
        found += drained(stream, end)[0]
        assert sorted(found) == sorted(body for _, body in before + after)
    else:  # the broker has committed, so that no message is delivered again, and equal ones cannot be told from it
        send(place, [each for each in after if each not in before])
        found += drained(stream, end)[0]
        assert sorted(found) == sorted(body for _, body in [*before, *(each for each in after if each not in before)])
    assert place.left() == []
