"""What is bounded in bytes: a transaction, a batch, what pends; and what a trickle costs while Spark is busy."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.spark.place import Place
from tests.spark.streams import ALL, drained, readers, rows

from redelivery import ConfigError
from redelivery.broker import EmbeddedBroker
from redelivery.spark.log.segments import segment_extent
from redelivery.spark.log.store.local_store import LocalStore
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader
from redelivery.spark.read.receiving.batch_receiver import BatchReceiver
from redelivery.spark.rows.columns import ROW_BYTES

Reader = DriverStreamReader | ExecutorStreamReader
BODY = 10_000
KIND = pytest.mark.parametrize("kind", [DriverStreamReader, ExecutorStreamReader], ids=["driver", "executor"])


@pytest.fixture
def place(broker: EmbeddedBroker, tmp_path: Path) -> Place:
    return Place(broker, tmp_path, "stomp")


@pytest.fixture
def make(kind: type[Reader], place: Place) -> Iterator[Callable[..., Any]]:
    receiver = "driver" if kind is DriverStreamReader else "executor"
    with readers(kind, place, receiver=receiver, availableNowIdle="2 s") as made:
        yield made


def bodies(count: int, size: int = BODY) -> list[str]:
    return [f"{number:03}".ljust(size, "x") for number in range(count)]


def sizes(place: Place) -> list[int]:
    """Bytes of each segment that is there."""
    wal = place.wal()
    return [segment_extent(wal.reader(each.seq, each.part)).size for each in wal.segments()]


@KIND
def test_a_segment_ends_at_segment_bytes(place: Place, make: Callable[..., Any], kind: type[Reader]) -> None:
    del kind
    sent = bodies(40)
    place.send(*sent)
    stream = make(segmentBytes="64 KiB", retainBatches="1000")
    assert drained(stream, stream.initialOffset())[0] == sent
    found = [size for size in sizes(place) if size]
    assert sum(found) == 40 * (BODY + ROW_BYTES)
    assert max(found) <= 64 << 10
    assert len(found) >= 7


@KIND
def test_a_message_that_is_larger_stands_alone(place: Place, make: Callable[..., Any], kind: type[Reader]) -> None:
    del kind
    sent = ["a", "b" * 100_000, "c" * 100_000, "d"]
    place.send(*sent)
    stream = make(segmentBytes="1000", retainBatches="1000")
    assert drained(stream, stream.initialOffset())[0] == sent
    assert [size // 1000 for size in sizes(place) if size > 1000] == [100, 100]


@pytest.mark.parametrize("kind", [DriverStreamReader])
def test_a_batch_has_no_more_bytes_than_it_may(place: Place, make: Callable[..., Any], kind: type[Reader]) -> None:
    del kind
    sent = bodies(40)
    place.send(*sent)
    stream = make(segmentBytes="32 KiB", maxBytesPerBatch="100 KiB")
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    found: list[list[str]] = []
    while (end := stream.latestOffset(start, ALL)) != start:
        found.append(rows(stream, start, end))
        start = end
    assert [body for batch in found for body in batch] == sent
    assert max(map(len, found)) == 9, "three segments of three messages"


@pytest.mark.parametrize("kind", [ExecutorStreamReader])
def test_tasks_share_the_bytes_of_a_batch(place: Place, make: Callable[..., Any], kind: type[Reader]) -> None:
    del kind
    place.send(*bodies(40))
    stream = make(numPartitions=3, maxBytesPerBatch="100 KiB")
    start = stream.initialOffset()
    end = stream.latestOffset(start, ALL)
    assert [len(rows_of(stream, share)) for share in stream.partitions(start, end)] == [3, 3, 3]
    stream.commit(end)
    again = make(maxPendingBytes="50 KiB") if stream.stop() is None else None
    assert again is not None
    assert len(rows(again, end, again.latestOffset(end, ALL))) == 5


def rows_of(stream: Any, share: Any) -> list[Any]:
    return [row for batch in stream.read(share) for row in batch.column("body").to_pylist()]


@pytest.mark.parametrize("kind", [DriverStreamReader])
def test_receiving_pauses_at_max_pending_bytes_and_goes_on(
    place: Place, make: Callable[..., Any], kind: type[Reader]
) -> None:
    del kind
    sent = bodies(60)
    place.send(*sent)
    stream = make(segmentBytes="32 KiB", maxPendingBytes="100 KiB", prefetch="1")
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    end = stream.latestOffset(start, ALL)  # it does not wait for more than may pend
    first = rows(stream, start, end)
    lanes = stream._lanes
    assert 100 << 10 <= lanes._bytes <= 133 << 10
    assert lanes._wanted[0], "it is on hold"
    assert place.left(), "the rest waits at the broker"
    stream.commit(end)
    assert first + drained(stream, end)[0] == sent


@pytest.mark.parametrize("kind", [DriverStreamReader])
def test_a_trickle_makes_few_files_while_spark_is_busy(
    place: Place, make: Callable[..., Any], kind: type[Reader], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One transaction until Spark asks, whatever the pauses between the messages."""
    del kind
    listings: Counter[str] = Counter()
    original = LocalStore.list
    monkeypatch.setattr(LocalStore, "list", lambda store, name: listings.update([name]) or original(store, name))
    stream = make(linger="1 h", pollInterval="50 ms")
    start = stream.initialOffset()
    assert stream.latestOffset(start, ALL) == start
    listings.clear()
    taken = threading.Event()
    # before the first is sent: who has received all of them waits inside the call that it made before
    monkeypatch.setattr(BatchReceiver, "_more", seen(BatchReceiver._more, 30, taken))
    for number in range(30):
        place.send(str(number))
    assert taken.wait(20)
    assert not list((place.folder / "seg").glob("*")), "it is open as long as Spark is busy"
    stream.options = place.options(pollInterval="10 s")
    end = stream.latestOffset(start, ALL)
    assert rows(stream, start, end) == [str(number) for number in range(30)]
    assert len(list((place.folder / "seg").glob("*"))) == 2
    assert sum(listings[folder] for folder in ("seg", "doubt", "commits", "epochs")) <= 5  # three of them once


def seen(original: Callable[..., Any], count: int, done: threading.Event) -> Callable[..., Any]:
    """Notifies when so many messages have come."""

    def more(self: BatchReceiver, *given: Any) -> Any:
        if len(self._builder.columns) >= count:
            done.set()
        return original(self, *given)

    return more


@pytest.mark.parametrize("kind", [DriverStreamReader])
def test_linger_ends_a_transaction_although_nobody_asks(
    place: Place, make: Callable[..., Any], kind: type[Reader]
) -> None:
    del kind
    stream = make(linger="100 ms", pollInterval="50 ms")
    start = stream.initialOffset()
    assert stream.latestOffset(start, ALL) == start
    published = threading.Event()
    publish = stream.wal.publish

    def publishing(*given: Any) -> bool:
        published.set()
        done: bool = publish(*given)
        return done

    stream.wal.publish = publishing
    place.send("a")
    assert published.wait(20)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"segmentBytes": "2 GiB"}, "from 1 to 1 GiB"),
        ({"segmentBytes": "0"}, "from 1 to 1 GiB"),
        ({"segmentBytes": "64 MB/s"}, "'64 MiB'"),
        ({"maxBytesPerBatch": "-1"}, "'64 MiB'"),
        ({"segmentBytes": "1 MiB", "maxBytesPerBatch": "1 KiB"}, "=1 MiB is more than maxBytesPerBatch=1 KiB"),
        ({"segmentBytes": "1 MiB", "maxPendingBytes": "512 KiB"}, "is more than maxPendingBytes=512 KiB"),
    ],
)
@pytest.mark.parametrize("receiver", ["driver", "executor"])
def test_what_is_not_a_size_is_refused(place: Place, given: dict[str, str], words: str, receiver: str) -> None:
    with pytest.raises(ConfigError, match=words):
        place.options(receiver=receiver, **given)


def test_the_defaults_fit_what_is_given(place: Place) -> None:
    options = place.options()
    assert (options.segment_bytes, options.max_bytes_per_batch, options.max_pending_bytes) == (
        64 << 20,
        1 << 30,
        2 << 30,
    )
    assert place.options(maxBytesPerBatch="10m").segment_bytes == 10 << 20
    assert place.options(maxPendingBytes="10 KB").segment_bytes == 10 << 10
