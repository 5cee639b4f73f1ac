"""Recognises the first bytes of a peer that does not speak what was expected: a word for errors."""

from __future__ import annotations

from typing import Final

_STARTS: Final = (
    (b"AMQP", "AMQP"),
    (b"CONNECTED", "STOMP"),
    (b"ERROR\n", "STOMP"),
    (b"ERROR\r\n", "STOMP"),
    (b"HTTP/", "HTTP"),
    (b"<", "HTTP"),  # a page without a status line
    (b"GET ", "HTTP"),
    (b"POST ", "HTTP"),
    (b"SSH-", "SSH"),
    (b"\x15\x03", "TLS (an alert: it expects an encrypted connection)"),
    (b"\x16\x03", "TLS"),
)


def protocol_of(data: bytes) -> str | None:
    """The protocol whose first bytes these look like, None if they look like none that is known."""
    for start, name in _STARTS:
        if data.startswith(start):
            return name
    # OpenWire: a four-byte length, then type 1 (WireFormatInfo).
    if len(data) >= 5 and data[0] == 0 and data[4] == 1:
        return "OpenWire"
    return None
