"""A message as its copy has it: its body's bytes, their kind, and the headers that can be read."""

from __future__ import annotations

from typing import Protocol

from redelivery.model.content.bodies import RawBody, named
from redelivery.model.errors import MessageFormatError, ProtocolError
from redelivery.model.values import Body
from redelivery.transports.stomp.codec.frames import parse_headers


class Decoding(Protocol):
    """A message that was received."""

    def body(self) -> Body:
        """Decoded. Raises MessageFormatError."""

    def sent_body(self) -> Body:
        """Decoded as its sender means it. Raises MessageFormatError."""

    def charset(self) -> str | None:
        """The charset of the text that its content type says; empty: it says bytes; None: nothing says anything."""


class StompBody(RawBody):
    """The body of a message over STOMP.

    ``kind``: what one of our headers, or the sender's client, says that it is; None: nothing does. ``translated``: the
    broker does not say that it could not. ``sections``: it is an AMQP one's sections, as this broker's type says.
    """

    __slots__ = ("_message", "_translated", "kind", "payload", "sections")

    def __init__(
        self, message: Decoding, payload: bytes, kind: bytes | None, *, translated: bool, sections: bool = False
    ) -> None:
        self._translated = translated
        self.sections = sections
        self._message = message
        self.payload = payload
        self.kind = kind

    @property
    def whole(self) -> bool:
        """See `RawBody`."""
        return self._translated or bool(self.payload)

    def data(self) -> bytes:
        """The frame's body."""
        return bytes(self.payload)

    def read(self) -> Body:
        """See `RawBody`."""
        return self._message.body()

    @property
    def charset(self) -> str | None:
        """The charset of the text that its content type says, which a copy has too."""
        return self._message.charset()

    def sent(self) -> Body:
        """As its sender means it; the frame's body where nobody can read that."""
        try:
            return self._message.sent_body()
        except MessageFormatError:
            return self.payload


def readable_headers(head: bytes, version: str, binary: bytes = b"") -> tuple[dict[str, str], list[str]]:
    """All headers of a head that can be read, and what to call the others.

    ``binary``: those whose names begin so are another protocol's, and left out without a word; empty: there are none.
    """
    found: dict[str, str] = {}
    left_out: list[str] = []
    start, *lines = head.split(b"\n")
    for line in lines[:-1]:
        if binary and line.startswith(binary):
            continue
        try:
            for name, value in parse_headers(b"%b\n%b\n" % (start, line), version).items():
                found.setdefault(name, value)
        except ProtocolError:
            left_out.append(named(line.partition(b":")[0].decode("utf-8", "replace")))
    return found, left_out
