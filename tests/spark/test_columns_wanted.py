"""`columns` and `includeProperties`: what rows show; the log keeps all of each message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.place import Place
from tests.spark.streams import ALL, pickled, readers

from redelivery.model.errors import ConfigError
from redelivery.spark.options.query import BrowseOptions, SourceOptions
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader
from redelivery.spark.read.inspect.browse import BrowseReader
from redelivery.spark.rows.column_names import COLUMNS
from redelivery.spark.rows.schema import arrow_schema, struct_type
from redelivery.spark.source import DefaultSource

READ = {"url": "stomp://h", "path": "q"}
STREAM = {**READ, "wallocation": "/nowhere/wal"}
KINDS = {"driver": DriverStreamReader, "executor": ExecutorStreamReader}


def test_the_names_are_those_of_the_schema() -> None:
    assert tuple(arrow_schema().names) == COLUMNS == tuple(struct_type().names)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ({}, COLUMNS),
        ({"columns": "body"}, ("body",)),
        ({"columns": " properties , body"}, ("properties", "body")),
        ({"includeproperties": "false"}, COLUMNS[:-1]),
        ({"includeproperties": "true"}, COLUMNS),
    ],
)
@pytest.mark.parametrize("options", [READ, STREAM], ids=["browse", "stream"])
def test_the_schema_has_the_wanted_columns(
    options: dict[str, str], given: dict[str, str], shown: tuple[str, ...]
) -> None:
    source = DefaultSource({**options, **given})
    assert tuple(source.schema().names) == shown
    reader = source.streamReader if options is STREAM else source.reader
    assert reader(source.schema())  # also as a user's own, who writes the same columns


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"columns": ""}, "there is no column ''"),
        ({"columns": "body,,type"}, "there is no column ''"),
        ({"columns": "bodi"}, "there is no column 'bodi'; did you mean 'body'"),
        ({"columns": "Body"}, "there is no column 'Body'; did you mean 'body'"),
        ({"columns": "_error"}, "there is no column '_error'"),
        ({"columns": "body,body"}, "has body twice"),
        ({"includeproperties": "no way"}, "includeProperties='no way'"),
        ({"columns": "body", "includeproperties": "false"}, "includeProperties and columns are both given"),
    ],
)
def test_what_cannot_be_shown_is_refused(given: dict[str, str], said: str) -> None:
    for kind, options in ((BrowseOptions, READ), (SourceOptions, STREAM)):
        with pytest.raises(ConfigError, match=said):
            kind.parse({**options, **given})


def batches_of(stream: Any, start: Any, end: Any) -> Iterator[Any]:
    for partition in stream.partitions(start, end):
        yield from pickled(stream).read(partition)


@pytest.mark.parametrize("receiver", KINDS)
def test_rows_have_them_in_that_order_and_a_later_query_has_others(place: Place, receiver: str) -> None:
    place.send("a", "b", properties={"n": 1}, correlation_id="c")
    with readers(KINDS[receiver], place, receiver=receiver) as made:
        stream = made(columns="correlation_id,body")
        start = stream.initialOffset()
        stream.prepareForTriggerAvailableNow()
        end = stream.latestOffset(start, ALL)
        table = pa.Table.from_batches(batches_of(stream, start, end))
        assert table.column_names == ["correlation_id", "body"]
        assert sorted(table.column("body").to_pylist()) == [b"a", b"b"]
        stream.stop()
        table = pa.Table.from_batches(batches_of(made(), start, end))  # the same batch once more, by other options
        assert table.column_names == list(COLUMNS)
        assert {dict(each)["n"] for each in table.column("properties").to_pylist()} == {"1"}


def test_errors_come_behind(place: Place) -> None:
    place.send("a")
    with readers(DriverStreamReader, place, badMessages="permissive", includeProperties="false") as made:
        stream = made()
        start = stream.initialOffset()
        stream.prepareForTriggerAvailableNow()
        (batch,) = batches_of(stream, start, stream.latestOffset(start, ALL))
    assert batch.schema.names == [*COLUMNS[:-1], "_error"]


def test_dead_letters_of_a_batch_are_whole_all_the_same(place: Place) -> None:
    place.send("a", properties={"kind": "test"}, correlation_id="c1")
    with readers(DriverStreamReader, place, columns="body") as made:
        stream = made(maxBatchAttempts=1, onBatchFailure="deadLetter")
        start = stream.initialOffset()
        stream.prepareForTriggerAvailableNow()
        end = stream.latestOffset(start, ALL)
        for _ in range(2):
            list(batches_of(stream, start, end))
    (dead,) = place.broker.messages("ActiveMQ.DLQ")
    assert (dead.body, dead.correlation_id, dead.properties["kind"]) == ("a", "c1", "test")


def test_a_browse_shows_them(place: Place) -> None:
    place.send("a", properties={"n": 1})
    options = BrowseOptions.parse({"url": place.url, "destination": "orders", "columns": "type,body"})
    reader = BrowseReader(options)
    (batch,) = [each for partition in reader.partitions() for each in reader.read(partition)]
    assert batch.to_pylist() == [{"type": None, "body": b"a"}]
