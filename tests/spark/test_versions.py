"""A Spark that has not what a stream needs is answered with its version and what to do."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec

import pyspark
import pytest

from redelivery.model.errors import ConfigError
from redelivery.spark.source import DefaultSource

READ = {"url": "stomp://h", "path": "q"}


def test_a_stream_on_a_spark_before_4_2_names_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def older(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "pyspark.sql.streaming.datasource" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", older)
    monkeypatch.setattr(pyspark, "__version__", "4.1.1")
    with pytest.raises(ConfigError, match=r"^a stream of jms needs Spark 4.2 or newer, and this is PySpark 4.1.1: "):
        DefaultSource({**READ, "wallocation": "/nowhere/wal"}).schema()
    assert DefaultSource(READ).schema()
