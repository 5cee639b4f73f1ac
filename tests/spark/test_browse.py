"""`BrowseReader` on the embedded broker, without Spark: rows, order, nothing taken, refusals."""

from __future__ import annotations

import pickle
from typing import Any

import pyarrow as pa
import pytest

import redelivery
from redelivery import ConfigError, InvalidSelectorError, MessageFormatError, SecurityError, UnsupportedError
from redelivery.broker import BrokerConfig, EmbeddedBroker
from redelivery.spark.options.query import BrowseOptions
from redelivery.spark.read.inspect import browse
from redelivery.spark.read.inspect.browse import BrowseReader
from redelivery.spark.rows.columns import Columns
from redelivery.spark.rows.schema import arrow_schema


@pytest.fixture(params=["stomp", "amqp"])
def url(request: pytest.FixtureRequest, broker: EmbeddedBroker) -> str:
    url: str = getattr(broker, f"{request.param}_url")
    return url


def reader(url: str, **options: str) -> BrowseReader:
    return BrowseReader(BrowseOptions.parse({"url": url, "destination": "orders", **options}))


def table(reader: BrowseReader) -> Any:
    """What Spark would make of it: planned here, read from a copy that was pickled."""
    copy: BrowseReader = pickle.loads(pickle.dumps(reader))  # noqa: S301  # our own
    batches = [batch for partition in reader.partitions() for batch in copy.read(partition)]
    return pa.Table.from_batches(batches, schema=arrow_schema(reader.options.properties_type))


def send(broker: EmbeddedBroker, *bodies: Any, **options: Any) -> None:
    with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
        for body in bodies:
            session.producer("orders").send(body, **options)


def test_all_rows_come_in_order_as_often_as_they_are_asked_for(broker: EmbeddedBroker, url: str) -> None:
    send(broker, "a", b"b", None, properties={"colour": "red"}, correlation_id="c")
    asked = reader(url)
    for _ in range(3):
        rows = table(asked).to_pylist()
        assert [(row["body"], row["body_type"]) for row in rows] == [(b"a", "text"), (b"b", "bytes"), (None, "none")]
        assert {(row["destination"], row["correlation_id"]) for row in rows} == {("queue://orders", "c")}
        assert dict(rows[0]["properties"])["colour"] == "red"
    assert broker.queue_depth("orders") == 3


def test_an_empty_queue_has_no_rows(url: str) -> None:
    assert table(reader(url)).num_rows == 0


def test_variants_keep_the_types_of_properties(broker: EmbeddedBroker) -> None:
    send(broker, "a", properties={"n": 5})
    ((name, value),) = table(reader(broker.amqp_url, propertiesType="variant")).to_pylist()[0]["properties"]
    assert name == "n"
    assert value["value"] != b""


def test_many_rows_are_several_batches(broker: EmbeddedBroker, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browse, "_ROWS", 100)
    send(broker, *(str(number) for number in range(250)))
    (partition,) = reader(url).partitions()
    batches = list(reader(url).read(partition))
    assert [batch.num_rows for batch in batches] == [100, 100, 50]
    assert pa.Table.from_batches(batches)["body"].to_pylist() == [b"%d" % number for number in range(250)]


def test_a_batch_ends_where_its_bodies_are_enough(
    broker: EmbeddedBroker, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browse, "_BYTES", 10_000)
    send(broker, *[b"x" * 4000] * 5)
    (partition,) = reader(url).partitions()
    assert [batch.num_rows for batch in reader(url).read(partition)] == [3, 2]


def test_a_broker_that_would_consume_is_refused_before_anything_is_taken(broker: EmbeddedBroker) -> None:
    """The same broker under the name of one whose STOMP has no browsing."""
    send(broker, "a")
    for dialect in ("artemis!", "rabbitmq!", "hornetq!"):
        with pytest.raises(UnsupportedError, match=r"over STOMP 1\.2 has no browsing.*consumed"):
            reader(broker.stomp_url, dialect=dialect).partitions()
    assert broker.queue_depth("orders") == 1


def test_what_cannot_be_looked_at_is_an_error_while_the_job_is_planned(broker: EmbeddedBroker, url: str) -> None:
    with pytest.raises(InvalidSelectorError, match="a = = 1"):
        reader(url, selector="a = = 1").partitions()
    with pytest.raises(ConfigError, match="pattern"):
        reader(url, destination="orders.>")
    assert broker.core.connections == 0


def test_the_login_is_used(url: str) -> None:
    assert url
    config = BrokerConfig(users={"ann": "secret"})
    with EmbeddedBroker("guarded-browse", config=config, stomp_port=0, amqp_port=0) as guarded:
        for port in (guarded.stomp_url, guarded.amqp_url):
            assert table(reader(port, user="ann", password="secret")).num_rows == 0  # noqa: S106  # of this test
            with pytest.raises(SecurityError):
                reader(port, user="ann", password="wrong").partitions()  # noqa: S106  # as above


def test_a_message_that_cannot_be_a_row_fails_the_read_and_is_named(
    broker: EmbeddedBroker, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    send(broker, "a")
    (shown,) = broker.messages("orders")

    def refuse(*_: object) -> None:
        raise MessageFormatError("half a surrogate pair")

    monkeypatch.setattr(Columns, "add", refuse)
    (partition,) = reader(url).partitions()
    with pytest.raises(MessageFormatError, match=f"{shown.message_id} of queue://orders cannot be a row: half a"):
        list(reader(url).read(partition))


def test_a_read_that_is_given_up_leaves_no_connection(broker: EmbeddedBroker, url: str) -> None:
    send(broker, "a", "b")
    (partition,) = reader(url).partitions()
    reading = reader(url).read(partition)
    next(reading)
    reading.close()  # type: ignore[attr-defined]  # it is a generator
    assert broker.core.connections == 0
