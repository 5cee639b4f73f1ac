"""A stream's reader as Spark uses it, without Spark: each partition is read by a pickled copy."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final, TypeVar

from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.spark.place import Place, texts

from redelivery.spark.log import claims
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader

R = TypeVar("R", DriverStreamReader, ExecutorStreamReader)
ALL: Final = ReadAllAvailable()


@contextmanager
def readers(kind: type[R], place: Place, **fixed: object) -> Iterator[Callable[..., R]]:
    """What makes readers of a kind; each is stopped at the end, as the runner does. ``fixed``: options of all."""
    with ExitStack() as opened:

        def make(**options: object) -> R:
            made = kind(place.options(**fixed, **options))
            opened.callback(made.stop)
            return made

        yield make


def pickled(reader: R) -> R:
    """What a task gets."""
    copy: R = pickle.loads(pickle.dumps(reader))  # noqa: S301  # our own
    return copy


def given_up_for_dead(reader: R) -> None:
    """To the others it looks as if its process had been killed; it goes on, as a zombie does."""
    claims.leave(reader.wal.store.location, reader.epoch)


def rows(reader: R, start: Any, end: Any) -> list[str]:
    """As Spark reads a batch."""
    return [text for partition in reader.partitions(start, end) for text in texts(pickled(reader).read(partition))]


def drained(reader: R, start: Any, limit: object = ALL) -> tuple[list[str], Any]:
    """Everything until AvailableNow ends: the rows, and the last offset."""
    reader.prepareForTriggerAvailableNow()
    found: list[str] = []
    while (end := reader.latestOffset(start, limit)) != start:
        found += rows(reader, start, end)
        reader.commit(end)
        start = end
    return found, start
