"""Messages to the coordinator of transactions (AMQP 1.0, part 4.2 and 4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from redelivery.model.errors import MessageFormatError
from redelivery.transports.amqp.codec.sections import VALUE, body_sections, find
from redelivery.transports.amqp.codec.values import read

_DECLARE: Final = (0x31, "amqp:declare:list")
_DISCHARGE: Final = (0x32, "amqp:discharge:list")


@dataclass(frozen=True, slots=True)
class DischargeRequest:
    """The end of a transaction; ``fail`` undoes it."""

    transaction: bytes
    fail: bool


def read_request(raw: bytes | bytearray) -> DischargeRequest | None:
    """A message to the coordinator; None is a declare. Raises MessageFormatError."""
    body = find(raw)[4]
    sections = body_sections(raw, body) if body >= 0 else []
    if len(sections) != 1 or sections[0][0] != VALUE or raw[sections[0][1]] != 0:
        raise MessageFormatError("a message to the coordinator is a declare or a discharge")
    kind, at = read(raw, sections[0][1] + 1)
    fields, _ = read(raw, at)
    if kind in _DECLARE:
        return None
    if kind not in _DISCHARGE or not isinstance(fields, list) or not fields or not isinstance(fields[0], bytes):
        raise MessageFormatError("a message to the coordinator is a declare or a discharge with a transaction's id")
    return DischargeRequest(fields[0], len(fields) > 1 and fields[1] is True)
