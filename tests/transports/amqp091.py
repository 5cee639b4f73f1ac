"""The smallest client of AMQP 0-9-1, which is RabbitMQ's own protocol: enough to delete a queue and to publish."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

_HEADER: Final = b"AMQP\x00\x00\x09\x01"
_END: Final = b"\xce"


class Amqp091:
    """One connection with one channel; methods are numbers of a class and of a method (AMQP 0-9-1, §1)."""

    def __init__(self, url: str) -> None:
        address = urlsplit(url)
        self._socket = socket.create_connection((address.hostname, address.port), timeout=10)
        self._file = self._socket.makefile("rb")
        self._socket.sendall(_HEADER)
        self._answer()  # connection.start
        login = f"\0{address.username}\0{address.password}".encode()
        tune = self._call(0, 10, 11, _long(b"") + _short("PLAIN") + _long(login) + _short("en_US"))
        self._write(0, 10, 31, tune[:6] + b"\0\0")  # what the broker allows, without heart-beats
        self._call(0, 10, 40, _short("/") + _short("") + b"\0")
        self._call(1, 20, 10, _short(""))

    def delete(self, queue: str) -> None:
        """queue.delete, answered."""
        self._call(1, 50, 40, b"\0\0" + _short(queue) + b"\0")

    def publish(self, queue: str, body: bytes, headers: Mapping[str, str], content_type: str = "") -> None:
        """basic.publish to a queue; done when the broker has answered what follows it on the channel."""
        self._write(1, 60, 40, b"\0\0" + _short("") + _short(queue) + b"\0")
        table = b"".join(_short(name) + b"S" + _long(value.encode()) for name, value in headers.items())
        fields = [_short(content_type)] if content_type else []
        flags = 0x2000 | (0x8000 if content_type else 0)
        head = struct.pack(">HHQH", 60, 0, len(body), flags) + b"".join(fields) + _long(table)
        self._socket.sendall(struct.pack(">BHI", 2, 1, len(head)) + head + _END)
        self._socket.sendall(struct.pack(">BHI", 3, 1, len(body)) + body + _END)
        self._call(1, 60, 10, struct.pack(">IHB", 0, 1, 0))  # basic.qos

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._socket.close()

    def _call(self, channel: int, kind: int, method: int, arguments: bytes) -> bytes:
        self._write(channel, kind, method, arguments)
        return self._answer()

    def _write(self, channel: int, kind: int, method: int, arguments: bytes) -> None:
        payload = struct.pack(">HH", kind, method) + arguments
        self._socket.sendall(struct.pack(">BHI", 1, channel, len(payload)) + payload + _END)

    def _answer(self) -> bytes:
        """The arguments of the next method."""
        _, _, size = struct.unpack(">BHI", self._file.read(7))
        payload = self._file.read(size)
        assert self._file.read(1) == _END
        return payload[4:]


def _short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def _long(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data
