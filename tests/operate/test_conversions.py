"""What each format says of two destinations after its conversion to each other one: numbers, delays, dead letters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pytest
from tests.policies.readers.documents import address_settings, classic, read

import redelivery
from redelivery.model.destinations import Queue
from redelivery.operate.convert import TARGETS, convert
from redelivery.policies.brokers.formats import read_content, read_url
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rabbitmq.rules import RabbitRules
from redelivery.policies.dead_letters import CopyTo, DeadLetterStrategy

ORDERS: Final = "orders"
OTHER: Final = "any.other.destination"
SHARED: Final = "ActiveMQ.DLQ"

HORNETQ = """
<configuration xmlns="urn:hornetq"><address-settings>
  <address-setting match="#">
    <dead-letter-address>jms.queue.DLQ</dead-letter-address>
    <redelivery-delay>1000</redelivery-delay><max-delivery-attempts>3</max-delivery-attempts>
  </address-setting>
  <address-setting match="jms.queue.orders">
    <dead-letter-address>jms.queue.D</dead-letter-address>
    <redelivery-delay>2000</redelivery-delay><redelivery-delay-multiplier>2.0</redelivery-delay-multiplier>
    <max-redelivery-delay>5000</max-redelivery-delay><max-delivery-attempts>5</max-delivery-attempts>
  </address-setting>
</address-settings></configuration>"""
ARTEMIS = address_settings(
    **{
        "#": {"dead_letter_address": "DLQ", "redelivery_delay": 1000, "max_delivery_attempts": 3},
        "orders": {
            "dead_letter_address": "D",
            "redelivery_delay": 2000,
            "redelivery_delay_multiplier": 2.0,
            "max_redelivery_delay": 5000,
            "max_delivery_attempts": 5,
        },
    }
)
PROPERTIES = convert(read(ARTEMIS), "artemis_properties").text
WILDFLY = """
<server xmlns="urn:jboss:domain:19.0"><profile>
<subsystem xmlns="urn:jboss:domain:messaging-activemq:13.0"><server name="default">
  <address-setting name="#" dead-letter-address="jms.queue.DLQ" redelivery-delay="1000" max-delivery-attempts="3"/>
  <address-setting name="jms.queue.orders" dead-letter-address="jms.queue.D" redelivery-delay="2000"
    redelivery-multiplier="2.0" max-redelivery-delay="5000" max-delivery-attempts="5"/>
  <jms-queue name="D" entries="java:/D"/><jms-queue name="DLQ" entries="java:/DLQ"/>
</server></subsystem></profile></server>"""
VALUES = convert(read(ARTEMIS), "helm").text
RESOURCE = convert(read(ARTEMIS), "kubernetes").text
CLASSIC = """
<destinationPolicy><policyMap>
  <policyEntries><policyEntry queue="orders"><deadLetterStrategy>
    <sharedDeadLetterStrategy><deadLetterQueue><queue physicalName="D"/></deadLetterQueue></sharedDeadLetterStrategy>
  </deadLetterStrategy></policyEntry></policyEntries>
  <defaultEntry><policyEntry><deadLetterStrategy>
    <sharedDeadLetterStrategy><deadLetterQueue><queue physicalName="DLQ"/></deadLetterQueue></sharedDeadLetterStrategy>
  </deadLetterStrategy></policyEntry></defaultEntry>
</policyMap></destinationPolicy>
<plugins><redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyMap>
  <redeliveryPolicyEntries><redeliveryPolicy queue="orders" maximumRedeliveries="4" initialRedeliveryDelay="2000"
    redeliveryDelay="2000" useExponentialBackOff="true" backOffMultiplier="2.0" maximumRedeliveryDelay="5000"/>
  </redeliveryPolicyEntries>
  <defaultEntry><redeliveryPolicy maximumRedeliveries="2"/></defaultEntry>
</redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins>"""
QPID = """
<broker><maximumDeliveryCount>3</maximumDeliveryCount><deadLetterQueues>true</deadLetterQueues><virtualhosts>
  <virtualhost><name>h</name><h><queues><queue><name>orders</name><orders>
    <maximumDeliveryCount>5</maximumDeliveryCount>
  </orders></queue></queues></h></virtualhost></virtualhosts></broker>"""
BROKER_J = """
{"modelVersion": "9.0", "name": "h",
 "context": {"queue.maximumDeliveryAttempts": "3", "queue.defaultAlternateBinding": "{\\"destination\\": \\"DLQ\\"}"},
 "queues": [{"name": "orders", "maximumDeliveryAttempts": 5, "alternateBinding": {"destination": "D"}}]}"""
RABBITMQ = """
{"queues": [{"name": "orders", "vhost": "/", "arguments": {"x-queue-type": "quorum", "x-delivery-limit": 4,
   "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "D"}}],
 "policies": [{"name": "all", "pattern": ".*", "vhost": "/",
   "definition": {"dead-letter-exchange": "", "dead-letter-routing-key": "DLQ"}}]}"""
SPRING = """
<beans xmlns="http://www.springframework.org/schema/beans">
<bean class="org.apache.activemq.ActiveMQConnectionFactory"><property name="redeliveryPolicyMap">
<bean class="org.apache.activemq.broker.region.policy.RedeliveryPolicyMap"><property name="redeliveryPolicyEntries">
<bean class="org.apache.activemq.RedeliveryPolicy"><property name="queue" value="orders"/>
<property name="maximumRedeliveries" value="4"/><property name="initialRedeliveryDelay" value="2000"/></bean>
</property></bean></property></bean></beans>"""
URL = "tcp://a:1?jms.redeliveryPolicy.maximumRedeliveries=4&jms.redeliveryPolicy.initialRedeliveryDelay=2000"


BOOT = f"spring:\n  activemq:\n    broker-url: {URL}\n"


class Meant(NamedTuple):
    """``deliveries`` in all, the ``delays`` between them in seconds, and where the ``dead`` letter is."""

    deliveries: int | None
    delays: tuple[float, ...]
    dead: str | None


CLIENTS = ("uri", "spring", "spring_boot")
LATER = (2.0, 4.0, 5.0, 5.0)
SOURCES: dict[str, tuple[BrokerPolicies, Meant, Meant]] = {
    "artemis": (read(ARTEMIS), Meant(5, LATER, "D"), Meant(3, (1.0, 1.0), "DLQ")),
    "artemis_properties": (read(PROPERTIES), Meant(5, LATER, "D"), Meant(3, (1.0, 1.0), "DLQ")),
    "kubernetes": (read(RESOURCE), Meant(5, LATER, "D"), Meant(3, (1.0, 1.0), "DLQ")),
    "hornetq": (read(HORNETQ), Meant(5, LATER, "D"), Meant(3, (1.0, 1.0), "DLQ")),
    "wildfly": (read(WILDFLY), Meant(5, LATER, "D"), Meant(3, (1.0, 1.0), "DLQ")),
    "activemq": (classic(CLASSIC), Meant(5, LATER, "D"), Meant(3, (1.0, 1.0), "DLQ")),
    "qpid": (read(QPID), Meant(5, (0.0,) * 4, "orders_DLQ"), Meant(3, (0.0,) * 2, f"{OTHER}_DLQ")),
    "broker_j": (read(BROKER_J), Meant(5, (0.0,) * 4, "D"), Meant(3, (0.0,) * 2, "DLQ")),
    "rabbitmq": (read(RABBITMQ), Meant(5, (0.0,) * 4, "D"), Meant(7, (1.0,) * 6, "DLQ")),  # a client's own policy
    "uri": (read_url(URL), Meant(5, (2.0, 1.0, 1.0, 1.0), SHARED), Meant(5, (2.0, 1.0, 1.0, 1.0), SHARED)),
    "helm": (read(VALUES), Meant(5, LATER, "D"), Meant(3, (1.0, 1.0), "DLQ")),
    "spring_boot": (read(BOOT), Meant(5, (2.0, 1.0, 1.0, 1.0), SHARED), Meant(5, (2.0, 1.0, 1.0, 1.0), SHARED)),
    "spring": (read(SPRING), Meant(5, (2.0, 1.0, 1.0, 1.0), SHARED), Meant(7, (1.0,) * 6, SHARED)),
}


def as_meant(to: str, source: str, destination: str) -> Meant:
    """What a format can say of what is meant."""
    of_orders, of_others = SOURCES[source][1:]
    meant = of_orders if destination == ORDERS else of_others
    at_once = (0.0,) * ((meant.deliveries or 1) - 1)
    match to:
        case "qpid":
            return Meant(meant.deliveries, at_once, f"{destination}_DLQ")
        case "broker_j" | "rabbitmq":
            return Meant(meant.deliveries, at_once, _one_for_all(source, destination, meant))
        case "activemq":
            return meant._replace(delays=tuple(max(each, 1.0) for each in meant.delays))
        case "artemis" | "artemis_properties" | "kubernetes" | "helm" | "hornetq" | "wildfly":
            first = meant.delays if source not in CLIENTS else (meant.delays[0],) * len(meant.delays)
            return Meant(meant.deliveries, first, _created(source, destination, meant, to))
        case "spring" | "spring_boot":
            return meant._replace(dead="the broker's dead-letter queue")
        case "python" if source == "wildfly":  # a client names the address
            return meant._replace(dead=f"jms.queue.{meant.dead}")
        case "python":
            return meant._replace(dead=f"{destination}_DLQ") if source == "qpid" else meant
        case "uri" if source == "spring":
            return of_others._replace(dead="the broker's dead-letter queue")
        case "uri":
            return of_others._replace(dead="the broker's dead-letter queue")
    return meant


def _one_for_all(source: str, destination: str, meant: Meant) -> str | None:
    return SHARED if source == "qpid" and destination == OTHER else meant.dead


def _created(source: str, destination: str, meant: Meant, to: str) -> str | None:
    """Queues of their own are created by Artemis; in HornetQ they are one, and addresses have their prefix."""
    if to in ("hornetq", "wildfly"):
        return f"jms.queue.{_one_for_all(source, destination, meant)}"
    return f"{SHARED}::{meant.dead}" if source == "qpid" and destination == OTHER else meant.dead


def read_back(text: str, to: str, destination: str) -> Meant:
    if to == "python":
        namespace: dict[str, Any] = {}
        exec(compile(text, "converted", "exec"), namespace)  # noqa: S102  # our own text
        policies, strategies = namespace["redelivery_policies"], namespace["dead_letter_strategies"]
        assert isinstance(policies, redelivery.RedeliveryPolicyMap)
        policy = policies.policy_for(destination)
        delays = tuple(policy.delay(number) for number in range(1, policy.maximum_redeliveries + 1))
        return Meant(
            policy.maximum_redeliveries + 1, delays, copied_to(strategies.strategy_for(destination), destination)
        )
    if to == "json":
        named = json.loads(text)["destinations"]
        said = next(named[each] for each in (destination, f"queue://{destination}", OTHER) if each in named)
        return Meant(said["maximum"], tuple(each["seconds"] for each in said["delays"]), said["dead_letter"])
    found = read_url(text.strip()) if to == "uri" else read_content(text.encode(), "converted", format=to)
    explained = found.explain(destination)
    maximum, delays = explained.maximum, tuple(each.seconds for each in explained.delays)
    if isinstance(found.rules, RabbitRules) and destination not in found.rules.names():  # its kind is not said
        limit = found.rules.levels_for(destination)[0][1].delivery_limit
        maximum, delays = (None, ()) if limit is None else (limit + 1, (0.0,) * limit)
    return Meant(maximum, delays, explained.dead_letter)


def copied_to(strategy: DeadLetterStrategy, destination: str) -> str | None:
    decision = strategy.decide(Queue(destination), persistent=True, expired=False, native_available=False)
    return decision.destination.name if isinstance(decision, CopyTo) else None


@pytest.mark.parametrize("destination", [ORDERS, OTHER])
@pytest.mark.parametrize(
    ("source", "to"), [(source, to) for source in SOURCES for to in TARGETS if to not in ("json", source)]
)
def test_a_conversion_says_the_same_numbers(source: str, to: str, destination: str) -> None:
    if to == "spring_boot" and source not in ("uri", to):
        with pytest.raises(redelivery.ConfigError, match="one redelivery policy for all destinations"):
            convert(SOURCES[source][0], to)
        return
    found = read_back(convert(SOURCES[source][0], to).text, to, destination)
    meant = as_meant(to, source, destination)
    assert found._replace(delays=tuple(round(each, 6) for each in found.delays)) == meant


@pytest.mark.parametrize("source", SOURCES)
def test_the_json_is_the_explanation(source: str) -> None:
    policies, *meant = SOURCES[source]
    text = convert(policies, "json").text
    for destination, each in zip((ORDERS, OTHER), meant, strict=True):
        found, explained = read_back(text, "json", destination), policies.explain(destination)
        assert found == Meant(explained.maximum, tuple(d.seconds for d in explained.delays), explained.dead_letter)
        if explained.counts != "give-ups" and source not in CLIENTS:
            assert (found.deliveries, found.delays) == (each.deliveries, each.delays)


MIXED = """
<destinationPolicy><policyMap>
  <policyEntries><policyEntry queue="orders"><deadLetterStrategy>
    <sharedDeadLetterStrategy processExpired="false"/></deadLetterStrategy></policyEntry></policyEntries>
  <defaultEntry><policyEntry><deadLetterStrategy><individualDeadLetterStrategy queuePrefix="D."/></deadLetterStrategy>
  </policyEntry></defaultEntry></policyMap></destinationPolicy>
<plugins><redeliveryPlugin><redeliveryPolicyMap><redeliveryPolicyMap>
  <redeliveryPolicyEntries><redeliveryPolicy queue="orders" maximumRedeliveries="3"/></redeliveryPolicyEntries>
  <defaultEntry><redeliveryPolicy initialRedeliveryDelay="2000" useExponentialBackOff="true" backOffMultiplier="3.0"
    maximumRedeliveryDelay="7000" useCollisionAvoidance="true"/></defaultEntry>
</redeliveryPolicyMap></redeliveryPolicyMap></redeliveryPlugin></plugins>"""


def test_what_all_others_have_is_not_merged_into_what_has_something_else() -> None:
    """Artemis merges field by field: a default of an entry has to be written."""
    found = read_content(convert(classic(MIXED), "artemis").text.encode(), "converted").explain(ORDERS)
    assert [(each.seconds, each.least, each.most) for each in found.delays] == [(1.0, 1.0, 1.0)] * 3
    assert found.dead_letter == SHARED


SHOP: Final[dict[str, dict[str, object]]] = {
    "#": {"dead_letter_address": "DLQ"},
    "shop.*.new": {"max_delivery_attempts": 4, "redelivery_delay": 3000},
}
PATTERNS: Final = address_settings(**SHOP)


def values(found: BrokerPolicies, destination: str) -> tuple[int | None, Sequence[float]]:
    explained = found.explain(destination)
    return explained.maximum, [each.seconds for each in explained.delays]


@pytest.mark.parametrize("to", ["activemq", "artemis", "hornetq"])
def test_a_pattern_stays_a_pattern(to: str) -> None:
    found = read_content(convert(read(PATTERNS), to).text.encode(), "converted", format=to)
    assert values(found, "shop.a.new") == (4, [3.0, 3.0, 3.0])
    assert values(found, "topic://shop.a.new") == (4, [3.0, 3.0, 3.0])
    for other in ("shop.new", "shop.a.b.new", "shop.a.newer"):
        assert found.explain(other).maximum == 10


def test_a_pattern_becomes_a_regular_expression_of_rabbitmq() -> None:
    found = read_content(convert(read(PATTERNS), "rabbitmq").text.encode(), "converted").rules
    assert isinstance(found, RabbitRules)
    limits = {name: found.levels_for(name)[0][1].delivery_limit for name in ("shop.a.new", "shop.new", "shop.a.newer")}
    assert limits == {"shop.a.new": 3, "shop.new": 9, "shop.a.newer": 9}


def test_a_pattern_becomes_one_of_a_client_s_map() -> None:
    namespace: dict[str, Any] = {}
    exec(convert(read(PATTERNS), "python").text, namespace)  # noqa: S102  # our own text
    policies = namespace["redelivery_policies"]
    assert (policies.policy_for("shop.a.new").maximum_redeliveries, policies.policy_for("shop.a.new").delay(1)) == (
        3,
        3,
    )
    assert policies.policy_for("shop.new").maximum_redeliveries == 9


@pytest.mark.parametrize("cap", ["", "<max-redelivery-delay>700</max-redelivery-delay>"])
@pytest.mark.parametrize("multiplier", [1, 2])
def test_a_client_moves_the_first_delay_as_artemis_does_and_activemq_says_that_it_does_not(
    multiplier: int, cap: str
) -> None:
    source = read(
        f"""<core><address-settings><address-setting match="orders">{cap}
        <redelivery-delay>1000</redelivery-delay>
        <redelivery-delay-multiplier>{multiplier}</redelivery-delay-multiplier>
        <redelivery-collision-avoidance-factor>0.5</redelivery-collision-avoidance-factor>
        </address-setting></address-settings></core>""",
        "broker.xml",
    )
    namespace: dict[str, Any] = {}
    python = convert(source, "python")
    exec(python.text, namespace)  # noqa: S102  # our own text
    policy = namespace["redelivery_policies"].policy_for("orders")
    assert python.lost == ()
    assert policy == source.redelivery_policies.policy_for("orders")
    shortest, *_ = source.explain("orders").delays
    drawn = [policy.delay(1) for _ in range(200)]
    assert shortest.least <= min(drawn) <= max(drawn) <= shortest.most
    assert min(drawn) < shortest.seconds or cap
    activemq = convert(source, "activemq")
    assert "orders: collision avoidance leaves the first delay as it is, and adds up" in activemq.lost
    again = read_content(activemq.text.encode(), "x").redelivery_policies.policy_for("orders")
    assert (again.use_collision_avoidance, again.move_first_delay) == (True, False)
    back = convert(read_content(activemq.text.encode(), "x"), "artemis")
    assert "queue://orders: collision avoidance moves the first delay too, and does not add up" in back.lost


@pytest.mark.parametrize(
    "options",
    [
        "backOffMultiplier=0.5&jms.redeliveryPolicy.useExponentialBackOff=true",
        "maximumRedeliveryDelay=200&jms.redeliveryPolicy.useExponentialBackOff=true",
        "maximumRedeliveryDelay=5000",
        "collisionAvoidancePercent=40",
    ],
)
def test_what_activemq_accepts_and_python_refuses_is_written_so_that_it_runs(options: str) -> None:
    url = f"failover:(tcp://a:1)?jms.redeliveryPolicy.{options}"
    text = convert(read_url(url), "python").text
    made: dict[str, Any] = {}
    exec(text, made)  # noqa: S102  # what a user would run
    mine, theirs = (
        each.policy_for("orders") for each in (made["redelivery_policies"], read_url(url).redelivery_policies)
    )
    assert mine == theirs
    assert [mine.delay(number) for number in range(1, 6)] == [theirs.delay(number) for number in range(1, 6)]
