"""A reader of the source as Spark calls it, without Spark, and the memory of this process."""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import redelivery
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader

PATIENCE: Final = 1500.0  # seconds for a case


def memory(name: str) -> float:
    """Return MiB of this process: ``VmRSS`` now, ``VmHWM`` at most."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{name}:"))


def broker_at(url: str) -> str:
    """Return the name, version and protocol of a broker."""
    with redelivery.connect(url) as connection:
        about = connection.metadata
    return f"{about.provider_name} {about.provider_version}, {about.protocol.split()[0]}"


@contextmanager
def reading(url: str, queue: str, **options: str) -> Iterator[Any]:
    """Read a queue, with segments in a new folder where the options name none."""
    with tempfile.TemporaryDirectory() as folder:
        given = SourceOptions.parse({"url": url, "destination": queue, "walLocation": folder, **options})
        reader = (ExecutorStreamReader if options.get("receiver") == "executor" else DriverStreamReader)(given)
        try:
            yield reader
        finally:
            reader.stop()


def step(reader: Any, start: Any, tasks: AbstractContextManager[object] | None = None) -> tuple[Any, int]:
    """Plan a batch and commit it as Spark does; its end, which is the start where there is none, and its rows.

    ``tasks``: a pickled copy reads them in this context; without it they are not read.
    """
    end = reader.latestOffset(start, reader.getDefaultReadLimit())
    if end == start:
        return end, 0
    if tasks is not None:
        parts = reader.partitions(start, end)
        task = pickle.loads(pickle.dumps(reader))  # noqa: S301  # our own
        with tasks:
            rows = sum(batch.num_rows for part in parts for batch in task.read(part))
    else:
        rows = sum(reader._lanes._segments[number].rows for number in range(start["seq"] + 1, end["seq"] + 1))
    reader.commit(end)
    return end, rows


def drain(reader: Any, count: int, each: Callable[[int], None] = lambda _: None) -> None:
    """Run batches until there were so many rows. Raises OSError: they did not come."""
    start, done, until = reader.initialOffset(), 0, time.monotonic() + PATIENCE
    while done < count:
        start, rows = step(reader, start)
        done += rows
        each(done)
        if time.monotonic() > until:
            raise OSError(f"{done} of {count} messages came")
