"""The data source `jms`: what Spark asks first. It imports the rest when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from redelivery.spark.browse import BrowseReader
    from redelivery.spark.options import BrowseOptions, SourceOptions
    from redelivery.spark.reader import JmsStreamReader
    from redelivery.spark.sink import BatchWriter, StreamWriter


class DefaultSource(DataSource):
    """``readStream`` consumes, ``read`` browses, ``write`` and ``writeStream`` send; docs/spark.md has the options."""

    @classmethod
    def name(cls) -> str:
        """What stands in ``format(…)``."""
        return "jms"

    def schema(self) -> Any:
        """The columns.

        Raises:
            ConfigError: an option is unknown, missing, malformed or contradicts another; the text names it.
        """
        from redelivery.spark.rows import struct_type

        options = self._reading()
        return struct_type(options.properties_type, errors=getattr(options, "errors", False))

    def streamReader(self, schema: Any) -> JmsStreamReader:  # noqa: ARG002  # Spark's own name and signature
        """The receiver that the option `receiver` names."""
        from redelivery.spark.options import SourceOptions

        options = SourceOptions.parse(self._options())
        if options.receiver == "executor":
            from redelivery.spark.executor import ExecutorStreamReader

            return ExecutorStreamReader(options)
        from redelivery.spark.driver import DriverStreamReader

        return DriverStreamReader(options)

    def reader(self, schema: Any) -> BrowseReader:  # noqa: ARG002  # Spark's own name and signature
        """What looks at a queue and takes nothing."""
        from redelivery.spark.browse import BrowseReader
        from redelivery.spark.options import BrowseOptions

        return BrowseReader(BrowseOptions.parse(self._options()))

    def writer(self, schema: Any, overwrite: bool) -> BatchWriter:  # noqa: ARG002  # a queue is only appended to
        """One transaction a task."""
        from redelivery.spark.options import SinkOptions
        from redelivery.spark.sink import BatchWriter

        return BatchWriter(SinkOptions.parse(self._options()), schema)

    def streamWriter(self, schema: Any, overwrite: bool) -> StreamWriter:  # noqa: ARG002  # a queue is only appended to
        """The same for each micro-batch."""
        from redelivery.spark.options import SinkOptions
        from redelivery.spark.sink import StreamWriter

        return StreamWriter(SinkOptions.parse(self._options()), schema)

    def _options(self) -> Mapping[str, str]:
        return dict(self.options)

    def _reading(self) -> SourceOptions | BrowseOptions:
        """A stream has a `walLocation`; without one it can only be a look at a queue."""
        from redelivery.spark.options import BrowseOptions, SourceOptions

        given = self._options()
        if "wallocation" in {name.lower() for name in given}:
            return SourceOptions.parse(given)
        return BrowseOptions.parse(given)
