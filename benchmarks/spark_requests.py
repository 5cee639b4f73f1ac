"""Counts the requests of a stream whose segments are on S3, and what its driver downloads: with moto, without Spark.

    python -m benchmarks.spark_requests        (docs/spark-bounds.json keeps what it prints)

The reader's methods are called as Spark calls them, each partition is read by a pickled copy. From the first look at an
empty bucket to the last commit: the start is in the numbers.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pickle
import secrets
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.spark.options.query import SourceOptions
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader

__all__ = ["Bucket", "bucket", "counted"]

ROWS, SEGMENTS, BODY = 3000, 3, 200
_QUEUE: Final = "counted"
_OUTPUT: Final = Path(__file__).parent.parent / "docs" / "spark-bounds.json"


class Bucket:
    """An S3 emulator that counts.

    ``requests``: by kind. ``downloaded``: bytes of answers to GET, by ``who`` asks, ``driver`` or ``task``.
    ``segments``: the bytes of each, by its path.
    """

    def __init__(self, application: Any) -> None:
        self._application = application
        self.who = "driver"
        self.name = f"wal-{uuid.uuid4().hex[:8]}"
        self.options: dict[str, Any] = {}
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.requests: Counter[str] = Counter()
        self.downloaded: Counter[str] = Counter()
        self.segments: dict[str, int] = {}

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        """As WSGI calls it."""
        listing = environ["REQUEST_METHOD"] == "GET" and "list-type" in environ.get("QUERY_STRING", "")
        kind = "LIST" if listing else environ["REQUEST_METHOD"]
        content = [*self._application(environ, start)]
        self.requests[kind] += 1
        path = environ["PATH_INFO"]
        if kind == "PUT" and path.endswith(".arrow"):
            self.segments[path] = int(environ.get("CONTENT_LENGTH") or 0)
        if kind == "GET":
            self.downloaded[self.who] += sum(map(len, content))
        return content


@contextmanager
def bucket() -> Iterator[Bucket]:
    """An emulator with a bucket ``name``, of its own: moto has one store a process. ``options``: for fsspec."""
    import fsspec
    from moto.server import DomainDispatcherApplication, create_backend_app

    found = Bucket(DomainDispatcherApplication(create_backend_app))
    serving = importlib.import_module("werkzeug.serving")
    server = serving.make_server("127.0.0.1", 0, found, threaded=False)  # moto looks and then writes
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    endpoint, region = f"http://127.0.0.1:{server.port}", {"region_name": "eu-west-1"}
    found.options = {"endpoint_url": endpoint, "key": "x", "secret": "x", "client_kwargs": region}
    try:
        fsspec.filesystem("s3", **found.options).mkdir(found.name)
        yield found
    finally:
        server.shutdown()
        thread.join(20)
        server.server_close()


def counted(store: Bucket, receiver: str, *, rows: int = ROWS, segments: int = SEGMENTS) -> dict[str, Any]:
    """Read so many messages in so many segments; what it took, by kind of request, and bytes that the driver loaded."""
    with EmbeddedBroker("bench", stomp_port=0) as broker:
        with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
            producer = session.producer(_QUEUE)
            for _ in range(rows):
                producer.send(secrets.token_hex(BODY // 2))
        most = {"segmentRows" if receiver == "driver" else "maxMessagesPerBatch": rows // segments}
        given = {
            "url": broker.stomp_url,
            "destination": _QUEUE,
            "walLocation": f"s3://{store.name}/{uuid.uuid4().hex}",
            "storageOptions": json.dumps(store.options),
            "receiver": receiver,
            **most,
        }
        options = SourceOptions.parse({name: str(value) for name, value in given.items()})
        reader: Any = (DriverStreamReader if receiver == "driver" else ExecutorStreamReader)(options)
        store.clear()
        try:
            seen = _drained(reader, store)
        finally:
            reader.stop()
    return {
        "rows": seen,
        "segments": len(store.segments),
        "segment_bytes": sum(store.segments.values()),
        **{kind: store.requests[kind] for kind in ("LIST", "HEAD", "GET", "PUT", "DELETE")},
        "driver_bytes": store.downloaded["driver"],
        "task_bytes": store.downloaded["task"],
    }


def _drained(reader: Any, store: Bucket) -> int:
    """The rows, until `availableNow` ends."""
    reader.prepareForTriggerAvailableNow()
    start, found = reader.initialOffset(), 0
    while (end := reader.latestOffset(start, reader.getDefaultReadLimit())) != start:
        for partition in reader.partitions(start, end):
            task = pickle.loads(pickle.dumps(reader))  # noqa: S301  # our own
            store.who = "task"
            found += sum(batch.num_rows for batch in task.read(partition))
            store.who = "driver"
        reader.commit(end)
        start = end
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=_OUTPUT, help="a JSON file that keeps the other cases")
    given = parser.parse_args()
    found = json.loads(given.output.read_text(encoding="utf-8")) if given.output.exists() else {}
    with bucket() as store:
        found["requests"] = {receiver: counted(store, receiver) for receiver in ("driver", "executor")}
    print(json.dumps(found["requests"]))
    given.output.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
