"""The batch that one transaction of the source receives, encoded while it comes in, and the time when it ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from uuid import uuid4

import pyarrow as pa

from redelivery.spark.log.segments import SegmentWriter
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.receiving.duplicates import Duplicates
from redelivery.spark.read.receiving.keeping_up import KeepingUp
from redelivery.spark.rows.columns import BATCH_ROWS, Columns, Converter
from redelivery.spark.rows.digests import Key
from redelivery.spark.rows.schema import arrow_schema

_CHUNK_BYTES: Final = 8 << 20  # of rows in Python's objects, which take several times the room of encoded ones


@dataclass(frozen=True, slots=True)
class BatchPause:
    """The end of a batch: ``gap`` seconds without a further message, or ``longest`` seconds after its first.

    ``least``: seconds after the first message before which no gap ends it. ``target``: seconds after it when it ends
    unless there is a backlog; infinite where all is received for ``longest``.
    """

    gap: float
    longest: float = math.inf
    least: float = 0.0
    target: float = math.inf

    def end(self, began: float, since: float, seen: KeepingUp) -> float:
        """The time when a batch ends whose first message came at ``began``, if none has come since ``since``."""
        longest, gap = self.longest, self.gap
        if self.target < longest:
            if seen.behind(self.target):  # a broker may pause before it sends more of them
                gap = max(gap, self.least)
            else:
                longest = min(self.least, self.target) if seen.caught_up() else self.target
        return min(max(since + gap, began + self.least), began + longest)


Pace: TypeAlias = Callable[[], BatchPause]
"""Asked again and again."""


@dataclass(slots=True)
class ReceivedBatch:
    """The messages that one transaction has received, as a segment.

    ``data``: its bytes, until `release`, by the attempt ``attempt``. ``keys``: of its rows. ``size``: theirs, before
    compression.
    ``received``: messages, those that gave no row included. ``duplicates``: that are in a segment already.
    """

    data: bytes
    attempt: str
    rows: int
    size: int
    keys: Sequence[Key]
    received: int
    duplicates: int

    def release(self) -> None:
        """The segment is durable: its memory is for the messages that arrive while the session commits."""
        self.data = b""
        if self.size >= _CHUNK_BYTES:
            pa.default_memory_pool().release_unused()


class BatchBuilder:
    """Takes the rows of one batch after the other. ``duplicates``: knows what stands in a segment already; None: nobody
    asks.
    """

    def __init__(self, options: SourceOptions, converter: Converter | None, duplicates: Duplicates | None) -> None:
        self._options = options
        self._duplicates = duplicates
        self._dropped = 0
        self._writer: SegmentWriter | None = None
        self._attempt = ""
        self.columns = Columns(
            options.properties_type,
            errors=options.errors,
            several=options.several,
            converter=converter,
            digests=duplicates is not None,
        )

    @property
    def size(self) -> int:
        """Bytes of the rows so far, before compression."""
        return self.columns.size + (0 if self._writer is None else self._writer.size)

    def clear(self) -> None:
        """Forget everything: what was received was rolled back."""
        self._writer, self._dropped = None, 0
        self.columns.clear()
        if self._duplicates is not None:
            self._duplicates.rolled_back()

    def spill(self) -> None:
        """Encode the rows, once there are enough of them."""
        if self.columns.size >= _CHUNK_BYTES or len(self.columns) >= BATCH_ROWS:
            self._encode()

    def finish(self, received: int) -> ReceivedBatch:
        """The batch of so many messages; the next one begins."""
        self._encode()
        writer, dropped = self._current(), self._dropped
        self._writer, self._dropped = None, 0
        return ReceivedBatch(writer.finish(), self._attempt, writer.rows, writer.size, writer.keys, received, dropped)

    def _encode(self) -> None:
        if len(self.columns):
            columns = self.columns
            drop = [] if self._duplicates is None else self._duplicates.places(columns.keys, columns.new)
            self._dropped += len(drop)
            columns.write(self._current(), drop)
            columns.clear()

    def _current(self) -> SegmentWriter:
        if self._writer is None:
            self._attempt = uuid4().hex
            self._writer = SegmentWriter(self.columns.schema, self._options.compression, self._attempt)
        return self._writer


def empty_batch(options: SourceOptions) -> ReceivedBatch:
    """The batch of a task that has received no message."""
    attempt = uuid4().hex
    schema = arrow_schema(options.properties_type, options.errors)
    data = SegmentWriter(schema, options.compression, attempt).finish()
    return ReceivedBatch(data, attempt, 0, 0, (), 0, 0)
