"""``python -m benchmarks.spark_capacity URL``: what a rate of messages costs, in disk, memory and requests.

For each rate and size of a body the reader of `receiver=driver` is asked for rows once a second, as a query with a
trigger of one second asks it: on a local disk, in a process of its own whose memory is measured, and on an emulator of
S3 (moto), whose requests are counted, those of the tasks that read the segments included. Bodies are random, which
nothing compresses. Writes docs/spark-capacity.json, and from it the table of docs/spark/operating.md.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import redelivery
from benchmarks.figures import Figures, between
from benchmarks.machine import in_process
from benchmarks.senders import fill
from benchmarks.spark_reader import memory, reading, step
from benchmarks.spark_requests import bucket
from benchmarks.targets import table

CASES: Final = {
    f"{rate}-{size}": (rate, size)
    for rate, size in ((1, 1_000), (10, 1_000), (100, 1_000), (1_000, 200), (100, 10_000), (10, 100_000))
}
SECONDS: Final = 15.0
WARM: Final = 5.0  # seconds of a case that are not counted
KINDS: Final = ("PUT", "GET", "HEAD", "LIST", "DELETE")
HEADS: Final = (
    "came",
    "body",
    "memory",
    "held at most",
    "written, a message",
    "messages of a segment",
    ", ".join(KINDS),
)


def send(url: str, queue: str, rate: int, size: int, ended: threading.Event) -> None:
    """Send random bodies, so many a second by the clock, until the event is set."""
    with redelivery.connect(url) as connection:
        fill(connection, queue, (os.urandom(size) for _ in iter(ended.is_set, True)), rate=rate)


def _read(
    url: str,
    queue: str,
    options: dict[str, str],
    tasks: Callable[[], AbstractContextManager[object] | None] = lambda: None,
    each: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Ask for rows once a second; what came in the time that counts. ``tasks``: as `step` has it."""
    rows = segments = 0
    ends = time.monotonic() + WARM + SECONDS
    with reading(url, queue, **options) as reader:
        start = reader.initialOffset()
        while (now := time.monotonic()) < ends:
            end, found = step(reader, start, tasks())
            if now > ends - SECONDS:
                rows, segments = rows + found, segments + end["seq"] - start["seq"]
            start = end
            each()
            time.sleep(max(0.0, now + 1 - time.monotonic()))
    return {"rows": rows, "segments": segments}


def on_disk(url: str, queue: str) -> dict[str, float]:
    """The memory of the reader's process, and the bytes of the folder at most."""
    most = 0
    with tempfile.TemporaryDirectory() as folder:

        def weigh() -> None:
            nonlocal most
            size = 0
            for path in filter(Path.is_file, Path(folder).rglob("*")):
                with suppress(FileNotFoundError):  # it was deleted meanwhile
                    size += path.stat().st_size
            most = max(most, size)

        found = _read(url, queue, {"walLocation": folder}, each=weigh)
    came = found["rows"] / SECONDS
    return {"rss_peak_mib": round(memory("VmHWM")), "held_bytes": most, "disk_rows_per_second": came}


def on_s3(url: str, queue: str) -> dict[str, Any]:
    """Requests and bytes of segments, by the second."""
    with bucket() as store:
        options = {"walLocation": f"s3://{store.name}/{uuid4().hex}", "storageOptions": json.dumps(store.options)}
        timer = threading.Timer(WARM, store.clear)
        timer.start()
        found = _read(url, queue, options, nullcontext)
        timer.join()
    written = sum(store.segments.values()) / SECONDS
    requests = {kind: store.requests[kind] / SECONDS for kind in KINDS}
    return {"rows_per_second": found["rows"] / SECONDS, "bytes_per_second": written, "requests": requests, **found}


def take(cases: list[dict[str, Any]], name: str, url: str) -> dict[str, Any]:
    """Measure one case: both, one after the other."""
    rate, size = CASES[name]
    found: dict[str, Any] = {"rate": rate, "body_bytes": size}
    for kind in ("on_disk", "on_s3"):
        queue, ended = f"bench.capacity.{uuid4().hex[:8]}", threading.Event()
        sender = threading.Thread(target=send, args=(url, queue, rate, size, ended))
        sender.start()
        try:
            found |= in_process(f"spark_capacity.{kind}({url!r}, {queue!r})", timeout=600)
        finally:
            ended.set()
            sender.join(30)
    cases[:] = [*(each for each in cases if (each["rate"], each["body_bytes"]) != (rate, size)), found]
    return found


def text(cases: Sequence[Mapping[str, Any]], old: str) -> str:
    """Return the page; what the emulator cost is by the segment, as a busy machine makes fewer of them."""
    known, rows = list(CASES.values()), []
    for case in sorted(cases, key=lambda case: known.index((case["rate"], case["body_bytes"]))):
        segments, came = case["segments"], case["rows"]
        rows.append(
            (
                f"{case['disk_rows_per_second']:,.0f}/s",
                _size(case["body_bytes"]),
                f"{case['rss_peak_mib']} MiB",
                _size(case["held_bytes"]),
                _size(case["bytes_per_second"] * SECONDS / came),
                f"{came / segments:,.0f}",
                ", ".join(f"{case['requests'][kind] * SECONDS / segments:.1f}" for kind in KINDS),
            )
        )
    return between(old, "capacity", table(HEADS, rows))


def _size(count: float) -> str:
    size, unit = next(((1000**n, unit) for n, unit in ((3, "GB"), (2, "MB"), (1, "kB")) if count >= 1000**n), (1, "B"))
    return f"{count / size:.3g} {unit}"


if __name__ == "__main__":
    Figures("docs/spark-capacity.json", "docs/spark/operating.md", list(CASES), take, text).main(__doc__)
