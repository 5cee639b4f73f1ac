"""What a dead letter says of itself, whichever client made it: as seen on real brokers."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from redelivery.model.content.dead_letters import DeadLetterInfo, read_dead_letter
from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.messages import Message
from redelivery.model.values import from_epoch_ms

OURS = (
    "Delivery[4] exceeds redelivery policy limit:RedeliveryPolicy {destination = null, maximumRedeliveries = 3}, "
    "cause:ValueError: bad order"
)


class Noted:
    """A source with what a broker has noted."""

    def __init__(self, noted: Mapping[str, object], queue: str = "ActiveMQ.DLQ") -> None:
        self._noted, self._queue = noted, queue

    def noted(self) -> Mapping[str, object]:
        return self._noted

    def consumed_from(self) -> Destination:
        return Queue(self._queue)


def test_a_copy_of_ours() -> None:
    properties = {
        "dlqDeliveryFailureCause": OURS,
        "originalDestination": "queue://orders",
        "originalExpiration": "0",
        "dlqDeliveryCount": "4",
        "mine": "x",
    }
    letter = read_dead_letter(properties, None, lambda: Queue("ActiveMQ.DLQ"))
    assert letter == DeadLetterInfo(Queue("orders"), OURS, "ValueError: bad order", 4)
    assert read_dead_letter({**properties, "dlqDeliveryCount": 4}, None, lambda: None) == letter


@pytest.mark.parametrize(
    ("said", "letter"),
    [
        # ActiveMQ's Java client; the second never counted what the broker had delivered
        (
            {
                "dlqDeliveryFailureCause": f"java.lang.Throwable: {OURS.replace('ValueError', 'java.lang.Error')}",
                "originalDestination": "topic://news",
            },
            DeadLetterInfo(
                Topic("news"), OURS.replace("ValueError", "java.lang.Error"), "java.lang.Error: bad order", 4
            ),
        ),
        (
            {"dlqDeliveryFailureCause": "java.lang.Throwable: Dispatch[7] to ID:c:1 exceeds limit:x"},
            DeadLetterInfo(None, "Dispatch[7] to ID:c:1 exceeds limit:x", None, 7),
        ),
        (
            {"dlqDeliveryFailureCause": OURS.replace("ValueError: bad order", "null")},
            DeadLetterInfo(None, OURS.replace("ValueError: bad order", "null"), None, 4),
        ),
        # Classic, by NACK over STOMP, and an expired one
        ({"original-destination": "/queue/orders", "originalExpiration": "0"}, DeadLetterInfo(Queue("orders"))),
        ({"original-destination": "/topic/news"}, DeadLetterInfo(Topic("news"))),
        (
            {
                "dlqDeliveryFailureCause": "java.lang.Throwable: Message Expired. Expiration:1795404982023",
                "original-destination": "/queue/orders",
            },
            DeadLetterInfo(Queue("orders"), "Message Expired. Expiration:1795404982023", expired=True),
        ),
        # Artemis over AMQP, Artemis and HornetQ over STOMP
        (
            {"x-opt-ORIG-ADDRESS": "orders", "x-opt-ORIG-QUEUE": "orders", "x-opt-ORIG-ROUTING-TYPE": 1},
            DeadLetterInfo(Queue("orders")),
        ),
        ({"_AMQ_ORIG_ADDRESS": "news", "_AMQ_ORIG_ROUTING_TYPE": "0"}, DeadLetterInfo(Topic("news"))),
        (
            {"_AMQ_ORIG_ADDRESS": "orders", "_AMQ_ACTUAL_EXPIRY": "1795404982023"},
            DeadLetterInfo(Queue("orders"), at=datetime.fromtimestamp(1795404982.023, UTC), expired=True),
        ),
        ({"_HQ_ORIG_ADDRESS": "jms.queue.orders"}, DeadLetterInfo(Queue("orders"))),
        ({"_HQ_ORIG_ADDRESS": "jms.topic.news"}, DeadLetterInfo(Topic("news"))),
        # RabbitMQ
        (
            {"x-first-death-queue": "orders", "x-first-death-reason": "rejected", "x-first-death-exchange": ""},
            DeadLetterInfo(Queue("orders"), "rejected"),
        ),
        (
            {"x-first-death-queue": "orders", "x-first-death-reason": "expired"},
            DeadLetterInfo(Queue("orders"), "expired", expired=True),
        ),
        (
            {
                "x-first-death-queue": "orders",
                "x-first-death-reason": "expired",
                "x-last-death-queue": "retry",
                "x-last-death-reason": "delivery_limit",
            },
            DeadLetterInfo(Queue("orders"), "delivery_limit"),
        ),
        # what is not to be read leaves the rest
        ({"dlqDeliveryFailureCause": "why", "originalDestination": "ftp://x"}, DeadLetterInfo(None, "why")),
        ({"dlqDeliveryFailureCause": "why", "dlqDeliveryCount": "9" * 40}, DeadLetterInfo(None, "why")),
        ({"dlqDeliveryFailureCause": 5}, DeadLetterInfo(None)),
        *(
            (
                {"dlqDeliveryFailureCause": "why", "dlqFailedAt": at},
                DeadLetterInfo(None, "why", at=from_epoch_ms(1700000000001)),
            )
            for at in (1700000000001, "1700000000001")
        ),
        ({"dlqDeliveryFailureCause": "why", "dlqFailedAt": "soon"}, DeadLetterInfo(None, "why")),
    ],
)
def test_of_others(said: Mapping[str, object], letter: DeadLetterInfo) -> None:
    assert read_dead_letter(said, None, lambda: Queue("ActiveMQ.DLQ")) == letter
    assert read_dead_letter({}, Noted(said), lambda: Queue("ActiveMQ.DLQ")) == letter


def test_classic_over_amqp_is_known_by_the_address_alone() -> None:
    for queue in ("ActiveMQ.DLQ", "DLQ.orders", "my.dlq"):
        assert read_dead_letter({}, Noted({}, queue), lambda: Queue("orders")) == DeadLetterInfo(Queue("orders"))
    for queue in ("orders", "Consumer.A.VirtualTopic.orders"):  # such a one has the topic's address
        assert read_dead_letter({}, Noted({}, queue), lambda: Topic("VirtualTopic.orders")) is None


def test_what_is_no_dead_letter() -> None:
    assert read_dead_letter({"color": "red"}, None, lambda: Queue("orders")) is None
    assert read_dead_letter({}, Noted({}, "ActiveMQ.DLQ"), lambda: Queue("ActiveMQ.DLQ")) is None
    assert Message("x", properties={"originalDestination": "queue://orders"}).dead_letter is None  # not received
