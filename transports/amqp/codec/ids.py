"""Message ids and correlation ids of any AMQP type as the strings that JMS has for them (Qpid JMS, AMQP JMS mapping).

A correlation id that is binary is bytes, JMSCorrelationIDAsBytes; as a message id it is a str like the others.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from redelivery.model.errors import MessageFormatError
from redelivery.transports.amqp.codec.encoding import binary_head, shown, write_text, write_ulong
from redelivery.transports.amqp.codec.values import read

_ID: Final = "ID:"
_STRING: Final = "ID:AMQP_STRING:"
_BARE: Final = "ID:AMQP_NO_PREFIX:"
_UUID: Final = "ID:AMQP_UUID:"
_ULONG: Final = "ID:AMQP_ULONG:"
_BINARY: Final = "ID:AMQP_BINARY:"
_TYPED: Final = (_STRING, _BARE, _UUID, _ULONG, _BINARY)


def read_usual_id(raw: bytes | bytearray, at: int) -> str | None:
    """As `read_message_id` where it is a string of less than 256 bytes of ASCII that JMS takes as it is; else None."""
    if raw[at : at + 1] != b"\xa1":
        return None
    end = at + 2 + raw[at + 1] if at + 1 < len(raw) else 0
    usual = raw[at + 2 : end]
    if end > len(raw) or not usual.startswith(b"ID:") or usual.startswith(b"ID:AMQP_") or not usual.isascii():
        return None
    return usual.decode("ascii")


def read_message_id(raw: bytes | bytearray, at: int) -> str | None:
    """The JMSMessageID of the AMQP message-id at ``at``. Raises MessageFormatError."""
    value = _read(raw, at)
    if isinstance(value, bytes):
        return _BINARY + value.hex().upper()
    if value is None or value.startswith(_ID):
        return value
    return _BARE + value


def read_correlation_id(raw: bytes | bytearray, at: int) -> str | bytes | None:
    """The JMSCorrelationID of the AMQP correlation-id at ``at``. Raises MessageFormatError."""
    return _read(raw, at)


def _read(raw: bytes | bytearray, at: int) -> str | bytes | None:
    value, _ = read(raw, at)
    code = raw[at]
    if code in (0xA1, 0xB1, 0xA3, 0xB3):
        text: str = value
        return _STRING + text if text.startswith(_TYPED) else text
    if code == 0x98:
        return f"{_UUID}{value}"
    if code in (0x80, 0x53, 0x44):
        return f"{_ULONG}{value}"
    if value is None or isinstance(value, bytes):
        return value
    raise MessageFormatError(f"an id in the message is none: AMQP type 0x{code:02x}")


def write_id(name: str, value: str | bytes) -> bytes:
    """The AMQP id of a JMS one.

    Raises:
        MessageFormatError: the text says ``ID:AMQP_UUID:`` or the like, and what follows is none; it names ``name``.
    """
    try:
        if isinstance(value, bytes):
            return binary_head(len(value)) + value
        if not value.startswith("ID:AMQP_"):
            return write_text(value)
        return _write_typed(value)
    except (ValueError, OverflowError) as error:
        raise MessageFormatError(f"{name}={shown(value)} cannot be sent as an id over AMQP: {error}") from error


def _write_typed(value: str) -> bytes:
    if value.startswith(_BARE):
        return write_text(value[len(_BARE) :])
    if value.startswith(_STRING):
        return write_text(value[len(_STRING) :])
    if value.startswith(_UUID):
        return b"\x98" + UUID(value[len(_UUID) :]).bytes
    if value.startswith(_ULONG):
        digits = value[len(_ULONG) :]
        if not (digits.isascii() and digits.isdigit()):
            raise ValueError("a ulong has digits only")
        return write_ulong(int(digits))
    if value.startswith(_BINARY):
        data = bytes.fromhex(value[len(_BINARY) :])
        return binary_head(len(data)) + data
    return write_text(value)
