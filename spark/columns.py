"""Messages on their way to Arrow: a row is taken whole or not at all, and becomes columns when a batch is made."""

from __future__ import annotations

from collections.abc import Collection
from itertools import accumulate, chain
from typing import Any, Final

import pyarrow as pa

from redelivery.model.errors import IllegalStateError
from redelivery.model.messages import Message
from redelivery.spark.message_rows import (
    BODY,
    ERROR,
    MESSAGE_ID,
    NAMES,
    REDELIVERED,
    VALUES,
    Converter,
    Row,
    broken_row_of,
    row_of,
)
from redelivery.spark.rows import arrow_schema
from redelivery.spark.variants import NO_NAMES

__all__ = ["Columns", "Converter"]

_BATCH_BYTES: Final = 64 << 20  # of bodies: Arrow's offsets end at 2 GiB, and Spark holds whole batches


class Columns:
    """The rows so far. A message that cannot be a row leaves no trace: `add` raises before anything is kept.

    Args:
        properties_type: ``string`` (values by JMS's conversion to String) or ``variant``.
        errors: with the column ``_error``, which `add_error` fills.
        converter: makes the body; what it returns decides ``body_type``.
    """

    def __init__(
        self, properties_type: str = "string", errors: bool = False, *, converter: Converter | None = None
    ) -> None:
        self._schema = arrow_schema(properties_type, errors)
        self._variant = properties_type == "variant"
        self._errors = errors
        self._converter = converter
        self._rows: list[Row] = []
        self._size = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def size(self) -> int:
        """Bytes of all bodies."""
        return self._size

    @property
    def schema(self) -> Any:
        """Arrow's schema of the batches."""
        return self._schema

    @property
    def message_ids(self) -> list[str | None]:
        """One a row, in order; None where the broker does not tell it."""
        return [row[MESSAGE_ID] for row in self._rows]

    @property
    def redelivered(self) -> list[bool]:
        """One a row, in order: whether it was probably delivered before."""
        return [row[REDELIVERED] for row in self._rows]

    def add(self, message: Message) -> None:
        """Take one message.

        Raises:
            MessageFormatError: a part of it cannot be read, or cannot be a column.
            Exception: whatever the converter raised.
        """
        self._take(row_of(message, variant=self._variant, converter=self._converter))

    def add_error(self, message: Message, error: str) -> None:
        """Take a message that cannot be a row: what can be read of it (the body unconverted) and why.

        Raises:
            IllegalStateError: there is no column ``_error``.
        """
        if not self._errors:
            raise IllegalStateError("these rows have no column _error: make the Columns with errors=True")
        self._take(broken_row_of(message, error, variant=self._variant))

    def batches(self, rows: int = 10_000, drop: Collection[int] = ()) -> list[Any]:
        """The rows as RecordBatches of at most ``rows`` rows and about 64 MiB of bodies each.

        Args:
            rows: at least 1.
            drop: the places of rows to leave out; they stay in the Columns.
        """
        kept = self._rows
        if drop:
            dropped = frozenset(drop)
            kept = [row for place, row in enumerate(kept) if place not in dropped]
        return [self._batch(part) for part in _parts(kept, rows)]

    def clear(self) -> None:
        """Forget all rows."""
        self._rows = []
        self._size = 0

    def _take(self, row: Row) -> None:
        self._rows.append(row)
        self._size += _size(row)

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


def _size(row: Row) -> int:
    return len(row[BODY] or b"")


def _parts(rows: list[Row], most: int) -> list[list[Row]]:
    """Cut into batches: by number, and those whose bodies are large by size too."""
    parts: list[list[Row]] = []
    for start in range(0, len(rows), most):
        part = rows[start : start + most]
        parts += [part] if sum(map(_size, part)) <= _BATCH_BYTES else _by_size(part)
    return parts


def _by_size(rows: list[Row]) -> list[list[Row]]:
    parts: list[list[Row]] = [[]]
    size = 0
    for row in rows:
        if parts[-1] and size + _size(row) > _BATCH_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(row)
        size += _size(row)
    return parts
