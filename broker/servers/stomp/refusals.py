"""Refusals of the STOMP server, and the ERROR that it answers."""

from __future__ import annotations

from typing import Final

from redelivery.model.errors import JMSError, MessageFormatError, ProtocolError
from redelivery.transports.dialects.embedded import DIALECT, PROTOCOL_EXCEPTION
from redelivery.transports.stomp.codec.frames import Frame, encode_head

assert DIALECT.stomp is not None, "it is what the server speaks"
MAX_HEADERS: Final = DIALECT.stomp.max_headers  # ActiveMQ's limits; clients that know the dialect refuse the rest
MAX_HEADER: Final = DIALECT.stomp.max_header  # bytes of a line


class HangUpError(ProtocolError):
    """The client gets an ERROR, then the connection ends."""


def error_frame(error: JMSError, receipt: bytes | None, version: str) -> bytes:
    """An ERROR; its body names JMS's exception. ``receipt`` is the one that the refused frame asked for."""
    message = "".join(each if each.isprintable() else " " for each in str(error))
    head = encode_head("ERROR", {"content-type": "text/plain", "message": message}, version)
    if receipt is not None:
        head += b"receipt-id:%b\n" % receipt
    cause = error.__cause__ if isinstance(error, HangUpError) and error.__cause__ is not None else error
    return b"%b\n%b\0" % (head, f"{_java_name(cause)}: {message}".encode())


def check_limits(frame: Frame) -> None:
    """Raise HangUpError where a frame has more or longer headers than allowed."""
    head = frame.head
    if head.count(b"\n") > MAX_HEADERS + 1:
        raise HangUpError("The maximum number of headers was exceeded")
    if len(head) > MAX_HEADER and any(len(line) > MAX_HEADER for line in head.split(b"\n")):
        raise HangUpError("The maximum header length was exceeded")


def _java_name(error: BaseException) -> str:
    name = type(error).__name__.removesuffix("Error")
    if isinstance(error, (ProtocolError, MessageFormatError)):
        return PROTOCOL_EXCEPTION
    return f"javax.jms.{name}Exception"
