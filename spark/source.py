"""The data source `jms`: what Spark asks first. It imports the rest when it is used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from redelivery.spark.versions import HAS_LIMITS, DataSource

if TYPE_CHECKING:
    from redelivery.spark.options.query import BrowseOptions, SourceOptions
    from redelivery.spark.read.driver import DriverStreamReader
    from redelivery.spark.read.executor import ExecutorStreamReader
    from redelivery.spark.read.inspect.browse import BrowseReader
    from redelivery.spark.read.refused import RefusedReader
    from redelivery.spark.read.without_limits import UnlimitedStreamReader
    from redelivery.spark.write.writers import BatchWriter, StreamWriter

    Reader: TypeAlias = DriverStreamReader | ExecutorStreamReader | UnlimitedStreamReader | RefusedReader


class DefaultSource(DataSource):
    """``readStream`` consumes, ``read`` browses, ``write`` and ``writeStream`` send; see docs/spark/options.md."""

    @classmethod
    def name(cls) -> str:
        """The name for ``format(…)``."""
        return "jms"

    def schema(self) -> Any:
        """The columns.

        Raises:
            ConfigError: an option is unknown, missing, malformed or contradicts another; the text names it.
            UnsupportedError: the broker has no such subscription, pattern or selector; the text says why.
        """
        from redelivery.spark.rows.schema import struct_type

        options = self._reading()
        return struct_type(options.properties_type, getattr(options, "errors", False), options.columns)

    def streamReader(self, schema: Any) -> Reader:
        """The receiver that the option `receiver` names.

        Raises:
            ConfigError: the schema is the user's, or an option is refused. In Spark's runner, which hides what is
                raised here, the reader raises it.
        """
        from redelivery.model.errors import ConfigError
        from redelivery.spark.options.query import SourceOptions
        from redelivery.spark.rows.check import check_schema

        try:
            options = SourceOptions.parse(self._options())
            check_schema(schema, options)
        except ConfigError as error:
            from redelivery.spark.read.refused import RefusedReader, is_runner

            if is_runner():
                return RefusedReader(error)
            raise
        reader = _stream_reader(options)
        if HAS_LIMITS:
            return reader
        from redelivery.spark.read.without_limits import UnlimitedStreamReader

        return UnlimitedStreamReader(reader)

    def reader(self, schema: Any) -> BrowseReader:
        """A reader that looks at a queue and takes nothing. Raises ConfigError: the schema is the user's."""
        from redelivery.spark.options.query import BrowseOptions
        from redelivery.spark.read.inspect.browse import BrowseReader
        from redelivery.spark.rows.check import check_schema

        options = BrowseOptions.parse(self._options())
        check_schema(schema, options)
        return BrowseReader(options)

    def writer(self, schema: Any, overwrite: bool) -> BatchWriter:  # noqa: ARG002  # a queue is only appended to
        """One transaction a task."""
        from redelivery.spark.options.query import SinkOptions
        from redelivery.spark.write.writers import BatchWriter

        return BatchWriter(SinkOptions.parse(self._options()), schema)

    def streamWriter(self, schema: Any, overwrite: bool) -> StreamWriter:  # noqa: ARG002  # a queue is only appended to
        """The same for each micro-batch."""
        from redelivery.spark.options.query import SinkOptions
        from redelivery.spark.write.writers import StreamWriter

        return StreamWriter(SinkOptions.parse(self._options()), schema)

    def _options(self) -> Mapping[str, str]:
        return dict(self.options)

    def _reading(self) -> SourceOptions | BrowseOptions:
        """A stream has a `walLocation`; without one it can only be a look at a queue."""
        from redelivery.spark.options.query import BrowseOptions, SourceOptions
        from redelivery.spark.read.inspect.capable import check_broker

        given = self._options()
        if "wallocation" in {name.lower() for name in given}:
            _check_installed()
            options = SourceOptions.parse(given)
            check_broker(options)
            return options
        return BrowseOptions.parse(given)


def _stream_reader(options: SourceOptions) -> DriverStreamReader | ExecutorStreamReader:
    if options.receiver == "executor":
        from redelivery.spark.read.executor import ExecutorStreamReader

        return ExecutorStreamReader(options)
    from redelivery.spark.read.driver import DriverStreamReader

    return DriverStreamReader(options)


def _check_installed() -> None:
    """Refuse a stream whose package came by ``--py-files``: Spark hands those to tasks, not to who plans and receives.

    Raises:
        ConfigError: it did; the text says what to do instead.
    """
    from pyspark import SparkFiles

    import redelivery

    root = getattr(SparkFiles, "_root_directory", None)  # of this process, where it is one of Spark's
    if root and str(redelivery.__file__).startswith(str(root)):
        raise redelivery.ConfigError(
            "redelivery came by --py-files (or addPyFile), which Spark hands to tasks only, not to the process that "
            "receives: install it for the workers' interpreter, ship an environment (venv-pack, conda-pack), or put "
            "the archive on PYTHONPATH before Spark starts, and in spark.executorEnv.PYTHONPATH"
        )
