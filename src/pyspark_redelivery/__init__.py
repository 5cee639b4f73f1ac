"""Lets Spark find the data source `jms`: it looks for `DefaultSource` in every module named ``pyspark_*``.

Any program that uses any Python data source imports this, so it imports little and does not raise where pyspark is
missing. Spark 3 looks for nothing here, and says that it does not know the format `jms`; this module says why.
"""

from __future__ import annotations

from contextlib import suppress

with suppress(ImportError):
    from redelivery.spark.source import DefaultSource

    __all__ = ["DefaultSource"]
