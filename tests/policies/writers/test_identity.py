"""What is written and read again is the same, for every format; what a format cannot hold is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.policies.readers.documents import classic, read
from tests.policies.writers.generated import RULES
from tests.run.forms import examples

import redelivery
from redelivery.policies.brokers.artemis.rules import AddressEntry, ArtemisRules
from redelivery.policies.brokers.classic.rules import ClassicRules, DeadLetterRules, PolicyEntry
from redelivery.policies.brokers.formats import FORMATS, read_content, read_url
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.qpid.rules import QpidHost, QpidLevel, QpidRules
from redelivery.policies.brokers.rules import Rules
from redelivery.policies.destinations.address_settings import AddressSettings


def read_again(format: str, text: str) -> BrokerPolicies:
    return read_url(text.strip()) if format == "uri" else read_content(text.encode(), "again")


@pytest.mark.parametrize("format", RULES)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_what_is_written_reads_as_the_same_rules_and_its_format_is_recognised(format: str, data: st.DataObject) -> None:
    rules: Rules = data.draw(RULES[format])
    again = read_again(format, FORMATS[format].write(rules))
    assert again.rules == rules
    if format not in ("qpid", "activemq") or getattr(rules, "hosts", True):
        assert again.format == format


@pytest.mark.parametrize("format", RULES)
@settings(max_examples=examples(8))
@given(data=st.data())
def test_every_rule_can_be_explained_and_given_to_a_client(format: str, data: st.DataObject) -> None:
    policies = BrokerPolicies("x", format, data.draw(RULES[format]))
    for name in (*policies.rules.names()[:3], "orders.new"):
        if "*" not in name and ">" not in name:
            try:
                said = policies.explain(name)
            except redelivery.InvalidDestinationError:
                continue  # a name of theirs that is none of ours
            assert policies.broker in str(said)
    policies.redelivery_policies.policy_for("orders.new")
    assert policies.dead_letter_strategies.strategy_for("orders.new") is not None


@pytest.mark.parametrize("name", ["queue", "queues", "virtualhost"])
def test_a_queue_of_qpid_may_be_called_as_an_element_is_since_one_in_its_own_file_is(name: str) -> None:
    queue = QpidLevel(name, dead_letter_queues=True, maximum_delivery_count=3)
    host = QpidHost(QpidLevel(name, maximum_delivery_count=7), (queue, QpidLevel("a b")))
    rules = QpidRules(hosts=(host,), default_host=name)
    assert read_content(FORMATS["qpid"].write(rules).encode(), "again").rules == rules


def test_a_virtual_host_of_broker_j_that_is_made_elsewhere_is_no_default() -> None:
    rules = read('{"modelVersion": "9.0", "virtualhostnodes": [{"name": "a", "defaultVirtualHostNode": "true"}]}').rules
    assert read_content(FORMATS["broker_j"].write(rules).encode(), "again").rules == rules


def test_what_hornetq_does_not_have_is_refused() -> None:
    moved = AddressSettings(redelivery_collision_avoidance_factor=0.1)
    with pytest.raises(redelivery.ConfigError, match="HornetQ has no redelivery-collision-avoidance-factor"):
        FORMATS["hornetq"].write(ArtemisRules("hornetq", (AddressEntry("x", moved),)))


@pytest.mark.parametrize(
    "strategy",
    [
        redelivery.DiscardingDeadLetterStrategy(drop_expired=False),
        redelivery.DiscardingDeadLetterStrategy(drop_only=("a",)),
        redelivery.SharedDeadLetterStrategy(for_expired=redelivery.DiscardingDeadLetterStrategy()),
    ],
)
def test_a_strategy_that_classic_does_not_have_is_refused(strategy: redelivery.DeadLetterStrategy) -> None:
    with pytest.raises(redelivery.ConfigError, match="a policyEntry cannot have"):
        FORMATS["activemq"].write(ClassicRules((PolicyEntry("queue://a", DeadLetterRules(strategy)),)))


@pytest.mark.parametrize("name", ["a\x00b", "a\nb", " a"])
def test_what_xml_cannot_hold_is_refused(name: str) -> None:
    with pytest.raises(redelivery.ConfigError, match="cannot be written into XML"):
        FORMATS["artemis"].write(ArtemisRules(entries=(AddressEntry(name, AddressSettings()),)))


@pytest.mark.parametrize("name", ["1", "a b", "name"])
def test_a_queue_that_cannot_be_an_element_is_refused(name: str) -> None:
    host = QpidHost(QpidLevel("host"), (QpidLevel(name, maximum_delivery_count=3),))
    with pytest.raises(redelivery.ConfigError, match="cannot be the name of an element"):
        FORMATS["qpid"].write(QpidRules(hosts=(host,)))


def test_the_public_function_writes_what_was_read() -> None:
    text = redelivery.policies.write(classic("<plugins><discardingDLQBrokerPlugin/></plugins>"))
    assert read(text).explain("x").dead_letter is None
    assert "<discardingDLQBrokerPlugin />" in text
