"""Every Spark that the library supports reads a queue once, through a job that fails and is started again.

The newest one is the pyspark of all other tests; these run the others, which `scripts/spark-versions --fetch` fetches.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.spark.versions.artifacts import FORMATS, JARS, OTHERS, installed, jars, missing
from tests.spark.versions.played import Runs, send
from tests.spark.versions.program import MESSAGES

from redelivery.broker import EmbeddedBroker

pytestmark = pytest.mark.timeout(900, func_only=True)

# The short form runs one stream on the oldest version: what our code asks of the others (redelivery/spark/versions.py)
# is as there, or as in the newest, on which all other tests run.
SHORT = {"4.0.1": ("executor", "stomp")}


@pytest.fixture
def runs() -> Callable[..., Runs]:
    """Runs on a version; a test is skipped where it is not there, and fails in CI."""

    def found(version: str, table_format: str = "") -> Runs:
        reason = missing(version)
        paths = jars(table_format, version) if table_format else []
        if reason is None and paths is None:
            reason = f"no {table_format} for Spark {version} in the cache: scripts/spark-versions --fetch puts it there"
        if reason is not None:
            assert os.environ.get("CI", "").lower() not in {"1", "true"}, reason
            pytest.skip(reason)
        return Runs(version, jars=paths or [])

    return found


def url_of(broker: EmbeddedBroker, protocol: str) -> str:
    url: str = getattr(broker, f"{protocol}_url")
    return url


def cases() -> Iterator[Any]:
    """Both receivers, and two lanes, over both protocols, on each version, with a job that fails first."""
    for version, (receiver, protocol) in SHORT.items():
        yield pytest.param(version, receiver, 1, protocol, [], id=f"{version}-{receiver}-{protocol}")
    for version, (receiver, lanes), protocol in product(
        OTHERS, (("driver", 1), ("executor", 1), ("driver", 2)), ("stomp", "amqp")
    ):
        name = f"{version}-{receiver}-{lanes}-{protocol}-fails"
        yield pytest.param(version, receiver, lanes, protocol, [0], id=name, marks=pytest.mark.long_form)


@pytest.mark.parametrize(("version", "receiver", "lanes", "protocol", "breaks"), [*cases()])
def test_each_message_is_a_row_once(
    version: str,
    receiver: str,
    lanes: int,
    protocol: str,
    breaks: list[int],
    runs: Callable[..., Runs],
    broker: EmbeddedBroker,
    tmp_path: Path,
) -> None:
    send(broker, MESSAGES)
    options = {"receiver": receiver, **({"lanes": "2"} if lanes == 2 else {})}
    seen = runs(version).program(url_of(broker, protocol), tmp_path / "run", options=options, breaks=breaks)
    assert (seen["spark"], seen["rows"], seen["distinct"]) == (version, MESSAGES, MESSAGES), seen
    assert max(seen["batches"]) <= 25, seen  # maxMessagesPerBatch
    assert broker.queue_depth("orders") == 0


@pytest.mark.long_form
@pytest.mark.parametrize("version", OTHERS)
def test_the_sink_and_a_look(version: str, runs: Callable[..., Runs], broker: EmbeddedBroker, tmp_path: Path) -> None:
    send(broker, MESSAGES)
    seen = runs(version).program(broker.stomp_url, tmp_path / "run", copy=True)
    assert (seen["copied"], broker.queue_depth("orders.copies")) == (2 * MESSAGES, 2 * MESSAGES), seen


@pytest.mark.long_form
@pytest.mark.parametrize("receiver", ["driver", "executor"])
@pytest.mark.parametrize("way", ["up", "down"])
def test_a_checkpoint_goes_on_with_another_version(
    way: str, receiver: str, runs: Callable[..., Runs], broker: EmbeddedBroker, tmp_path: Path
) -> None:
    versions = [*OTHERS, installed()] if way == "up" else [installed(), *reversed(OTHERS)]
    options = {"receiver": receiver}
    for number, version in enumerate(versions):
        send(broker, MESSAGES, MESSAGES * number)
        last = number == len(versions) - 1
        seen = runs(version).program(
            broker.stomp_url,
            tmp_path / "run",
            options=options,
            breaks=[None, number + 1] if not last else [],  # the batch that fails is repeated by the next version
            more=last,
            messages=MESSAGES * len(versions),
        )
        assert seen["rows"] == seen["distinct"], seen
    assert seen["rows"] == MESSAGES * len(versions), seen
    assert broker.queue_depth("orders") == 0


@pytest.mark.long_form
@pytest.mark.parametrize(
    ("table_format", "version"),
    [(each, version) for each in FORMATS for version in OTHERS if version.rpartition(".")[0] in JARS[each]],
)
def test_a_table_has_each_message_once_although_its_job_is_killed(
    table_format: str, version: str, runs: Callable[..., Runs], broker: EmbeddedBroker, tmp_path: Path
) -> None:
    send(broker, 300)
    for moment, at in (("after", 0), ("before", 1), ("after", 1), ("during", 0.3)):
        runs(version, table_format).lake(table_format, broker.stomp_url, tmp_path, moment, at)
    seen = runs(version, table_format).lake(table_format, broker.stomp_url, tmp_path, "never")
    assert (seen["rows"], seen["distinct"]) == (300, 300), seen
    assert broker.queue_depth("orders") == 0


@pytest.mark.long_form
@pytest.mark.parametrize(("table_format", "version"), [("delta", "4.2.0"), ("iceberg", "4.1.1")])
def test_the_example_of_a_table_format_runs_as_it_is(
    table_format: str, version: str, runs: Callable[..., Runs]
) -> None:
    assert runs(version, table_format).example(f"spark_{table_format}.py") == [
        "the job failed, and the table has 200 rows",
        "the job failed, and the table has 200 rows",
        "300 rows, 300 orders",
        "0 orders are left in the queue",
    ]
