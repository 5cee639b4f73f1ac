"""The source's own session, rows and segments without Spark around them: what the source is measured against."""

from __future__ import annotations

import time
from pathlib import Path
from uuid import uuid4

from benchmarks.results import BenchmarkError
from redelivery.spark.intake import Intake
from redelivery.spark.options import SourceOptions
from redelivery.spark.rows import arrow_schema
from redelivery.spark.segments import encode
from redelivery.spark.store import open_store


def outside(options: SourceOptions, folder: Path, count: int, rows: int) -> float:
    """Rows per second into durable segments of so many rows, from the end of the first to that of the last."""
    store = open_store(str(folder))
    schema = arrow_schema(options.properties_type)
    done, ends = 0, [(0, 0.0)]
    with Intake(options, frozenset, prefetch=options.prefetch) as intake:
        while done < count:
            fill = intake.fill(rows, options.linger)
            if fill is None:
                raise BenchmarkError(f"{options.destination}: {count - done} of {count} messages did not come")
            data = encode(fill.batches, schema, options.compression, rows=fill.rows, attempt=uuid4().hex)
            store.put_if_absent(f"{len(ends):08d}.arrow", data)
            intake.confirm()
            done += fill.received
            ends.append((done, time.perf_counter()))
    (first, began), (last, ended) = ends[1], ends[-1]
    return (last - first) / (ended - began)
