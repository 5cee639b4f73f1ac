"""Reads what is left in the queues of a real broker with plain stomp.py: independent of the client under test."""

from __future__ import annotations

import queue
import time
from collections.abc import Mapping
from typing import Any

import stomp

ANSWER_SECONDS = 10.0
_STANDARD = """
    ack content-length correlation-id destination expires message-id persistent priority redelivered ref reply-to
    subscription timestamp type original-destination transformation amq-msg-type JMSXGroupID
"""
_HEADERS = frozenset(_STANDARD.split())


class _Inbox(stomp.ConnectionListener):  # type: ignore[misc]  # stomp.py has no types
    def __init__(self) -> None:
        self.frames: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def on_message(self, frame: Any) -> None:
        self.frames.put(frame)


class StompReader:
    """One connection; a context manager."""

    def __init__(self, host: str, port: int) -> None:
        self._connection = stomp.Connection12([(host, port)], heartbeats=(0, 0))
        self._inbox = _Inbox()
        self._connection.set_listener("inbox", self._inbox)
        self._connection.connect(wait=True)

    def __enter__(self) -> StompReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.disconnect()

    def browse(self, name: str) -> list[Any]:
        """The frames of all messages of the queue; takes nothing."""
        self._connection.subscribe(f"/queue/{name}", id="b", ack="auto", headers={"browser": "true"})
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


def as_recorded(frame: Any) -> dict[str, Any]:
    """A frame in the form of the recordings; the count is hidden behind the flag."""
    headers: Mapping[str, str] = frame.headers
    message: dict[str, Any] = {
        "body": frame.body,
        "redelivered": headers.get("redelivered") == "true",
        "persistent": headers.get("persistent") == "true",
        "destination": _uri(headers["destination"]),
    }
    if headers.get("priority", "4") != "4":
        message["priority"] = int(headers["priority"])
    if "original-destination" in headers:  # set by the broker's own dead-letter strategy
        message["originalDestination"] = _uri(headers["original-destination"])
    return message | {name: value for name, value in headers.items() if name not in _HEADERS}


def _uri(destination: str) -> str:
    kind, _, name = destination.strip("/").partition("/")
    return f"{kind}://{name}"
