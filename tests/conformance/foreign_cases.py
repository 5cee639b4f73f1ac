"""What other programs write: nothing but a body, odd content types, ids of every type, what nobody can decode."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from typing import Final

from tests.conformance.foreign import binary, mapping, section, sequence, string, symbol

LATIN: Final = "Grüße".encode("latin-1")
JSON: Final = b'{"id": 1, "lines": [{"sku": "a"}]}'
ZIPPED: Final = gzip.compress(JSON, mtime=0)
UUID: Final = b"\x98" + bytes(range(16))
_NULL: Final = b"\x40"


def _frame(headers: str, body: bytes, *, length: bool = True) -> bytes:
    """What stands behind the destination in a SEND."""
    size = f"content-length:{len(body)}\n" if length else ""
    return f"{headers}{size}\n".encode() + body


# A SEND by name, as stomp.py and others write them: what is not said is not persistent, and has no type.
_SENDS: Final[Mapping[str, bytes]] = {
    "nothing said": _frame("", b"plain", length=False),
    "a length": _frame("", b"plain"),
    "persistent text": _frame("persistent:true\ncontent-type:text/plain;charset=utf-8\n", "Grüße".encode()),
    "JSON": _frame("content-type:application/json\n", JSON),
    "a type of its own": _frame("content-type:application/vnd.acme.order+json; v=2\n", JSON),
    "a type that is none": _frame("content-type:;;\n", b"plain"),
    "an unknown character set": _frame("content-type:text/plain;charset=klingon\n", b"plain"),
    "latin-1 that says so": _frame("content-type:text/plain;charset=iso-8859-1\n", LATIN),
    "UTF-16 that says so": _frame("content-type:text/plain;charset=utf-16\n", "Grüße".encode("utf-16")),
    "latin-1 that says UTF-8": _frame("content-type:text/plain;charset=utf-8\n", LATIN),
    "gzip": _frame("content-type:application/json\ncontent-encoding:gzip\n", ZIPPED),
    "bytes": _frame("content-type:application/octet-stream\n", b"\x08\xff\x00\xfe"),
    "a NUL": _frame("", b"\x08\x01\x00"),
    "half a character": _frame("", b"half \xed\xa0\xbd"),
    "no body": _frame("", b""),
    "headers of its own": _frame("priority:9\ncorrelation-id:c 1\nx-app:shop\nempty:\n", b"plain"),
}


def _properties(message_id: bytes = _NULL, content_type: bytes = _NULL, encoding: bytes = _NULL) -> bytes:
    return section(0x73, sequence(message_id, *[_NULL] * 5, content_type, encoding))


def _own(name: str) -> bytes:
    return section(0x74, mapping(string(b"case"), string(name.encode())))


_DURABLE: Final = section(0x70, sequence(b"\x41"))
_TEXT: Final = section(0x77, string(b"plain"))
_NESTED: Final = mapping(string(b"order"), mapping(string(b"id"), b"\x54\x01"), string(b"lines"), sequence(b"\x54\x01"))
# What stands before and behind the application's properties of a message of AMQP 1.0, as proton writes them.
_MESSAGES: Final[Mapping[str, tuple[bytes, bytes]]] = {
    "nothing said": (b"", _TEXT),
    "persistent text": (_DURABLE, section(0x77, string("Grüße".encode()))),
    "an id that is a number": (_DURABLE + _properties(b"\x80" + (1 << 40).to_bytes(8, "big")), _TEXT),
    "an id that is a UUID": (_properties(UUID), _TEXT),
    "an id of bytes": (_properties(binary(b"\x00\xff")), _TEXT),
    "an id with a quote": (_properties(string(b"it's")), _TEXT),
    "JSON": (_properties(content_type=symbol(b"application/json")), section(0x75, binary(JSON))),
    "a type of its own": (_properties(content_type=symbol(b"x/y; z")), section(0x75, binary(JSON))),
    "a type that is none": (_properties(content_type=symbol(b";;")), section(0x75, binary(b"plain"))),
    "latin-1 that says UTF-8": (
        _properties(content_type=symbol(b"text/plain;charset=utf-8")),
        section(0x75, binary(LATIN)),
    ),
    "gzip": (
        _properties(content_type=symbol(b"application/json"), encoding=symbol(b"gzip")),
        section(0x75, binary(ZIPPED)),
    ),
    "bytes": (b"", section(0x75, binary(b"\x08\xff\x00\xfe"))),
    "several data": (b"", section(0x75, binary(b"one ")) + section(0x75, binary(b"two"))),
    "no bytes": (b"", section(0x75, binary(b""))),
    "null": (b"", section(0x77, _NULL)),
    "a number": (b"", section(0x77, b"\x71\x00\x00\x10\x00")),
    "a date": (b"", section(0x77, b"\x83\x00\x00\x01\x8b\x00\x00\x00\x00")),
    "a UUID": (b"", section(0x77, UUID)),
    "a symbol": (b"", section(0x77, symbol(b"plain"))),
    "half a character": (b"", section(0x77, string(b"half \xed\xa0\xbd"))),
    "a map": (b"", section(0x77, mapping(string(b"id"), b"\x54\x01"))),
    "a nested map": (_DURABLE, section(0x77, _NESTED)),
    "a map with numbers as keys": (b"", section(0x77, mapping(b"\x54\x01", b"\x54\x02"))),
    "a nested list": (b"", section(0x77, sequence(sequence(b"\x41"), b"\x42"))),
    "a sequence": (b"", section(0x76, sequence(b"\x54\x01", string(b"two")))),
    "a described value": (b"", section(0x77, b"\x00" + symbol(b"other:type") + string(b"value"))),
}

# Of each way to write: the messages by name, which is its property ``case`` too.
STOMP: Final[Mapping[str, bytes]] = {name: f"case:{name}\n".encode() + frame for name, frame in _SENDS.items()}
AMQP: Final[Mapping[str, bytes]] = {name: before + _own(name) + behind for name, (before, behind) in _MESSAGES.items()}
# AMQP 0-9-1, as pika writes it: a body and its content type.
RABBIT: Final[Mapping[str, tuple[bytes, str]]] = {
    "nothing said": (b"plain", ""),
    "persistent text": ("Grüße".encode(), "text/plain"),
    "JSON": (JSON, "application/json"),
    "a type that is none": (b"plain", ";;"),
    "latin-1 that says UTF-8": (LATIN, "text/plain; charset=utf-8"),
    "bytes": (b"\x08\xff\x00\xfe", "application/octet-stream"),
    "a NUL": (b"\x08\x01\x00", ""),
    "half a character": (b"half \xed\xa0\xbd", ""),
    "no body": (b"", ""),
}
