"""Lets Spark find the data source `jms`: it looks for `DefaultSource` in every module named ``pyspark_*``.

Any program that uses any Python data source imports this, so it imports little and never raises. Without pyspark 4.2
there is no `DefaultSource` here, and Spark says that it does not know the format `jms`.
"""

from __future__ import annotations

from contextlib import suppress

with suppress(ImportError):
    from redelivery.spark.source import DefaultSource

    __all__ = ["DefaultSource"]
