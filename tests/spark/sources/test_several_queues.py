"""Several queues as one source, without Spark: each row says its queue, and a copy on another queue is no duplicate."""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from tests.conformance.foreign import Foreign, binary, section, sequence, string
from tests.spark.place import Place, texts
from tests.spark.streams import ALL, drained, readers

import redelivery
from redelivery import ConfigError
from redelivery.model.destinations import Queue
from redelivery.spark.log.segments import segment_batches
from redelivery.spark.options.query import BrowseOptions, SourceOptions
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader
from redelivery.spark.read.inspect.browse import BrowseReader
from redelivery.spark.read.receiving.batch_receiver import BatchReceiver
from redelivery.spark.read.receiving.received_batch import BatchPause, ReceivedBatch
from redelivery.spark.rows.digests import Key

BOTH = "orders,invoices"
SOURCE = {"url": "stomp://broker:61613", "walLocation": "/data/wal"}
KINDS = [DriverStreamReader, ExecutorStreamReader]


class InDoubt:
    """One segment."""

    def __init__(self, *keys: Key) -> None:
        self.keys = list(keys)

    def in_doubt(self) -> dict[str, list[Key]]:
        return {"1": self.keys} if self.keys else {}

    def confirmed(self, name: str) -> bool:
        return not name


def received(source: BatchReceiver, most: int = 1000) -> ReceivedBatch:
    """What comes within half a second, once anything does."""
    for _ in range(20):
        batch = source.receive(most, 1 << 30, lambda: BatchPause(0.2), first=0.25)
        if batch is not None:
            return batch
    raise AssertionError("nothing came")


def rows(batch: ReceivedBatch) -> list[tuple[str, str]]:
    table = pa.Table.from_batches(segment_batches(pa.ipc.open_file(batch.data)))
    bodies, places = table["body"].to_pylist(), table["destination"].to_pylist()
    return [(body.decode(), place) for body, place in zip(bodies, places, strict=True)]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"destinations": "a,,b"}, "destinations='a,,b' has an empty name"),
        ({"destinations": " "}, "has an empty name"),
        ({"destinations": "a, queue://a"}, "has queue://a twice"),
        ({"destinations": "a,b c"}, "destinations: 'b c' has a space"),
        ({"destinations": "a,topic://news"}, "topic://news"),
        ({"destinations": "a", "destination": "b"}, "destination and destinations are both given"),
        ({"destinations": "a", "path": "b"}, "path and destinations are both given"),
        ({"path": "a,b"}, "path='a,b' has a comma: for several queues write .option('destinations', 'a,b')"),
        ({}, "destination is missing"),
    ],
)
@pytest.mark.parametrize("kind", [SourceOptions, BrowseOptions])
def test_what_cannot_be_read_is_refused(kind: Any, given: dict[str, str], said: str) -> None:
    source = SOURCE if kind is SourceOptions else {"url": SOURCE["url"]}
    with pytest.raises(ConfigError) as refused:
        kind.parse({**source, **given})
    assert said in str(refused.value)


def test_names_are_read_with_spaces_and_schemes() -> None:
    found = SourceOptions.parse({**SOURCE, "destinations": "orders, queue://invoices"})
    assert found.destinations == (Queue("orders"), Queue("invoices"))


@pytest.mark.parametrize("queues", ["orders,ActiveMQ.DLQ", "ActiveMQ.>", "*.DLQ,orders"])
def test_a_query_that_reads_its_own_dead_letters_makes_none(queues: str) -> None:
    assert SourceOptions.parse({**SOURCE, "destinations": queues}).bad_messages == "fail"
    with pytest.raises(ConfigError, match=r"back to it for ever.*deadLetterQueue"):
        SourceOptions.parse({**SOURCE, "destinations": queues, "badMessages": "deadLetter"})


def test_each_row_has_its_queue_and_each_queue_its_order(place: Place) -> None:
    for number in range(20):
        place.send(f"o{number}")
        place.send(f"i{number}", queue="invoices")
    with BatchReceiver(place.options(destinations=BOTH), InDoubt()) as source:
        found = rows(received(source))
        assert source.confirm()
    assert [body for body, queue in found if queue == "queue://orders"] == [f"o{number}" for number in range(20)]
    assert [body for body, queue in found if queue == "queue://invoices"] == [f"i{number}" for number in range(20)]
    assert (place.left(), place.left("invoices")) == ([], [])


def test_a_long_queue_does_not_keep_the_other_waiting(place: Place) -> None:
    place.send(*map(str, range(400)))
    place.send("late", queue="invoices")
    with BatchReceiver(place.options(destinations=BOTH), InDoubt()) as source:
        found = rows(received(source, most=100))  # in which it may still be on its way
        assert source.confirm()
        found += rows(received(source, most=100))
    assert ("late", "queue://invoices") in found


def test_what_a_sender_has_written_as_its_destination_does_not_count(place: Place) -> None:
    """AMQP's `to` is the sender's; the column and the dead letter name the queue."""
    if not place.url.startswith("amqp"):
        pytest.skip("STOMP's header `destination` is the broker's")
    foreign = Foreign("amqp", "activemq", place.url)
    head = section(0x73, sequence(b"\x40", b"\x40", string(b"queue://elsewhere")))
    for queue in ("orders", "invoices"):
        foreign.send(queue, head + section(0x75, binary(b"bad")))
    with BatchReceiver(place.options(destinations=BOTH), InDoubt()) as source:
        assert sorted(queue for _, queue in rows(received(source))) == ["queue://invoices", "queue://orders"]
    given = place.options(destinations=BOTH, converter="tests.spark.place:nothing_is_good")
    with BatchReceiver(given, InDoubt()) as source:
        assert received(source).rows == 0
        assert source.confirm()
    letters = place.broker.messages("ActiveMQ.DLQ")
    origins = sorted(str(each.properties["originalDestination"]) for each in letters)
    assert origins == ["queue://invoices", "queue://orders"]


def test_the_same_message_on_two_queues_is_two(place: Place) -> None:
    """A copy with the same id, body, properties and time; only that of `orders` stands in a segment in doubt."""
    with redelivery.connect(place.broker.vm_url) as connection, connection.session() as session:
        session.producer("orders,invoices").send("twin")
    with BatchReceiver(place.options(destinations=BOTH), InDoubt()) as source:
        first = received(source)
    keys = dict(zip(dict.fromkeys(queue for _, queue in rows(first)), first.keys, strict=True))
    assert len(set(keys.values())) == 2
    with BatchReceiver(place.options(destinations=BOTH), InDoubt(keys["queue://orders"])) as source:
        batch = received(source)
        assert (rows(batch), batch.duplicates) == ([("twin", "queue://invoices")], 1)
        assert source.confirm()
    assert (place.left(), place.left("invoices")) == ([], [])


@pytest.mark.parametrize("kind", KINDS)
def test_the_receivers_read_all(kind: Any, place: Place) -> None:
    receiver = {} if kind is DriverStreamReader else {"receiver": "executor", "numPartitions": 2}
    place.send(*(f"o{number}" for number in range(30)))
    place.send(*(f"i{number}" for number in range(30)), queue="invoices")
    with readers(kind, place, destinations=BOTH, **receiver) as made:
        stream = made()
        found, start = drained(stream, stream.initialOffset())
        place.send("more", queue="invoices")
        more, _ = drained(stream, start)
    expected = Counter(f"{kind}{number}" for kind in "oi" for number in range(30))
    assert (Counter(found), more) == (expected, ["more"])
    assert (place.left(), place.left("invoices")) == ([], [])


def test_a_message_of_any_queue_begins_a_batch(place: Place) -> None:
    with readers(ExecutorStreamReader, place, destinations=BOTH, receiver="executor") as made:
        stream = made(pollInterval="100 ms")
        start = stream.initialOffset()
        assert stream.latestOffset(start, ALL) == start
        place.send("a", queue="invoices")
        assert stream.latestOffset(start, ALL) != start


def test_a_browse_looks_at_each(place: Place) -> None:
    place.send("a", "b")
    place.send("c", queue="invoices")
    reader = BrowseReader(BrowseOptions.parse({"url": place.url, "destinations": BOTH}))
    first, second = reader.partitions()
    copy: BrowseReader = pickle.loads(pickle.dumps(reader))  # noqa: S301  # our own
    assert (texts(copy.read(first)), texts(copy.read(second))) == (["a", "b"], ["c"])
    assert (place.left(), place.left("invoices")) == (["a", "b"], ["c"])


def test_a_browse_of_a_pattern_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="is a pattern, and a browser looks at one queue"):
        BrowseOptions.parse({"url": "stomp://h", "destinations": "orders.>"})
