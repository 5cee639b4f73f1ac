"""The steps of an AMQP client are values: they can be compared and printed, and say which fault can strike them."""

from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from redelivery.broker.faults import COMMANDS
from redelivery.broker.servers.amqp.codec.outcomes import AmqpOutcome
from redelivery.broker.servers.amqp.commands import (
    Abort,
    Attach,
    BeginSession,
    Close,
    Command,
    Declare,
    DetachLink,
    Discharge,
    EndSession,
    Flow,
    Open,
    RefusedTransfer,
    Settle,
    Transfer,
)
from redelivery.model.errors import JMSError
from redelivery.transports.amqp.links.dispositions import ACCEPTED, MODIFIED, REJECTED, RELEASED

ERROR = JMSError("no")


def settle(kind: int, *, undeliverable: bool = False, transaction: bytes | None = None) -> Settle:
    return Settle(1, 2, AmqpOutcome(kind, True, transaction, undeliverable=undeliverable))


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (Open(), "CONNECT"),
        (Close(), "DISCONNECT"),
        (Abort(ERROR), None),
        (BeginSession(1), None),
        (EndSession(1), None),
        (Attach(1, receives=True), "SUBSCRIBE"),
        (Attach(1, receives=False), None),
        (DetachLink(1, receives=True, closed=True), "UNSUBSCRIBE"),
        (DetachLink(1, receives=False, closed=True), None),
        (Flow(1), None),
        (Transfer(1, 2, None, False, bytearray(b"m")), "SEND"),
        (RefusedTransfer(1, 2, ERROR, "SEND"), "SEND"),
        (Declare(1, 2), "BEGIN"),
        (Discharge(1, 2, b"t", fail=False), "COMMIT"),
        (Discharge(1, 2, b"t", fail=True), "ABORT"),
        (settle(ACCEPTED), "ACK"),
        (settle(ACCEPTED, transaction=b"t"), "ACK"),
        (settle(REJECTED), "NACK"),
        (settle(MODIFIED, undeliverable=True), "NACK"),
        (settle(MODIFIED), None),
        (settle(RELEASED), None),
    ],
)
def test_the_fault_of_a_step(command: Command, name: str | None) -> None:
    assert command.fault_name == name
    assert name is None or name in COMMANDS


def test_a_step_can_be_printed_without_the_message() -> None:
    command = Transfer(3, 1, b"t", False, bytearray(b"secret"))
    assert repr(command) == "Transfer(link=3, delivery=1, transaction=b't', settled=False)"
    assert repr(Discharge(3, 2, b"t", fail=True)) == "Discharge(link=3, delivery=2, transaction=b't', fail=True)"


def test_a_step_is_a_value() -> None:
    assert Attach(1, receives=True) == Attach(1, receives=True) != Attach(2, receives=True)
    with pytest.raises(FrozenInstanceError):
        Flow(1).link = 2  # type: ignore[misc]  # that is the point


def test_only_outcomes_outside_of_transactions_are_gathered() -> None:
    assert settle(ACCEPTED).gathers
    assert settle(RELEASED).gathers
    assert not settle(REJECTED).gathers
    assert not settle(ACCEPTED, transaction=b"t").gathers
    assert not Flow(1).gathers
