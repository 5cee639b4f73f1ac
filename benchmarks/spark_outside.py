"""The source's own session, rows and segments without Spark around them: what the source is measured against."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.results import BenchmarkError
from redelivery.spark.log.store.opening import open_store
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.receiving.batch_receiver import BatchReceiver
from redelivery.spark.read.receiving.received_batch import BatchPause
from redelivery.spark.rows.digests import Key

_EMPTY: Final = 0.1  # seconds without a message


class _Nothing:
    """In doubt."""

    def in_doubt(self) -> Mapping[str, Sequence[Key]]:
        return {}

    def confirmed(self, name: str) -> bool:
        raise AssertionError(name)


def outside(options: SourceOptions, folder: Path, count: int, rows: int) -> float:
    """Rows per second into durable segments of so many rows, from the end of the first to that of the last."""
    store = open_store(str(folder))
    done, ends = 0, [(0, 0.0)]
    with BatchReceiver(options, _Nothing(), prefetch=options.prefetch) as receiver:
        while done < count:
            batch = receiver.receive(rows, options.segment_bytes, lambda: BatchPause(_EMPTY))
            if batch is None:
                raise BenchmarkError(f"{options.destination}: {count - done} of {count} messages did not come")
            store.put_if_absent(f"{len(ends):08d}.arrow", batch.data)
            receiver.confirm()
            done += batch.received
            ends.append((done, time.perf_counter()))
    (first, began), (last, ended) = ends[1], ends[-1]
    return (last - first) / (ended - began)
