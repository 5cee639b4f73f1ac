"""The columns are the source's: a user's schema is refused, and so are columns that changed under what is pending."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.types import StringType, StructField, StructType
from tests.spark.place import Place
from tests.spark.streams import ALL, pickled, readers

from redelivery.model.errors import ConfigError
from redelivery.spark.read import refused
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader
from redelivery.spark.source import DefaultSource

READ = {"url": "stomp://h", "path": "q"}
STREAM = {**READ, "wallocation": "/nowhere/wal"}
OWN = StructType([StructField("body", StringType())])


@pytest.mark.parametrize("options", [STREAM, {**STREAM, "receiver": "executor"}])
def test_a_schema_of_the_users_is_refused_for_a_stream(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match=r"^\.schema\(…\) cannot be used with jms, .* leave it out, and select"):
        DefaultSource(options).streamReader(OWN)


@pytest.mark.parametrize("options", [READ, {**STREAM, "linger": "soon"}, STREAM], ids=["no wal", "bad value", "schema"])
def test_what_spark_would_hide_is_said_by_the_reader(options: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's runner calls stop() of a reader that it has not got, where `streamReader` raises."""
    monkeypatch.setattr(refused, "is_runner", lambda: True)
    reader: Any = DefaultSource(options).streamReader(OWN)
    for call in (
        reader.initialOffset,
        reader.latestOffset,
        lambda: reader.partitions({}, {}),
        lambda: reader.commit({}),
    ):
        with pytest.raises(ConfigError, match=r"walLocation|linger|\.schema"):
            call()
    reader.stop()


def test_a_schema_of_the_users_is_refused_for_a_browse() -> None:
    with pytest.raises(ConfigError, match=r"^\.schema\(…\) cannot be used with jms"):
        DefaultSource(READ).reader(OWN)


@pytest.mark.parametrize("more", [{}, {"propertiestype": "variant"}])
def test_the_sources_own_schema_is_taken(more: dict[str, str]) -> None:
    source = DefaultSource({**READ, **more})
    assert source.reader(source.schema())
    permissive = DefaultSource({**STREAM, **more, "badmessages": "permissive"})
    assert permissive.streamReader(permissive.schema())


def _pending(kind: Any, place: Place, before: dict[str, str], after: dict[str, str]) -> None:
    with readers(kind, place) as made:
        stream = made(**before)
        start = stream.initialOffset()
        stream.prepareForTriggerAvailableNow()
        end = stream.latestOffset(start, ALL)
        for partition in stream.partitions(start, end):
            list(pickled(stream).read(partition))  # `receiver=executor` receives here
        stream.stop()
        again = made(**after)
        for partition in again.partitions(start, end):
            list(pickled(again).read(partition))


@pytest.mark.parametrize(("kind", "receiver"), [(DriverStreamReader, "driver"), (ExecutorStreamReader, "executor")])
@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (
            "string",
            "variant",
            "was received with propertiesType=string, and the option says variant: go back to string",
        ),
        (
            "variant",
            "string",
            "was received with propertiesType=variant, and the option says string: go back to variant",
        ),
    ],
)
def test_a_changed_type_of_properties_names_the_option(
    place: Place, kind: Callable[..., Any], receiver: str, before: str, after: str, said: str
) -> None:
    place.send("a", properties={"n": 1})
    with pytest.raises(ConfigError, match=f"segment 1-0 {said}"):
        _pending(
            kind,
            place,
            {"receiver": receiver, "propertiesType": before},
            {"receiver": receiver, "propertiesType": after},
        )


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("drop", "permissive", "without badMessages=permissive, .* go back to what it was until"),
        ("permissive", "drop", "with badMessages=permissive, .* go back to it until"),
    ],
)
def test_a_changed_column_of_errors_names_the_option(place: Place, before: str, after: str, said: str) -> None:
    place.send("a")
    with pytest.raises(ConfigError, match=f"segment 1-0 was received {said}"):
        _pending(DriverStreamReader, place, {"badMessages": before}, {"badMessages": after})


@pytest.mark.together("spark")
@pytest.mark.timeout(400)
@pytest.mark.parametrize("given", ["without walLocation", "with a schema"])
def test_start_ends_with_the_sources_own_error(spark: Any, tmp_path: Path, given: str) -> None:
    """`load()` takes both: Spark asks a source nothing where there is a schema, and does not say what it is for."""
    stream = spark.readStream.format("jms").option("url", "stomp://127.0.0.1:1")
    if given == "with a schema":
        stream = stream.option("walLocation", str(tmp_path / "wal")).schema("id INT")
    writer = stream.load("orders").writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(StreamingQueryException) as refused:
        writer.start().awaitTermination(120)
    said = str(refused.value)
    assert ("walLocation" if given == "without walLocation" else ".schema(…) cannot be used with jms") in said
    assert "UnboundLocalError" not in said
