"""One Spark for all tests of this folder: each JVM takes seconds to start."""

from __future__ import annotations

import importlib.util
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from redelivery.broker import EmbeddedBroker

if TYPE_CHECKING:
    from tests.spark.place import Place

collect_ignore_glob = [] if importlib.util.find_spec("pyspark") else ["*test_*.py"]  # also of its folders


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """``local[2]``, whose workers are this interpreter."""
    from pyspark.sql import SparkSession
    from tests.spark.faults.archive import java_options

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2,3]")
        .appName("redelivery")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", java_options())
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    """An embedded broker with its ports open, new for each test."""
    with EmbeddedBroker(name=f"spark-{uuid.uuid4().hex[:8]}", stomp_port=0, amqp_port=0) as broker:
        yield broker


@pytest.fixture(params=["stomp", "amqp"])
def place(request: pytest.FixtureRequest, broker: EmbeddedBroker, tmp_path: Path) -> Place:
    """That broker over each protocol, and a folder for segments."""
    from tests.spark.place import Place

    return Place(broker, tmp_path, request.param)


@pytest.fixture(scope="session")
def s3() -> Iterator[dict[str, Any]]:
    """The storage options of an S3 emulator with the bucket ``wal``."""
    from benchmarks.spark_requests import bucket

    with bucket("wal") as found:
        yield found.options
