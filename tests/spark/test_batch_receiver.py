"""One session of the source: what it receives, and what becomes of it when anything fails."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pyarrow as pa
import pytest
from tests.run.gate import Gate
from tests.spark.place import QUEUE, Place, texts

from redelivery import ConfigError, ConnectError, PrefetchPolicy, ProtocolError
from redelivery.model.passport import read_passport
from redelivery.spark.log.segments import segment_batches
from redelivery.spark.read.receiving.bad_messages import BadMessageError
from redelivery.spark.read.receiving.batch_receiver import BatchReceiver, load_converter
from redelivery.spark.read.receiving.consumer_rules import window
from redelivery.spark.read.receiving.duplicates import SegmentsInDoubt
from redelivery.spark.read.receiving.received_batch import BatchPause, ReceivedBatch
from redelivery.spark.rows.digests import Key

CONVERTER = "tests.spark.place:shout"


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


class Segments:
    """In doubt, all in one."""

    def __init__(self, *keys: Key) -> None:
        self.keys = list(keys)

    def in_doubt(self) -> dict[str, list[Key]]:
        return {"1": self.keys} if self.keys else {}

    def confirmed(self, name: str) -> bool:
        assert name == "1"
        return False


def receiver(
    place: Place, opened: ExitStack, in_doubt: SegmentsInDoubt | None = None, **options: object
) -> BatchReceiver:
    return opened.enter_context(BatchReceiver(place.options(**options), in_doubt or Segments()))


def receiving(
    source: BatchReceiver, rows: int = 1000, gap: float = 0.05, size: int = 1 << 30, **how: Any
) -> ReceivedBatch | None:
    return source.receive(rows, size, lambda: BatchPause(gap, **how), first=0.25)


def received_batch(source: BatchReceiver, rows: int = 1000, gap: float = 0.05, **how: Any) -> ReceivedBatch:
    """The next batch that has anything, whatever was lost before."""
    return next(batch for _ in range(20) if (batch := receiving(source, rows, gap, **how)) is not None)


def batches(batch: ReceivedBatch) -> list[Any]:
    return list(segment_batches(pa.ipc.open_file(batch.data)))


def bodies(batch: ReceivedBatch) -> list[str]:
    return texts(batches(batch))


def test_what_is_confirmed_is_gone_and_the_rest_stays(place: Place, opened: ExitStack) -> None:
    place.send(*"abcde")
    source = receiver(place, opened)
    batch = received_batch(source, rows=3)
    assert (bodies(batch), batch.rows, batch.received, batch.duplicates) == (["a", "b", "c"], 3, 3, 0)
    assert source.confirm()
    assert bodies(received_batch(source)) == ["d", "e"]
    source.close()
    assert place.left() == ["d", "e"]


def test_nothing_there_is_none(place: Place, opened: ExitStack) -> None:
    assert receiving(receiver(place, opened)) is None


def test_a_fill_ends_when_nothing_more_comes(place: Place, opened: ExitStack) -> None:
    place.send("a")
    source = receiver(place, opened)
    sender = threading.Timer(0.1, place.send, ["b"])
    sender.start()
    assert bodies(received_batch(source, gap=5, rows=2)) == ["a", "b"]
    sender.join()


def test_who_asks_meanwhile_gets_what_is_there(place: Place, opened: ExitStack) -> None:
    place.send("a", "b")
    source, waits = receiver(place, opened), [30.0, 30.0, 0.0]
    batch = source.receive(1000, 1 << 30, lambda: BatchPause(waits.pop(0) if waits else 0.0), first=5)
    assert batch is not None
    assert bodies(batch) == ["a", "b"]
    assert not waits


def test_a_fill_has_a_longest_time(place: Place, opened: ExitStack) -> None:
    place.send(*map(str, range(300)))
    source = receiver(place, opened, ackChunk=10)
    batch = received_batch(source, gap=30, longest=0.0)
    assert 1 <= batch.received <= 11


def test_a_fill_has_a_least_time(place: Place, opened: ExitStack) -> None:
    place.send("a")
    source = receiver(place, opened)
    sender = threading.Timer(0.2, place.send, ["b"])
    sender.start()
    assert bodies(received_batch(source, gap=0.0, least=5, rows=2)) == ["a", "b"]
    sender.join()


@pytest.mark.parametrize("command", ["ACK", "COMMIT"])
def test_what_stands_in_a_segment_in_doubt_is_dropped_when_it_comes_again(
    place: Place, opened: ExitStack, command: str
) -> None:
    place.send(*"abc")
    known = Segments()
    source = receiver(place, opened, known)
    first = received_batch(source)
    place.broker.faults.drop(command)
    assert not source.confirm()  # the connection is lost before the broker has committed
    known.keys += first.keys
    place.send("d")
    second = received_batch(source, rows=4, gap=2)
    assert (bodies(second), second.rows, second.duplicates) == (["d"], 1, 3)
    assert source.confirm()
    assert place.left() == []
    assert (source.counts["inDoubt"], source.counts["duplicates"]) == (1, 3)


def test_without_dedupe_they_come_twice(place: Place, opened: ExitStack) -> None:
    place.send("a")
    source = receiver(place, opened, _Never(), dedupe="off")
    received_batch(source)
    place.broker.faults.drop("COMMIT")
    assert not source.confirm()
    assert bodies(received_batch(source)) == ["a"]


class _Never(Segments):
    def in_doubt(self) -> dict[str, list[Key]]:
        raise AssertionError("nobody asks without dedupe")


def test_a_lost_connection_is_made_anew(place: Place, opened: ExitStack) -> None:
    place.send("a", "b")
    place.broker.faults.drop_after("SUBSCRIBE")
    source = receiver(place, opened)
    assert bodies(received_batch(source, rows=2, gap=1)) == ["a", "b"]
    assert source.counts["connections"] == 2


def test_a_batch_during_which_the_connection_was_lost_is_received_anew(place: Place, opened: ExitStack) -> None:
    scheme, _, port = place.url.rpartition(":")
    gate = opened.enter_context(Gate("127.0.0.1", int(port)))
    source = receiver(place, opened, url=f"{scheme}:{gate.port}")
    assert receiving(source) is None  # it is connected
    place.send("a", "b")
    cut = threading.Timer(0.1, gate.shut, [0.0])
    cut.start()
    assert receiving(source, rows=3, gap=0.4) is None  # "a" and "b" came twice meanwhile
    cut.join()
    place.send("c")
    assert bodies(received_batch(source, rows=3, gap=1)) == ["a", "b", "c"]
    assert source.confirm()
    assert (place.left(), source.counts["connections"], source.counts["inDoubt"]) == ([], 2, 0)


def test_a_broker_that_goes_away_for_good_is_named(place: Place, opened: ExitStack) -> None:
    source = receiver(place, opened, maxReconnectTime="300 ms")
    assert receiving(source, 1, 0.1) is None
    place.broker.close()
    with pytest.raises(ConnectError, match=r"127\.0\.0\.1.*maxReconnectTime"):
        all(receiving(source, 1, 0.1) is None for _ in range(20))


def test_a_broker_that_stays_away_is_named(place: Place, opened: ExitStack) -> None:
    place.broker.close()
    source = receiver(place, opened, maxReconnectTime="1 s")
    with pytest.raises(ConnectError, match=r"127\.0\.0\.1.*maxReconnectTime"):
        receiving(source, 1, 0.1)


def test_a_stop_ends_the_waiting_for_a_broker(place: Place, opened: ExitStack) -> None:
    place.broker.close()
    stopped = threading.Event()
    options = place.options(maxReconnectTime="1 h")
    source = opened.enter_context(BatchReceiver(options, Segments(), stopped=stopped))
    timer = threading.Timer(0.3, stopped.set)
    timer.start()
    with pytest.raises(ConnectError):
        receiving(source, 1, 0.1)
    timer.join()


def test_what_no_other_try_would_cure_is_raised_at_once(place: Place, opened: ExitStack) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        web = threading.Thread(target=_answer_as_the_web, args=(server,))
        web.start()
        url = f"stomp://127.0.0.1:{server.getsockname()[1]}"
        source = receiver(place, opened, url=url, maxReconnectTime="1 h")
        with pytest.raises(ProtocolError):
            receiving(source, 1, 0.1)
        web.join()


def _answer_as_the_web(server: socket.socket) -> None:
    with server.accept()[0] as client:
        client.recv(1 << 16)
        client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_a_broker_that_comes_late_is_waited_for(place: Place, opened: ExitStack) -> None:
    scheme, _, port = place.url.rpartition(":")
    gate = opened.enter_context(Gate("127.0.0.1", int(port)))
    gate.shut(0.3)
    place.send("a")
    source = receiver(place, opened, url=f"{scheme}:{gate.port}")
    assert bodies(received_batch(source, gap=1)) == ["a"]


def test_a_converter_makes_the_body(place: Place, opened: ExitStack) -> None:
    place.send("a")
    assert bodies(received_batch(receiver(place, opened, converter=CONVERTER))) == ["A"]


@pytest.mark.parametrize("path", ["no.such.module:f", "tests.spark.place:absent"])
def test_a_converter_that_is_not_there_is_named(path: str) -> None:
    with pytest.raises(ConfigError, match=path):
        load_converter(path)


def test_bad_messages_can_fail_the_query(place: Place, opened: ExitStack) -> None:
    place.send("a", "bad 1")
    source = receiver(place, opened, converter=CONVERTER, badMessages="fail")
    with pytest.raises(BadMessageError, match=r"queue://orders.*ValueError: no bad 1.*badMessages=fail"):
        received_batch(source, rows=2)
    source.close()
    assert place.left() == ["a", "bad 1"]


def test_bad_messages_can_be_dropped(place: Place, opened: ExitStack) -> None:
    place.send("a", "bad 1", "b")
    source = receiver(place, opened, converter=CONVERTER, badMessages="drop")
    batch = received_batch(source, rows=3)
    assert (bodies(batch), batch.received) == (["A", "B"], 3)
    assert source.confirm()
    assert (place.left(), place.left("ActiveMQ.DLQ"), source.counts["dropped"]) == ([], [], 1)


def test_bad_messages_can_be_rows(place: Place, opened: ExitStack) -> None:
    place.send("a", "bad 1")
    source = receiver(place, opened, converter=CONVERTER, badMessages="permissive")
    (batch,) = batches(received_batch(source, rows=2))
    assert batch.column("_error").to_pylist() == [None, "ValueError: no bad 1"]
    assert batch.column("body").to_pylist() == [b"A", b"bad 1"]


def test_bad_messages_are_dead_letters_in_the_same_transaction(place: Place, opened: ExitStack) -> None:
    place.send("a", "bad 1", "b", properties={"kind": "test"})
    source = receiver(place, opened, converter=CONVERTER, application="shop 2.4")
    assert bodies(received_batch(source, rows=3)) == ["A", "B"]
    assert place.left("ActiveMQ.DLQ") == []  # not before the commit
    assert source.confirm()
    (dead,) = place.broker.messages("ActiveMQ.DLQ")
    assert dead.body == "bad 1"
    assert dead.properties["dlqDeliveryFailureCause"] == "ValueError: no bad 1"
    assert dead.properties["originalDestination"] == "queue://orders"
    assert dead.properties["kind"] == "test"
    assert (place.left(), source.counts["deadLetters"]) == ([], 1)
    passport = read_passport(dead.properties["dlqPassport"])
    assert passport is not None
    assert (passport.exception, passport.message, passport.application) == ("ValueError", "no bad 1", "shop 2.4")
    assert str(passport.consumer).startswith("spark.readStream of queue://orders, process ")
    assert [each.number for each in passport.attempts] == [1]


def test_bad_messages_come_again_by_the_policy_where_there_is_one(place: Place, opened: ExitStack) -> None:
    place.send("a", "b", "bad 1", "c", "bad 2", "d")
    source = receiver(place, opened, converter=CONVERTER, maxRedeliveries=2, redeliveryDelay="10 ms")
    rows: list[str] = []
    for _ in range(40):
        batch = receiving(source, 100, 0.05)
        if batch is not None:
            rows += bodies(batch)
            assert source.confirm()
        if len(rows) == 4:
            break
    assert rows == ["A", "B", "C", "D"]
    source.close()
    dead = place.broker.messages("ActiveMQ.DLQ")
    assert [each.body for each in dead] == ["bad 1", "bad 2"]
    assert (place.left(), source.counts["deadLetters"]) == ([], 2)


def test_exhausted_messages_are_dead_letters(place: Place) -> None:
    place.send("a")
    deliveries = 0
    while not place.left("ActiveMQ.DLQ"):
        with ExitStack() as run:
            source = receiver(place, run, maxRedeliveries=1, redeliveryDelay=0)
            deliveries += receiving(source, 1, 0.1) is not None  # and is never confirmed
    assert (place.left("ActiveMQ.DLQ"), place.left(), deliveries) == (["a"], [], 2)


def test_a_selector_leaves_what_it_does_not_match(place: Place, opened: ExitStack) -> None:
    for number in (1, 2, 3):
        place.send(str(number), properties={"n": number})
    source = receiver(place, opened, selector="n = 2")
    assert bodies(received_batch(source)) == ["2"]
    assert source.confirm()
    assert place.left() == ["1", "3"]


def test_the_destination_is_where_the_options_say(place: Place, opened: ExitStack) -> None:
    place.send("x", queue="another")
    assert bodies(received_batch(receiver(place, opened, destination="another"))) == ["x"]
    assert QUEUE != "another"


@pytest.mark.parametrize(
    ("options", "quota", "expected"),
    [
        ({}, None, PrefetchPolicy(max_bytes=16 << 20)),
        ({}, 7, PrefetchPolicy(7, 7, 7, 7, max_bytes=16 << 20)),
        ({"destinations": "a,b,c,d"}, None, PrefetchPolicy(max_bytes=4 << 20)),
        ({"prefetch": 30}, None, PrefetchPolicy.of(30)),
        ({"prefetch": 30}, 7, PrefetchPolicy.of(7)),
        ({}, 1_000_000, PrefetchPolicy(32767, 32767, 32767, 32767, max_bytes=16 << 20)),
    ],
    ids=["usual", "a small share", "four queues", "named", "named and a small share", "a large share"],
)
def test_the_window_is_the_brokers_unless_it_is_named(
    place: Place, options: dict[str, object], quota: int | None, expected: PrefetchPolicy
) -> None:
    assert window(place.options(**options), quota) == expected
