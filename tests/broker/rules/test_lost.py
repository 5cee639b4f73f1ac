"""What a broker loses as the one of its file would: a WARNING names destination, message and reason."""

from __future__ import annotations

import json

import pytest
from tests.broker.rules.failing import Bench
from tests.policies.readers.documents import address_settings, read

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.rules.rules import Manner
from redelivery.model.destinations import Topic
from redelivery.policies.brokers.policies import BrokerPolicies


def broker_j(**queue: object) -> BrokerPolicies:
    queues = [{"name": "q", "maximumDeliveryAttempts": 2, **queue}, {"name": "other"}]
    return read(json.dumps({"modelVersion": "9.0", "name": "h", "queues": queues}))


def rabbitmq(*queues: str) -> BrokerPolicies:
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    made = [{"name": "q", "vhost": "/", "arguments": arguments}, *({"name": each, "vhost": "/"} for each in queues)]
    return read(json.dumps({"queues": made}), format="rabbitmq")


def artemis(dead: str | None = None) -> BrokerPolicies:
    given = {} if dead is None else {"dead-letter-address": dead}
    return read(address_settings(**{"#": {"max-delivery-attempts": 1, **given}}))


@pytest.mark.parametrize(
    ("policies", "reason"),
    [
        (broker_j(alternateBinding={"destination": "gone"}), "no queue stands behind gone"),
        (broker_j(), "there is no alternate binding"),
        (rabbitmq(), "no queue stands behind dead"),
        (artemis("NOBODY"), "no queue is bound to NOBODY, where it should go"),
        (artemis(), "no dead-letter-address is set for it"),
    ],
)
def test_a_warning_says_what_was_lost_and_why(
    policies: BrokerPolicies, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(policies)
    bench.send("q", body="7")
    bench.fail("q", manner=Manner.NACKED if policies.format == "rabbitmq" else None)
    assert bench.engine.queues == {}
    assert caplog.messages == [f"queue://q: message ID:7 is lost: {reason}"]


def test_what_a_queue_takes_is_not_lost(caplog: pytest.LogCaptureFixture) -> None:
    for policies, where in ((broker_j(alternateBinding={"destination": "other"}), "other"), (rabbitmq("dead"), "dead")):
        bench = Bench(policies)
        bench.send("q")
        bench.fail("q", manner=Manner.NACKED if policies.format == "rabbitmq" else None)
        assert [each.body for each in bench.letters(where)] == ["m"]
    assert caplog.messages == []


def test_a_queue_that_a_client_of_rabbitmq_has_made_takes_them() -> None:
    bench = Bench(rabbitmq())
    _, box = bench.consumer("dead")
    bench.send("q")
    bench.fail("q", manner=Manner.NACKED)
    assert [each.message.body for each in box] == ["m"]


def test_many_are_counted_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(broker_j(alternateBinding={"destination": "gone"}))
    for number in range(100):
        bench.send("q", body=str(number))
        bench.fail("q")
    bench.pass_time(10_000)
    bench.send("q", body="last")
    bench.fail("q")
    reason = "is lost: no queue stands behind gone"
    assert caplog.messages == [
        f"queue://q: message ID:0 {reason}",
        f"queue://q: message ID:last {reason} (and 99 more since the line before)",
    ]


@pytest.mark.parametrize("policies", [None, artemis("DLQ")])
def test_what_fails_in_a_subscription_that_is_not_durable_is_a_dead_letter_of_artemis_only(
    policies: BrokerPolicies | None, caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(artemis() if policies is None else policies)
    if policies is None:
        bench.engine = Engine(BrokerConfig())
    bench.consumer("DLQ")
    _, box = bench.consumer(Topic("news"))
    bench.send(Topic("news"), body="1")
    bench.engine.poison(bench.taken(box), "it was bad", bench.now)
    assert len(bench.letters("DLQ")) == (policies is not None)
    assert len(bench.letters("ActiveMQ.DLQ")) == 0
    lost = "topic://news: message ID:1 is lost: what fails in a subscription that is not durable is no dead letter"
    assert caplog.messages == ([lost] if policies is None else [])
