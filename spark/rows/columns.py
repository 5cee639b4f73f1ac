"""Messages on their way to Arrow: a row is taken whole or not at all, and becomes columns when a batch is made."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import accumulate, chain
from typing import Any, Final, Protocol

import pyarrow as pa

from redelivery.model.errors import IllegalStateError
from redelivery.model.messages import Message
from redelivery.spark.rows.digests import Key, apart
from redelivery.spark.rows.from_message import (
    DESTINATION,
    DIGEST,
    ERROR,
    MESSAGE_ID,
    NAMES,
    REDELIVERED,
    SENT,
    SIZE,
    VALUES,
    Converter,
    Row,
    broken_row_of,
    known_place,
    row_of,
)
from redelivery.spark.rows.schema import arrow_schema
from redelivery.spark.rows.variants import NO_NAMES

__all__ = ["Columns", "Converter"]

BATCH_ROWS: Final = 10_000
ROW_BYTES: Final = 200  # ids, destinations, times: what a row takes besides its body and properties
_BATCH_BYTES: Final = 64 << 20  # Arrow's offsets end at 2 GiB, and Spark holds whole batches


class RowWriter(Protocol):
    """The target of rows: a segment."""

    def add(self, batch: Any, keys: Sequence[Key], size: int) -> None:
        """Take a RecordBatch, with a key for each of its rows and the bytes of all of them."""


class Columns:
    """The rows so far. A message that cannot be a row leaves no trace: `add` raises before anything is kept.

    ``properties_type``: ``string`` (values by JMS's conversion to String) or ``variant``. ``errors``: with the column
    ``_error``, which `add_error` fills. ``several``: the messages are of several destinations: each row says which its
    message was consumed from, whatever its sender has written on it, and the same message on two of them is two.
    ``converter``: makes the body; what it returns decides ``body_type``. ``digests``: redelivered messages are to be
    recognised; without it no row has a digest.
    """

    def __init__(
        self,
        properties_type: str = "string",
        errors: bool = False,
        *,
        several: bool = False,
        converter: Converter | None = None,
        digests: bool = True,
    ) -> None:
        self._schema = arrow_schema(properties_type, errors)
        self._variant = properties_type == "variant"
        self._errors = errors
        self._several = several
        self._converter = converter
        self._digests = digests
        self._rows: list[Row] = []
        self.size = 0
        """Bytes of all bodies and properties, and `ROW_BYTES` a row for the rest."""

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def schema(self) -> Any:
        """Arrow's schema of the batches."""
        return self._schema

    @property
    def keys(self) -> list[Key]:
        """One a row, in order: by which a message is recognised when it is redelivered."""
        return [(row[MESSAGE_ID], row[DIGEST]) for row in self._rows]

    @property
    def new(self) -> frozenset[int]:
        """The places of rows of a first delivery, as the broker says, that have neither an id nor a time."""
        return frozenset(
            place
            for place, row in enumerate(self._rows)
            if row[MESSAGE_ID] is None and row[SENT] is None and not row[REDELIVERED]
        )

    def add(self, message: Message) -> int:
        """Take one message.

        Returns:
            What it adds to `size`.

        Raises:
            MessageFormatError: a part of it cannot be read, or cannot be a column.
            Exception: whatever the converter raised.
        """
        row = row_of(message, variant=self._variant, converter=self._converter, digests=self._digests)
        return self._take(message, row)

    def add_error(self, message: Message, error: str) -> int:
        """Take a message that cannot be a row: what can be read of it (the body unconverted) and why.

        Returns:
            What it adds to `size`.

        Raises:
            IllegalStateError: there is no column ``_error``.
        """
        if not self._errors:
            raise IllegalStateError("these rows have no column _error: make the Columns with errors=True")
        return self._take(message, broken_row_of(message, error, variant=self._variant, digests=self._digests))

    def batches(self, rows: int = BATCH_ROWS) -> list[Any]:
        """The rows as RecordBatches of at most ``rows`` (at least 1) rows and about 64 MiB each."""
        return [self._batch(part) for part in _parts(self._rows, rows)]

    def write(self, writer: RowWriter, drop: Collection[int] = ()) -> None:
        """Add the rows to a segment, except for those at the places ``drop``; they stay in the Columns."""
        kept = self._rows
        if drop:
            dropped = frozenset(drop)
            kept = [row for place, row in enumerate(kept) if place not in dropped]
        for part in _parts(kept, BATCH_ROWS):
            keys = [(row[MESSAGE_ID], row[DIGEST]) for row in part]
            writer.add(self._batch(part), keys, _size(part))

    def clear(self) -> None:
        """Forget all rows."""
        self._rows = []
        self.size = 0

    def _take(self, message: Message, row: Row) -> int:
        if self._several:
            place = known_place(message)
            digest = apart(row[DIGEST], place or "") if self._digests else None
            row = (*row[:DESTINATION], place, *row[DESTINATION + 1 : DIGEST], digest, row[SIZE])
        self._rows.append(row)
        added: int = row[SIZE] + ROW_BYTES
        self.size += added
        return added

    def _batch(self, rows: list[Row]) -> Any:
        columns = list(zip(*rows, strict=True))
        fields = list(self._schema)
        plain = zip(columns[:NAMES], fields[:NAMES], strict=True)
        arrays = [pa.array(column, type=field.type) for column, field in plain]
        arrays.append(self._map(columns[NAMES], columns[VALUES], fields[NAMES].type))
        if self._errors:
            arrays.append(pa.array(columns[ERROR], type=pa.string()))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _map(self, names: tuple[Any, ...], values: tuple[Any, ...], kind: Any) -> Any:
        offsets = pa.array(accumulate(map(len, names), initial=0), type=pa.int32())
        keys = pa.array(chain.from_iterable(names), type=pa.string())
        items = pa.array(chain.from_iterable(values), type=pa.binary() if self._variant else pa.string())
        if self._variant:
            metadata = pa.repeat(pa.scalar(NO_NAMES, pa.binary()), len(items))
            items = pa.StructArray.from_arrays([items, metadata], fields=list(kind.item_type))
        return pa.MapArray.from_arrays(offsets, keys, items, type=kind)


def _size(rows: list[Row]) -> int:
    sizes: list[int] = [row[SIZE] for row in rows]
    return sum(sizes) + len(rows) * ROW_BYTES


def _parts(rows: list[Row], most: int) -> list[list[Row]]:
    """Cut into batches: by number, and those whose bodies are large by size too."""
    parts: list[list[Row]] = []
    for start in range(0, len(rows), most):
        part = rows[start : start + most]
        parts += [part] if _size(part) <= _BATCH_BYTES else _by_size(part)
    return parts


def _by_size(rows: list[Row]) -> list[list[Row]]:
    parts: list[list[Row]] = [[]]
    size = 0
    for row in rows:
        own = row[SIZE] + ROW_BYTES
        if parts[-1] and size + own > _BATCH_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(row)
        size += own
    return parts
