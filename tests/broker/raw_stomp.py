"""A STOMP client that says exactly what a test tells it to, and sees every frame."""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Mapping
from typing import Self
from urllib.parse import urlsplit

from redelivery.transports.stomp.codec.frames import Frame, encode
from redelivery.transports.stomp.codec.reader import FrameReader


class Raw:
    """One connection; every wait is bounded by ``timeout`` seconds."""

    def __init__(
        self,
        url: str,
        *,
        connect: bool = True,
        version: str = "1.2",
        timeout: float = 20.0,
        receive_buffer: int | None = None,
        **headers: str,
    ) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        self.socket = socket.socket()
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect((parts.hostname, parts.port))
        self.frames: deque[Frame] = deque()
        self.beats = 0
        self.version = version
        self._reader = FrameReader()
        self._receipts = 0
        if connect:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            self.say("CONNECT", {"accept-version": version, "host": "x", **named})
            self.connected = self.next("CONNECTED")
            self._reader.version = version

    def say(self, command: str, headers: Mapping[str, str], body: bytes = b"") -> None:
        self.socket.sendall(encode(command, headers, body, self.version))

    def call(self, command: str, body: bytes = b"", /, **headers: str) -> Frame:
        """Say it with a receipt; the RECEIPT or ERROR that answers. Messages that come meanwhile are kept."""
        self._receipts += 1
        named = {"message-id" if name == "message_id" else name: value for name, value in headers.items()}
        receipt = f"r{self._receipts}"
        self.say(command, {**named, "receipt": receipt}, body)
        kept: deque[Frame] = deque()
        while True:
            frame = self.take()
            assert frame is not None, f"the connection was closed instead of an answer to {command}"
            if frame.command == "ERROR" or frame.headers.get("receipt-id") == receipt:
                self.frames.extendleft(reversed(kept))
                return frame
            kept.append(frame)

    def ok(self, command: str, body: bytes = b"", /, **headers: str) -> None:
        answer = self.call(command, body, **headers)
        assert answer.command == "RECEIPT", (answer.headers, answer.body)

    def subscribe(self, queue: str = "/queue/q", ack: str = "client-individual", **headers: str) -> None:
        self.ok("SUBSCRIBE", **{"destination": queue, "id": "s", "ack": ack, **headers})

    def take(self) -> Frame | None:
        """The next frame; None when the broker has closed the connection."""
        while not self.frames:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.beats += data == b"\n"
            self.frames.extend(Frame(head, body, self.version) for head, body in self._reader.feed(data))
        return self.frames.popleft()

    def next(self, command: str = "MESSAGE") -> Frame:
        """The next frame, which must be of this command."""
        frame = self.take()
        assert frame is not None, f"the connection was closed instead of {command}"
        assert frame.command == command, (frame.command, frame.headers, frame.body)
        return frame

    def messages(self, number: int) -> list[Frame]:
        return [self.next() for _ in range(number)]

    def is_quiet(self) -> bool:
        """Whether nothing was sent up to now: what the broker had to say came before the answer to this."""
        answer = self.call("BEGIN", transaction="quiet")
        self.ok("ABORT", transaction="quiet")
        return answer.command == "RECEIPT" and not self.frames

    def closed(self) -> bool:
        """Whether the broker closes the connection (waits for it) without another word."""
        return self.take() is None

    def drop(self) -> None:
        """Close without a goodbye."""
        self.socket.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.drop()
