"""Declares and discharges that are read without a parser are what the parser reads them as."""

from __future__ import annotations

import pytest

from redelivery.broker.servers.amqp.links.coordinator import DischargeRequest, read_any, read_request
from redelivery.model.errors import MessageFormatError

DECLARE = b"\0Sw\0S1\xc0\2\1@"
COMMIT = b"\0Sw\0S2\xc0\6\2\xa0\2idB"
ROLLBACK = COMMIT[:-1] + b"A"


def test_usual_requests() -> None:
    assert read_request(DECLARE) is None
    assert read_request(bytearray(COMMIT)) == DischargeRequest(b"id", fail=False)
    assert read_request(ROLLBACK) == DischargeRequest(b"id", fail=True)


@pytest.mark.parametrize("usual", [DECLARE, b"\0Sw\0S1E", b"\0Sw\0S1\xc0\1\0", COMMIT, ROLLBACK])
def test_any_other_byte(usual: bytes) -> None:
    for at in range(len(usual)):
        for byte in range(256):
            other = usual[:at] + bytes((byte,)) + usual[at + 1 :]
            for raw in (other, other[: at + 1], other + b"@"):
                assert _read(raw, fast=True) == _read(raw, fast=False), raw


def _read(raw: bytes, *, fast: bool) -> object:
    try:
        return (read_request if fast else read_any)(raw)
    except (MessageFormatError, IndexError) as error:
        return type(error)
