"""Messages that other clients write: frames and encoded sections as they leave, whatever we think of them."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tests.transports.amqp091 import Amqp091

from redelivery.transports.dialects.detect import detect_amqp, detect_stomp

_TIMEOUT = 10.0
_SECTION = b"\x00\x53"


class Foreign:
    """Another client of a pair's broker, which knows nothing of us."""

    def __init__(self, protocol: str, broker: str, url: str) -> None:
        self.protocol = protocol
        self.broker = broker.removesuffix("6")  # Classic 6 has Classic's dialect
        self._url = url

    def send(self, queue: str, *messages: bytes) -> None:
        """Over AMQP encoded messages; over STOMP what stands behind the destination in a SEND, up to its NUL."""
        if self.protocol == "amqp":
            _send_amqp(self._url, self._address(queue), messages)
        else:
            _send_stomp(self._url, self._headers(queue), messages)

    def send_to_topic(self, topic: str, *messages: bytes) -> None:
        """The same to a topic."""
        if self.protocol == "amqp":
            _send_amqp(self._url, detect_amqp(self.broker, "", "", "")[1].topic_prefix + topic, messages)
        else:
            head = f"destination:{detect_stomp(self.broker, '')[1].topic_prefix}{topic}\n"
            _send_stomp(self._url, head.encode(), messages)

    def publish(self, queue: str, body: bytes, headers: Mapping[str, str], content_type: str = "") -> None:
        """Over AMQP 0-9-1, to a queue that is there."""
        with Amqp091(self._url) as client:
            client.publish(queue, body, headers, content_type)

    def _address(self, queue: str) -> str:
        name = self.broker.removesuffix("4")
        dialect = detect_amqp(name, "", "", "4" if name != self.broker else "")[1]
        return (dialect.existing_queue_prefix or dialect.queue_prefix) + queue

    def _headers(self, queue: str) -> bytes:
        dialect = detect_stomp(self.broker.removesuffix("4"), "")[1]
        more = "".join(f"{name}:{value}\n" for name, value in dialect.send_to_queue)
        return f"destination:{dialect.existing_queue_prefix or dialect.queue_prefix}{queue}\n{more}".encode()


def _send_stomp(url: str, head: bytes, messages: tuple[bytes, ...]) -> None:
    address = urlsplit(url)
    login = f"login:{address.username}\npasscode:{address.password}\n" if address.username else ""
    with socket.create_connection((address.hostname, address.port), _TIMEOUT) as peer:
        file = peer.makefile("rb")
        host = "/" if address.port and address.username == "guest" else "localhost"
        peer.sendall(f"CONNECT\naccept-version:1.2\nhost:{host}\n{login}\n\0".encode())
        assert b"CONNECTED" in _frame(file)
        for message in messages:
            receipt = uuid.uuid4().hex.encode()
            peer.sendall(b"SEND\nreceipt:%b\n%b%b\0" % (receipt, head, message))
            assert receipt in _frame(file)


def _frame(file: Any) -> bytes:
    found = bytearray()
    while not found.endswith(b"\0"):
        byte = file.read(1)
        if not byte:
            raise ConnectionError("the broker has closed the connection")
        found += byte
    return bytes(found)


def _send_amqp(url: str, address: str, messages: tuple[bytes, ...]) -> None:
    from proton.utils import BlockingConnection

    connection = BlockingConnection(url, allowed_mechs="PLAIN ANONYMOUS", timeout=_TIMEOUT)
    try:
        sender = connection.create_sender(address)
        for message in messages:
            sender.send(_Encoded(message))
    finally:
        connection.close()


class _Encoded:
    """What proton takes for a message."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def send(self, sender: Any, tag: Any = None) -> Any:
        delivery = sender.delivery(tag or sender.delivery_tag())
        sender.stream(self._data)
        sender.advance()
        return delivery


def section(code: int, value: bytes) -> bytes:
    """A section of an AMQP message, of an encoded value."""
    return _SECTION + bytes([code]) + value


def binary(data: bytes) -> bytes:
    return b"\xb0" + len(data).to_bytes(4, "big") + data


def string(data: bytes) -> bytes:
    return b"\xb1" + len(data).to_bytes(4, "big") + data


def symbol(data: bytes) -> bytes:
    return b"\xa3" + bytes([len(data)]) + data


def sequence(*items: bytes) -> bytes:
    data = b"".join(items)
    return b"\xd0" + (len(data) + 4).to_bytes(4, "big") + len(items).to_bytes(4, "big") + data


def mapping(*items: bytes) -> bytes:
    data = b"".join(items)
    return b"\xd1" + (len(data) + 4).to_bytes(4, "big") + len(items).to_bytes(4, "big") + data


def properties(content_type: bytes) -> bytes:
    """The section `properties` with that content type and nothing else."""
    return section(0x73, sequence(*[b"\x40"] * 6, symbol(content_type)))
