"""`spark.read`: what queues hold, as rows; nothing is taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

import redelivery
from redelivery.model.errors import MessageFormatError
from redelivery.spark.options.credentials import read_password, tls_context
from redelivery.spark.options.query import BrowseOptions
from redelivery.spark.rows.columns import Columns
from redelivery.transports.failover import asked_once

_ROWS: Final = 10_000  # of a batch
_BYTES: Final = 64 << 20  # of bodies, at which a batch ends before


class BrowseReader(DataSourceReader):
    """Looks at each queue anew for every action of Spark, in one task: a browse cannot be shared out."""

    def __init__(self, options: BrowseOptions) -> None:
        self.options = options

    def partitions(self) -> Sequence[InputPartition]:
        """One for each queue; the broker is asked first, so that the driver says why it cannot be done.

        Raises:
            UnsupportedError: the broker cannot browse, or has no selectors.
            ConnectError, SecurityError, InvalidDestinationError: as when messages are consumed.
        """
        places = self.options.destinations
        with self._session() as session:
            for each in places:
                session.browser(each, selector=self.options.selector).close()
        return [InputPartition(number) for number in range(len(places))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows, as Arrow batches.

        Raises:
            MessageFormatError: a message cannot be a row; the text names it.
            JMSError: as `partitions`; the broker refuses the selector; or the connection was lost.
        """
        options = self.options
        columns = Columns(options.properties_type, several=len(options.destinations) > 1)
        with (
            self._session() as session,
            session.browser(options.destinations[partition.value], selector=options.selector) as browser,
        ):
            for message in browser:
                try:
                    columns.add(message)
                except MessageFormatError as error:
                    raise MessageFormatError(
                        f"message {message.message_id} of {browser.queue} cannot be a row: {error}"
                    ) from error
                if len(columns) >= _ROWS or columns.size >= _BYTES:
                    yield from self._shown(columns)
                    columns.clear()
        yield from self._shown(columns)

    def _shown(self, columns: Columns) -> Iterator[Any]:
        for batch in columns.batches(_ROWS):
            yield batch.select(self.options.columns)

    @contextmanager
    def _session(self) -> Iterator[redelivery.Session]:
        options = self.options
        with (
            redelivery.connect(
                options.url,
                username=options.username,
                password=read_password(options),
                tls=tls_context(options),
                dialect=options.dialect,
                reconnect=asked_once(options.url),
                start=False,
            ) as connection,
            connection.session() as session,
        ):
            yield session
