"""Reads what is left in the queues of a real broker with plain stomp.py: independent of the client under test."""

from __future__ import annotations

import queue
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import stomp

ANSWER_SECONDS = 10.0
LATE_SECONDS = 0.1  # for what a broker puts back only now
_INTERNAL: Final = ("_AMQ", "__AMQ", "_HQ", "__HQ", "JMS_", "x-", "amqp-", "JMSX")
_STANDARD = """
    ack content-length correlation-id destination expires message-id persistent priority receipt redelivered ref
    reply-to transaction subscription timestamp type original-destination transformation amq-msg-type destination-type
    subscription-type ingress-timestamp NATIVE_MESSAGE_ID
"""
_HEADERS = frozenset(_STANDARD.split())


class _Inbox(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py has no types
    def __init__(self) -> None:
        self.frames: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def on_message(self, frame: Any) -> None:
        self.frames.put(frame)


class StompReader:
    """One connection; a context manager."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = stomp.Connection12([(parts.hostname, parts.port)], vhost="/", heartbeats=(0, 0))
        self._inbox = _Inbox()
        self._connection.set_listener("inbox", self._inbox)
        self._connection.connect(parts.username, parts.password, wait=True)

    def __enter__(self) -> StompReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.disconnect()

    def browse(self, name: str, selector: str | None = None) -> list[Any]:
        """The frames of all messages of the queue, or of those that are selected; takes nothing."""
        headers = {"browser": "true"} | ({"selector": selector} if selector else {})
        self._connection.subscribe(f"/queue/{name}", id="b", ack="auto", headers=headers)
        frames = []
        while (frame := self._inbox.frames.get(timeout=ANSWER_SECONDS)).headers.get("browser") != "end":
            frames.append(frame)
        self._connection.unsubscribe("b")
        return frames

    def take(self, name: str, count: int, selector: str | None = None) -> list[Any]:
        """The next ``count`` messages; fewer if they do not come within a second."""
        headers = {"selector": selector} if selector else {}
        self._connection.subscribe(f"/queue/{name}", id="t", ack="client-individual", headers=headers)
        frames: list[Any] = []
        deadline = time.monotonic() + 1.0
        try:
            while len(frames) < count:
                frames.append(self._inbox.frames.get(timeout=max(0.0, deadline - time.monotonic())))
                self._connection.ack(frames[-1].headers["ack"])
        except queue.Empty:
            pass
        self._connection.unsubscribe("t")
        return frames

    def drain(self, destination: str) -> list[Any]:
        """All that is in a queue that nobody else uses: what comes before a last message of ours, and soon after."""
        last = uuid.uuid4().hex
        headers = {"subscription-type": "ANYCAST", "prefetch-count": "100", "consumer-window-size": "-1"}
        self._connection.subscribe(destination, id=last, ack="client-individual", headers=headers)
        self._connection.send(destination, last, headers={"priority": "0", "destination-type": "ANYCAST"})
        frames: list[Any] = []
        seconds = ANSWER_SECONDS
        while True:
            try:
                frame = self._inbox.frames.get(timeout=seconds)
            except queue.Empty:
                assert seconds == LATE_SECONDS, f"{destination} cannot be read"
                break
            self._connection.ack(frame.headers["ack"])
            if frame.body == last:
                seconds = LATE_SECONDS
            else:
                frames.append(frame)
        self._connection.unsubscribe(last)
        return frames


def drain(url: str, names: Sequence[str], prefix: str) -> list[list[dict[str, Any]]]:
    """What is left in each of these queues, which is taken away. ``prefix``: of a queue's name at this broker."""
    with StompReader(url) as reader:
        return [[as_recorded(frame, prefix) for frame in reader.drain(prefix + name)] for name in names]


def as_recorded(frame: Any, prefix: str = "/queue/") -> dict[str, Any]:
    """A frame in the form of the recordings; the count is hidden behind the flag."""
    headers: Mapping[str, str] = frame.headers
    message: dict[str, Any] = {
        "body": frame.body,
        "redelivered": headers.get("redelivered") == "true",
        "persistent": headers.get("persistent") == "true",
        "destination": "queue://" + headers["destination"].removeprefix(prefix),
    }
    if headers.get("priority", "4") != "4":
        message["priority"] = int(headers["priority"])
    if "original-destination" in headers:  # set by the broker's own dead-letter strategy
        message["originalDestination"] = _uri(headers["original-destination"])
    return message | {name: value for name, value in headers.items() if _is_property(name)}


def _is_property(name: str) -> bool:
    return name not in _HEADERS and not name.startswith(_INTERNAL)


def _uri(destination: str) -> str:
    kind, _, name = destination.strip("/").partition("/")
    return f"{kind}://{name}"
