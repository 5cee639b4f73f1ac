"""Our reading of JMS against that of real brokers: where they differ, the rule is known (docs/selectors.md).

The long form has 2,000 selectors for each broker, the short one fewer, and the example of each departure in both.
"""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.run import forms
from tests.selectors.comparing import Comparison, compare
from tests.selectors.departures import DEPARTURES, STOMP

import redelivery
from redelivery import JMSError
from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.real import RealBroker

COUNT = 60 if forms.brief() else 2_000


def check(found: Comparison) -> None:
    assert found.new == []
    assert found.sure > found.verdicts / 3, "much of what is compared is not excused"
    assert found.not_shown == set(), "it departs from JMS no more: take it out of the table, and write the page anew"


@pytest.mark.timeout(400)
def test_classic(activemq: RealBroker) -> None:
    check(compare("activemq", activemq.amqp_url, COUNT))


def test_on_classic_an_error_in_a_subscriber_s_selector_fails_what_others_send(activemq: RealBroker) -> None:
    topic = f"topic://selectors.{uuid4().hex}"
    with redelivery.connect(activemq.amqp_url) as connection, connection.session() as session:
        consumer = session.consumer(topic, selector="word - 1 = 2 OR word = 'red'")
        producer = session.producer(topic)
        with pytest.raises(JMSError, match="Cannot call minus operation"):
            producer.send("m", properties={"word": "red"})
        producer.send("m", properties={"word": 3})
        assert consumer.receive(timeout=10) is not None


@pytest.mark.timeout(400)
def test_classic_by_stomp(activemq: RealBroker) -> None:
    check(compare(STOMP, activemq.stomp_url, COUNT))


@pytest.mark.timeout(400)
def test_artemis(artemis: RealBroker) -> None:
    check(compare("artemis", artemis.amqp_url, COUNT))


@pytest.mark.timeout(400)
def test_broker_j(qpid: RealBroker) -> None:
    check(compare("qpid", qpid.amqp_url, COUNT))


@pytest.mark.parametrize("protocol", ["vm", "amqp", "stomp"])
def test_the_embedded_broker_departs_nowhere(protocol: str) -> None:
    with EmbeddedBroker(f"judged-{protocol}", amqp_port=0, stomp_port=0) as broker:
        found = compare("embedded", getattr(broker, f"{protocol}_url"), COUNT)
    assert (found.new, found.departed) == ([], 0)
    assert found.selectors == COUNT


def test_each_departure_has_a_rule_of_its_own() -> None:
    assert len({each.rule for each in DEPARTURES}) == len(DEPARTURES)
