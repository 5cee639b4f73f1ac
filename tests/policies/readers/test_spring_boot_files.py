"""Spring Boot's properties of a client, in YAML and not: names as it binds them, profiles, and what else decides."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.policies.readers.documents import address_settings, read, written

import redelivery
from redelivery.operate.convert import convert
from redelivery.operate.simulate import simulate
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.files.places import ConfigFileError

YAML = """\
server: {port: 8080}
spring:
  activemq:
    broker-url: ${BROKER:failover:(tcp://a:1,tcp://b:2)?jms.redeliveryPolicy.maximumRedeliveries=2&jms.prefetchPolicy.all=5}
    non-blocking-redelivery: on
  jms.listener.session.acknowledge-mode: client
---
spring:
  config.activate.on-profile: prod
  activemq.brokerUrl: tcp://prod:1?jms.redeliveryPolicy.maximumRedeliveries=9
"""
PROPERTIES = """\
spring.activemq.broker-url=tcp://a:1?jms.redeliveryPolicy.maximumRedeliveries=2
spring.jms.listener.session.transacted=true
#---
spring.config.activate.on-profile=prod | test
spring.activemq.broker_url = tcp://b:1?jms.redeliveryPolicy.maximumRedeliveries=${RETRIES:${N:9}}
"""


def maximum(found: BrokerPolicies) -> int:
    return found.redelivery_policies.default.maximum_redeliveries


@pytest.mark.parametrize(("text", "name"), [(YAML, "application.yml"), (PROPERTIES, "application.properties")])
def test_the_documents_without_a_profile_count_and_those_of_the_one_that_is_named(
    text: str, name: str, tmp_path: Path
) -> None:
    path = written(tmp_path, name, text)
    found = redelivery.policies.read(path)
    assert (found.format, maximum(found)) == ("spring_boot", 2)
    assert maximum(redelivery.policies.read(f"{path}#prod")) == 9
    with pytest.raises(redelivery.ConfigError, match="there is no profile 'dev': prod"):
        redelivery.policies.read(f"{path}#dev")
    unread = [each.name for each in found.unread]
    assert any(each.startswith("the profile prod") for each in unread)
    assert any(each.startswith("spring.jms.listener.session") for each in unread)
    assert all(each.why for each in found.unread if each.name != "server")


def test_each_setting_has_its_place() -> None:
    said = str(read(YAML, "application.yml").explain("orders"))
    assert "3 deliveries over 2 s, then the broker's dead-letter queue" in said
    assert "maximumRedeliveries = 2, from spring.activemq.broker-url (application.yml:4:17)" in said
    assert "nonBlockingRedelivery = true, from spring.activemq.non-blocking-redelivery (application.yml:5:30)" in said
    assert read(YAML, "application.yml").rules.prefetch == redelivery.PrefetchPolicy(5, 5, 5, 5)
    assert maximum(read(PROPERTIES, "application.properties", part="test", properties={"N": "4"})) == 4


@pytest.mark.parametrize("name", ["broker-url", "brokerUrl", "broker_url", "BROKER-URL"])
def test_a_name_is_bound_however_it_is_written(name: str) -> None:
    url = "tcp://h:1?jms.redeliveryPolicy.maximumRedeliveries=4"
    for text in (
        f"spring.activemq.{name}={url}",
        f"spring:\n  activemq:\n    {name}: {url}",
        f"spring.activemq.{name}: {url}",
    ):
        assert maximum(read(text, "application.yml" if ": " in text else "application.properties")) == 4


@pytest.mark.parametrize(
    ("profile", "active"), [("prod", True), ("test,prod", True), ("!prod", False), ("!test", True), ("test", False)]
)
def test_alternatives_of_profiles(profile: str, active: bool) -> None:
    text = (
        f"spring.activemq.user: x\n---\nspring.profiles: '{profile}'\nspring.activemq.broker-url: tcp://h?a=b&{URL}\n"
    )
    others = "---\nspring.config.activate.on-profile: [prod]\n---\nspring.profiles: prod"
    assert maximum(read(text + others, "application.yml", part="prod")) == (4 if active else 6)


URL = "jms.redeliveryPolicy.maximumRedeliveries=4"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("spring.activemq.broker-url=tcp://h?jms.redeliveryPolicy.maxRedeliveries=1", "did you mean"),
        (f"spring.activemq.broker-url=tcp://h?{URL}\nspring.activemq.brokerUrl=x", "2:1: .*stands twice"),
        (
            "spring.activemq.redelivery-policy.maximum-redeliveries=3",
            "write jms.redeliveryPolicy.maximumRedeliveries into",
        ),
        ("spring.activemq.non-blocking-redelivery=maybe", "nonBlockingRedelivery='maybe': use true or false"),
        ("spring.activemq.broker-url=tcp://h?jms.redeliveryPolicy.redeliveryDelay=${D}", r"\$\{D\} has no value"),
        ("spring.activemq.user=x\nspring.artemis.mode=native", "the client that is on the class path counts"),
        ("spring.activemq.user=x\n#---\nspring.config.activate.on-profile=a & b", "'a & b' are not evaluated"),
    ],
)
def test_what_is_not_understood_is_an_error_with_its_place(text: str, says: str) -> None:
    with pytest.raises(ConfigFileError, match=rf"application\.properties:\d+:\d+: .*{says}|{says}"):
        read(text, "application.properties")


def test_a_url_that_is_a_placeholder_is_not_read_and_said() -> None:
    found = read("spring.activemq.broker-url=${ACTIVEMQ_URL}", "application.properties")
    assert [str(each) for each in found.unread] == [
        "the options of the URL ${ACTIVEMQ_URL} (application.properties:1:1)"
    ]


def test_artemis_client_leaves_redelivery_to_its_broker() -> None:
    found = read("spring:\n  artemis: {mode: native, broker-url: 'tcp://h:1'}", "application.yml")
    broker = read(address_settings(**{"#": {"max_delivery_attempts": 4, "dead_letter_address": "D"}}))
    both = simulate(broker, "orders", found)
    assert (both.total, both.ends, both.wins) == (4, "D", "broker")


def test_it_is_refused_where_destinations_differ_and_whole_where_they_do_not() -> None:
    differing = read(address_settings(**{"#": {"max_delivery_attempts": 4}, "orders": {"max_delivery_attempts": 2}}))
    with pytest.raises(
        redelivery.ConfigError, match=r"one redelivery policy .* that of orders is another one: convert it"
    ):
        convert(differing, "spring_boot")
    again = read(convert(read(YAML, "application.yml"), "spring_boot").text, "application.yml")
    assert again.rules == read(YAML, "application.yml").rules
