"""``python -m benchmarks.spark_capacity URL``: what a rate of messages costs, in disk, memory and requests.

For each rate and size of a body the reader of `receiver=driver` is asked for rows once a second, as a query with a
trigger of one second asks it: on a local disk, in a process of its own whose memory is measured, and on an emulator of
S3 (moto), whose requests are counted, those of the tasks that read the segments included. Bodies are random, which
nothing compresses. Writes docs/spark-capacity.json, and from it the table of docs/spark/operating.md.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import tempfile
import threading
import time
import uuid
from pathlib import Path
from typing import Any, Final

import redelivery
from benchmarks.machine import HERE, in_process
from benchmarks.spark_bounds import memory
from benchmarks.spark_requests import bucket
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.driver import DriverStreamReader

CASES: Final = ((1, 1_000), (10, 1_000), (100, 1_000), (1_000, 200), (100, 10_000), (10, 100_000))
SECONDS: Final = 15.0
WARM: Final = 5.0  # seconds of a case that are not counted
KINDS: Final = ("PUT", "GET", "HEAD", "LIST", "DELETE")
OUTPUT: Final = HERE / "docs" / "spark-capacity.json"
PAGE: Final = HERE / "docs" / "spark" / "operating.md"
BEGIN: Final = "<!-- capacity: written by benchmarks.spark_capacity -->"
END: Final = "<!-- end of the capacity -->"
_TICK: Final = 0.05  # seconds between two transactions of the sender, at least


def send(url: str, queue: str, rate: int, size: int, ended: threading.Event) -> None:
    """Send random bodies, so many a second by the clock, until the event is set."""
    with redelivery.connect(url) as connection, connection.session("transacted") as session:
        producer, began, sent = session.producer(queue), time.monotonic(), 0
        while not ended.wait(_TICK):
            for _ in range(sent, int((time.monotonic() - began) * rate)):
                producer.send(os.urandom(size))
                sent += 1
            session.commit()


def _read(url: str, queue: str, options: dict[str, str], *, tasks: bool, each: Any = lambda: None) -> dict[str, Any]:
    """Ask for rows once a second; what came in the time that counts. ``tasks``: read the rows, too."""
    parsed = SourceOptions.parse({"url": url, "destination": queue, **options})
    reader, rows, segments, ends = DriverStreamReader(parsed), 0, 0, time.monotonic() + WARM + SECONDS
    counted = ends - SECONDS
    try:
        start = reader.initialOffset()
        while (now := time.monotonic()) < ends:
            end = reader.latestOffset(start, reader.getDefaultReadLimit())
            if end != start:
                planned = reader.partitions(start, end)
                if tasks:
                    task = pickle.loads(pickle.dumps(reader))  # noqa: S301  # our own
                    found = sum(batch.num_rows for part in planned for batch in task.read(part))
                else:
                    lanes = reader._lanes
                    assert lanes is not None
                    found = sum(lanes._segments[number].rows for number in range(start["seq"] + 1, end["seq"] + 1))
                rows, segments = (rows + found, segments + end["seq"] - start["seq"]) if now > counted else (0, 0)
                reader.commit(end)
                start = end
            each()
            time.sleep(max(0.0, now + 1 - time.monotonic()))
    finally:
        reader.stop()
    return {"rows": rows, "segments": segments}


def on_disk(url: str, queue: str) -> dict[str, float]:
    """The memory of the reader's process, and the bytes of the folder at most."""
    most = 0
    with tempfile.TemporaryDirectory() as folder:

        def weigh() -> None:
            nonlocal most
            sizes = []
            for path in Path(folder).rglob("*"):
                try:
                    sizes.append(path.stat().st_size if path.is_file() else 0)
                except FileNotFoundError:  # it was deleted meanwhile
                    continue
            most = max(most, sum(sizes))

        found = _read(url, queue, {"walLocation": folder}, tasks=False, each=weigh)
    came = found["rows"] / SECONDS
    return {"rss_peak_mib": round(memory("VmHWM")), "held_bytes": most, "disk_rows_per_second": came}


def on_s3(url: str, queue: str) -> dict[str, Any]:
    """Requests and bytes of segments, by the second."""
    with bucket() as store:
        options = {"walLocation": f"s3://wal/{uuid.uuid4().hex}", "storageOptions": json.dumps(store.options)}
        timer = threading.Timer(WARM, store.clear)
        timer.start()
        found = _read(url, queue, options, tasks=True)
        timer.join()
    written = sum(store.segments.values()) / SECONDS
    requests = {kind: store.requests[kind] / SECONDS for kind in KINDS}
    return {"rows_per_second": found["rows"] / SECONDS, "bytes_per_second": written, "requests": requests, **found}


def measured(url: str, rate: int, size: int) -> dict[str, Any]:
    """One case: both, one after the other."""
    found: dict[str, Any] = {"rate": rate, "body_bytes": size}
    for name in ("on_disk", "on_s3"):
        queue, ended = f"bench.capacity.{uuid.uuid4().hex[:8]}", threading.Event()
        sender = threading.Thread(target=send, args=(url, queue, rate, size, ended))
        sender.start()
        try:
            found |= in_process(f"spark_capacity.{name}({url!r}, {queue!r})", timeout=600)
        finally:
            ended.set()
            sender.join(30)
    return found


def table(cases: list[dict[str, Any]]) -> str:
    """The rows of the page; what the emulator cost by the segment, as a busy machine makes fewer of them."""
    titles = ("came", "body", "memory", "held at most", "written, a message", "messages of a segment", ", ".join(KINDS))
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    for case in cases:
        segments, rows = case["segments"], case["rows"]
        asked = ", ".join(f"{case['requests'][kind] * SECONDS / segments:.1f}" for kind in KINDS)
        cells = [
            f"{case['disk_rows_per_second']:,.0f}/s",
            _size(case["body_bytes"]),
            f"{case['rss_peak_mib']} MiB",
            _size(case["held_bytes"]),
            _size(case["bytes_per_second"] * SECONDS / rows),
            f"{rows / segments:,.0f}",
            asked,
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _size(count: float) -> str:
    size, unit = next(((1000**n, unit) for n, unit in ((3, "GB"), (2, "MB"), (1, "kB")) if count >= 1000**n), (1, "B"))
    return f"{count / size:.3g} {unit}"


def write(cases: list[dict[str, Any]]) -> None:
    """Put the table into the page."""
    before, first, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, last, after = rest.partition(END)
    if not first or not last:
        raise ValueError(f"{PAGE} has no place for the table")
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(cases)}\n\n{END}{after}", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url", help="a broker that may be used; '-': write the page only")
    given = parser.parse_args()
    cases = json.loads(OUTPUT.read_text(encoding="utf-8")) if given.url == "-" else []
    for rate, size in () if given.url == "-" else CASES:
        cases.append(measured(given.url, rate, size))
        print(json.dumps(cases[-1]), flush=True)
        OUTPUT.write_text(json.dumps(cases, indent=2) + "\n", encoding="utf-8")
    write(cases)


if __name__ == "__main__":
    main()
