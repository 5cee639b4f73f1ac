"""The columns are the source's: a user's schema is refused, and so are columns that changed under what is pending."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql.types import StringType, StructField, StructType
from tests.spark.place import Place
from tests.spark.streams import ALL, pickled, readers

from redelivery.model.errors import ConfigError
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
