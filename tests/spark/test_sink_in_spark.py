"""The sink under Spark: batch and stream, tasks that fail once or for good, a batch that is run again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.functions import udf

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.spark.source import DefaultSource
from redelivery.spark.write.rows import DEDUPE_ID
from redelivery.testing.brokers.real import RealBroker

pytestmark = [pytest.mark.timeout(180, func_only=True), pytest.mark.in_turns("url")]


@pytest.fixture(scope="module")
def jms(spark: Any) -> Any:
    """The session of all tests, which knows the format."""
    spark.dataSource.register(DefaultSource)
    return spark


@pytest.fixture(params=["stomp", "amqp"])
def url(request: pytest.FixtureRequest, broker: EmbeddedBroker) -> str:
    return broker.stomp_url if request.param == "stomp" else broker.amqp_url


def _bodies(broker: EmbeddedBroker) -> list[int]:
    return sorted(int(str(message.body)) for message in broker.messages("orders"))


def _write(rows: Any, url: str, **options: str) -> None:
    rows.write.format("jms").options(url=url, destination="orders", **options).mode("append").save()


def _stream(rows: Any, url: str, checkpoint: Path, destination: str = "orders") -> Any:
    """Write all there is, and return the query when it has ended."""
    writer = rows.writeStream.format("jms").options(url=url, destination=destination)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    return query


def _lines(folder: Path, count: int) -> None:
    folder.mkdir()
    (folder / "rows.txt").write_text("".join(f"{number}\n" for number in range(count)))


def test_a_batch_sends_every_row_once(jms: Any, broker: EmbeddedBroker, url: str) -> None:
    rows = jms.range(0, 1000, 1, 3).selectExpr(
        "cast(id as string) as body",
        "map('n', cast(id as string)) as properties",
        "cast(id % 10 as int) as priority",
        "concat('c-', id) as correlation_id",
    )
    _write(rows, url)
    assert _bodies(broker) == list(range(1000))
    for message in broker.messages("orders"):
        number = int(str(message.body))
        assert (message.properties["n"], message.priority) == (str(number), number % 10)
        assert message.correlation_id == f"c-{number}"
        assert DEDUPE_ID not in message.properties


def test_variants_and_rows_with_destinations_of_their_own(jms: Any, broker: EmbeddedBroker) -> None:
    rows = jms.sql(
        "select 'queue://even' as destination, cast('b' as binary) as body, "
        "map('n', cast(5 as variant), 'f', cast(0.5D as variant), 'b', cast(true as variant)) as properties, "
        "interval '1' hour as ttl"
    )
    rows.write.format("jms").options(url=broker.amqp_url).mode("append").save()
    (message,) = broker.messages("even")
    assert (message.body, message.properties["f"], message.properties["b"]) == (b"b", 0.5, True)
    assert message.properties["n"] == 5
    assert message.expiration is not None


def test_a_wrong_column_is_an_error_on_the_driver_that_names_it(jms: Any, broker: EmbeddedBroker) -> None:
    rows = jms.sql("select 'b' as body, 1 as color")
    with pytest.raises(Exception, match="the sink has no column 'color'"):  # Spark's own class, which changes
        _write(rows, broker.stomp_url)
    assert broker.queue_depth("orders") == 0


def _checked(spark: Any, count: int, check: Callable[[int], None]) -> Any:
    """Rows in two partitions, each of which ``check`` has seen on its way, a few at a time."""

    def see(number: int) -> str:
        check(number)
        return str(number)

    rows = spark.range(0, count, 1, 2)
    return rows.select(udf(see, "string", useArrow=False)(rows.id).alias("body"))


@pytest.fixture
def small_batches(jms: Any) -> Iterator[None]:
    """So that a task has sent rows when it fails."""
    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    usual = jms.conf.get(name)
    jms.conf.set(name, "10")
    yield
    jms.conf.set(name, usual)


@pytest.mark.usefixtures("small_batches")
def test_a_task_that_fails_once_sends_nothing_extra(jms: Any, broker: EmbeddedBroker, url: str) -> None:
    def fail_once(number: int) -> None:
        from pyspark import TaskContext

        if number == 1999 and TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("on purpose")

    _write(_checked(jms, 2000, fail_once), url, jobId="load")
    assert _bodies(broker) == list(range(2000))
    ids = {message.properties[DEDUPE_ID] for message in broker.messages("orders")}
    assert ids == {f"load-{partition}-{row}" for partition in (0, 1) for row in range(1000)}


@pytest.mark.usefixtures("small_batches")
def test_when_a_write_fails_for_good_what_finished_tasks_sent_stays(
    jms: Any, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    go = str(tmp_path / "go")

    def fail_always(number: int) -> None:
        import time
        from pathlib import Path

        if number == 1999:
            ends = time.monotonic() + 120
            while not Path(go).exists() and time.monotonic() < ends:
                time.sleep(0.02)
            raise RuntimeError("on purpose")

    def let_go_when_the_other_task_has_committed() -> None:
        while not ended.wait(0.02):
            if broker.queue_depth("orders") == 1000:
                Path(go).touch()
                return

    ended = threading.Event()
    watcher = threading.Thread(target=let_go_when_the_other_task_has_committed)
    watcher.start()
    try:
        with pytest.raises(Exception, match="on purpose"):  # Spark's own class, which changes
            _write(_checked(jms, 2000, fail_always), broker.stomp_url)
    finally:
        ended.set()
        watcher.join()
    assert Path(go).exists()
    assert _bodies(broker) == list(range(1000))


def test_a_stream_sends_every_row_once_with_the_ids_of_its_batch(
    jms: Any, broker: EmbeddedBroker, url: str, tmp_path: Path
) -> None:
    _lines(tmp_path / "in", 100)
    rows = jms.readStream.text(str(tmp_path / "in")).withColumnRenamed("value", "body")
    query = _stream(rows, url, tmp_path / "checkpoint")
    assert _bodies(broker) == list(range(100))
    ids = [message.properties[DEDUPE_ID] for message in broker.messages("orders")]
    assert ids == [f"{query.id}-0-0-{row}" for row in range(100)]


def test_in_foreach_batch_the_batch_is_a_part_of_the_ids(jms: Any, broker: EmbeddedBroker, tmp_path: Path) -> None:
    _lines(tmp_path / "in", 3)
    rows = jms.readStream.text(str(tmp_path / "in")).withColumnRenamed("value", "body")
    url = broker.stomp_url

    def send(batch: Any, _number: int) -> None:
        batch.write.format("jms").options(url=url, destination="orders", jobId="copy").mode("append").save()

    writer = rows.writeStream.foreachBatch(send).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(120)
    ids = [message.properties[DEDUPE_ID] for message in broker.messages("orders")]
    assert ids == [f"copy-{query.id}-0-0-{row}" for row in range(3)]


def _run_twice(jms: Any, url: str, tmp_path: Path, destination: str) -> None:
    """A stream whose last batch is not known to be done when it is started again, so that it is run again."""
    _lines(tmp_path / "in", 100)
    for _ in range(2):
        rows = jms.readStream.text(str(tmp_path / "in")).withColumnRenamed("value", "body")
        _stream(rows, url, tmp_path / "checkpoint", destination)
        for each in (tmp_path / "checkpoint" / "commits").iterdir():
            each.unlink()


def test_a_batch_that_is_run_again_has_the_same_ids(jms: Any, broker: EmbeddedBroker, tmp_path: Path) -> None:
    _run_twice(jms, broker.stomp_url, tmp_path, "orders")
    ids = [message.properties[DEDUPE_ID] for message in broker.messages("orders")]
    assert len(ids) == 200
    assert ids[:100] == ids[100:]


def test_artemis_takes_a_batch_that_is_run_again_only_once(jms: Any, artemis: RealBroker, tmp_path: Path) -> None:
    queue = f"sink-in-spark-{tmp_path.name}"
    _run_twice(jms, artemis.amqp_url, tmp_path, queue)
    with redelivery.connect(artemis.amqp_url) as connection, connection.session() as session:
        consumer = session.consumer(queue)
        bodies = []
        while (message := consumer.receive(timeout=2)) is not None:
            bodies.append(message.body)
    assert bodies == [str(number) for number in range(100)]
