"""What a dead letter's copy carries: its origin, the application's properties, and nothing that a broker would obey."""

from __future__ import annotations

import pytest

from redelivery.model.destinations import Queue, Topic
from redelivery.policies.dead_letter_headers import application_properties, copy_properties, dead_letter_properties


def test_the_origin_of_a_dead_letter() -> None:
    assert dead_letter_properties("Delivery[3] …", Queue("orders"), 0, 3) == {
        "dlqDeliveryFailureCause": "Delivery[3] …",
        "originalDestination": "queue://orders",
        "originalExpiration": "0",
        "dlqDeliveryCount": 3,
    }
    assert dead_letter_properties(
        "c", Topic("news"), 1700000000000, 1, failed_at_ms=1700000000001, persistent=False
    ) == {
        "dlqDeliveryFailureCause": "c",
        "originalDestination": "topic://news",
        "originalExpiration": "1700000000000",
        "dlqDeliveryCount": 1,
        "dlqFailedAt": 1700000000001,
        "originalDeliveryMode": "NON_PERSISTENT",
    }


@pytest.mark.parametrize(
    "name",
    [
        *("receipt", "transaction", "ack", "id", "subscription", "message-id", "redelivered", "content-length"),
        *("destination", "receipt-id", "browser", "destination-type", "transformation"),
        *("_AMQ_DUPL_ID", "_HQ_DUPL_ID", "_AMQ_ORIG_ADDRESS", "_HQ_ORIG_QUEUE", "__AMQ_CID", "_AMQ_LVQ_NAME"),
        *("AMQ_SCHEDULED_DELAY", "AMQ_SCHEDULED_CRON", "_HQ_SCHED_DELIVERY", "x-opt-delivery-time", "scheduledJobId"),
        *("JMSXDeliveryCount", "JMSXUserID", "JMS_AMQP_NATIVE", "redeliveryDelay"),
        *("dlqDeliveryFailureCause", "originalDestination", "originalExpiration", "originalDeliveryMode"),
        *("dlqDeliveryCount", "dlqFailedAt", "dlqPassport"),
    ],
)
def test_a_forged_or_leaked_header_does_not_survive(name: str) -> None:
    assert application_properties({name: "forged", "kept": 1}) == {"kept": 1}


@pytest.mark.parametrize(
    "name",
    ["color", "identity", "Ack", "my_AMQ_DUPL_ID", "x-death", "JMSXGroupID", "breadcrumbId", "amq", "x-optional"],
)
def test_the_applications_own_survive(name: str) -> None:
    assert application_properties({name: True}) == {name: True}


def test_the_stamp_wins_over_what_an_earlier_dead_letter_said() -> None:
    earlier = {"dlqDeliveryFailureCause": "old", "originalDeliveryMode": "NON_PERSISTENT", "color": "red"}
    copied = copy_properties(earlier, dead_letter_properties("new", Queue("q"), 0, 2))
    assert copied == {
        "color": "red",
        "dlqDeliveryFailureCause": "new",
        "originalDestination": "queue://q",
        "originalExpiration": "0",
        "dlqDeliveryCount": 2,
    }
    assert earlier["dlqDeliveryFailureCause"] == "old"
