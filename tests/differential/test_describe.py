"""What is said of a dead letter differs with each thing that is compared."""

from __future__ import annotations

import pytest
from tests.differential.describe import describe_amqp, describe_stomp

HEADERS = {
    "message-id": "ID:1",
    "persistent": "true",
    "priority": "6",
    "expires": "0",
    "colour": "red",
    "_AMQ_ORIG_QUEUE": "q",
    "_AMQ_ORIG_MESSAGE_ID": "17",
    "originalExpiration": "0",
    "dlqDeliveryFailureCause": "Message Expired. Expiration:1700000000000",
    "scheduledJobId": "ID:1",
}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("persistent", "false"),
        ("priority", "4"),
        ("expires", "1700000000000"),
        ("redelivered", "true"),
        ("colour", "blue"),
        ("_AMQ_ORIG_QUEUE", "DLA::q"),
        ("_AMQ_ORIG_MESSAGE_ID", "ID:17"),
        ("originalExpiration", "1700000000000"),
        ("dlqDeliveryFailureCause", "java.lang.Throwable: Message Expired. Expiration:1700000000000"),
        ("_AMQ_ORIG_ADDRESS", "q"),
        ("scheduledJobId", ""),
    ],
)
def test_over_stomp_each_property_is_described(name: str, value: str) -> None:
    assert describe_stomp({**HEADERS, name: value}) != describe_stomp(HEADERS)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("message-id", "ID:2"),
        ("_AMQ_ORIG_MESSAGE_ID", "18"),
        ("scheduledJobId", "ID:2"),
        ("dlqDeliveryFailureCause", "Message Expired. Expiration:1700000000001"),
    ],
)
def test_over_stomp_the_brokers_own_numbers_are_not(name: str, value: str) -> None:
    assert describe_stomp({**HEADERS, name: value}) == describe_stomp(HEADERS)


def test_over_amqp_all_is_described() -> None:
    proton = pytest.importorskip("proton")
    message = proton.Message("b", durable=True, priority=6, id="own", properties={"colour": "red"})
    message.annotations = {proton.symbol("x-opt-ORIG-MESSAGE-ID"): 17, proton.symbol("x-opt-ORIG-QUEUE"): "q"}
    assert describe_amqp(message) == (
        "persistent, does not expire, priority 6, count 0, id own, colour: red, x-opt-ORIG-MESSAGE-ID: a number, "
        "x-opt-ORIG-QUEUE: q"
    )
    message.ttl, message.durable, message.delivery_count = 5, False, 2
    assert describe_amqp(message).startswith("non-persistent, expires, priority 6, count 2, ")
