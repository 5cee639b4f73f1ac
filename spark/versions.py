"""Differences between the Spark that runs and Spark 4.2, the first that gives a source in Python its limits."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import pyspark

from redelivery.model.errors import ConfigError

__all__ = ["HAS_LIMITS", "DataSource", "ReadMaxRows", "StreamArrowWriter", "SupportsTriggerAvailableNow"]

if find_spec("pyspark.sql.datasource") is None:
    raise ConfigError(
        f"the data source jms needs Spark 4.0 or newer, and this is PySpark {pyspark.__version__}, which knows no data "
        "sources in Python: install 'pyspark>=4.0', or choose a runtime of your platform with Spark 4"
    )

from pyspark.sql import datasource  # not before it is known to be there

DataSource = datasource.DataSource

HAS_LIMITS: Final = find_spec("pyspark.sql.streaming.datasource") is not None
"""True: Spark says where a batch begins and how large it may be, and announces AvailableNow (4.2 and newer)."""

if TYPE_CHECKING or HAS_LIMITS:
    from pyspark.sql.streaming.datasource import ReadMaxRows, SupportsTriggerAvailableNow
else:

    @dataclass
    class ReadMaxRows:
        """The limit that `redelivery.spark.read.without_limits` gives in Spark's place."""

        max_rows: int

    class SupportsTriggerAvailableNow:
        """Nothing that this Spark asks for."""


if TYPE_CHECKING or hasattr(datasource, "DataSourceStreamArrowWriter"):
    StreamArrowWriter = datasource.DataSourceStreamArrowWriter
else:

    class StreamArrowWriter(datasource.DataSourceArrowWriter, datasource.DataSourceStreamWriter):
        """Spark 4.0 gives RecordBatches to every `DataSourceArrowWriter`, of a stream too."""
