"""Counts the requests of a stream whose segments are on S3, and what its driver downloads: with moto, without Spark.

The reader's methods are called as Spark calls them, each partition is read by a pickled copy. From the first look at an
empty bucket to the last commit: the start is in the numbers.
"""

from __future__ import annotations

import importlib
import json
import secrets
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import redelivery
from benchmarks.senders import fill
from benchmarks.spark_reader import reading, step
from redelivery.broker import EmbeddedBroker

ROWS, SEGMENTS, BODY = 3000, 3, 200
_QUEUE: Final = "counted"


class Bucket:
    """An S3 emulator that counts.

    ``requests``: by kind. ``downloaded``: bytes of answers to GET, by ``who`` asks, ``driver`` or ``task``.
    ``segments``: the bytes of each, by its path.
    """

    def __init__(self, application: Any, name: str) -> None:
        self._application = application
        self.who = "driver"
        self.name = name
        self.options: dict[str, Any] = {}
        self.clear()

    def clear(self) -> None:
        """Begin anew."""
        self.requests: Counter[str] = Counter()
        self.downloaded: Counter[str] = Counter()
        self.segments: dict[str, int] = {}

    @contextmanager
    def asked_by_a_task(self) -> Iterator[None]:
        """Count what is asked for as a task's."""
        self.who = "task"
        yield
        self.who = "driver"

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
def bucket(name: str = "") -> Iterator[Bucket]:
    """An emulator with a bucket of that name, or of its own: moto has one store a process. ``options``: for fsspec."""
    import fsspec
    from moto.server import DomainDispatcherApplication, create_backend_app

    found = Bucket(DomainDispatcherApplication(create_backend_app), name or f"wal-{uuid.uuid4().hex[:8]}")
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


def counted(store: Bucket, receiver: str, *, messages: int = ROWS, segments: int = SEGMENTS) -> dict[str, Any]:
    """Read so many messages in so many segments; what it took, by kind of request, and bytes that the driver loaded."""
    with EmbeddedBroker("bench", stomp_port=0) as broker:
        with redelivery.connect(broker.vm_url) as connection:
            fill(connection, _QUEUE, (secrets.token_hex(BODY // 2) for _ in range(messages)))
        given = {
            "walLocation": f"s3://{store.name}/{uuid.uuid4().hex}",
            "storageOptions": json.dumps(store.options),
            "receiver": receiver,
            "segmentRows" if receiver == "driver" else "maxMessagesPerBatch": str(messages // segments),
        }
        store.clear()
        seen = 0
        with reading(broker.stomp_url, _QUEUE, **given) as reader:
            reader.prepareForTriggerAvailableNow()
            start, end = None, reader.initialOffset()
            while end != start:  # until `availableNow` ends
                start = end
                end, rows = step(reader, start, store.asked_by_a_task())
                seen += rows
    return {
        "rows": seen,
        "segments": len(store.segments),
        "segment_bytes": sum(store.segments.values()),
        **{kind: store.requests[kind] for kind in ("LIST", "HEAD", "GET", "PUT", "DELETE")},
        "driver_bytes": store.downloaded["driver"],
        "task_bytes": store.downloaded["task"],
    }
