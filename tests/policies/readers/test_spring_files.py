"""Clients as beans of Spring and blueprint: what their factories are set to, in the order in which a container does it.

Each order, and each value, was compared with what Spring 5.3 and ActiveMQ 5.18 make of the same file.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.policies.readers.documents import read, written

import redelivery
from redelivery.operate.convert import convert
from redelivery.operate.simulate import simulate
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.files.places import ConfigFileError

HEAD = """<beans xmlns="http://www.springframework.org/schema/beans" xmlns:p="http://www.springframework.org/schema/p"
  xmlns:c="http://www.springframework.org/schema/c" xmlns:amq="http://activemq.apache.org/schema/core">
"""
FACTORY = 'class="org.apache.activemq.ActiveMQConnectionFactory"'
POLICY = 'class="org.apache.activemq.RedeliveryPolicy"'
MAP = 'class="org.apache.activemq.broker.region.policy.RedeliveryPolicyMap"'
URL = "tcp://h:1?jms.redeliveryPolicy.maximumRedeliveries=9&amp;jms.nonBlockingRedelivery=true"
BEANS = f"""{HEAD}
<bean id="usual" {POLICY} p:maximumRedeliveries="5" p:redeliveryDelay="20"/>
<bean id="factory" {FACTORY}>
  <property name="brokerURL" value="failover:(tcp://a:1,tcp://b:2)?jms.prefetchPolicy.queuePrefetch=5"/>
  <property name="redeliveryPolicyMap"><bean {MAP}>
    <property name="defaultEntry" ref="usual"/>
    <property name="redeliveryPolicyEntries"><list>
      <bean {POLICY}>
        <property name="queue" value="orders.&gt;"/><property name="maximumRedeliveries"><value>2</value></property>
      </bean>
      <amq:redeliveryPolicy topic="news" useExponentialBackOff="yes" backOffMultiplier="2" maximumRedeliveries="3"/>
    </list></property>
  </bean></property>
</bean>
<bean class="org.apache.activemq.pool.PooledConnectionFactory" p:connectionFactory-ref="factory"/>
<bean class="org.springframework.jms.core.JmsTemplate"/>
</beans>"""


def beans(text: str, **options: object) -> BrokerPolicies:
    return read(f"{HEAD}{text}</beans>", "client.xml", **options)


def maximum(found: BrokerPolicies, name: str = "orders") -> int:
    return found.redelivery_policies.policy_for(name).maximum_redeliveries


def test_each_destination_has_its_policy_and_each_setting_its_place() -> None:
    found = read(BEANS, "client.xml")
    assert (found.format, found.broker, found.rules.prefetch) == (
        "spring",
        "client",
        redelivery.PrefetchPolicy(queue=5),
    )
    assert [maximum(found, name) for name in ("orders", "orders.eu", "topic://news", "topic://orders")] == [2, 2, 3, 5]
    said = str(found.explain("orders.eu"))
    assert "3 deliveries over 2 s, then the broker's dead-letter queue" in said
    assert "asked in this order: redeliveryPolicy 'queue://orders.>' (client.xml:10:7)" in said
    assert "maximumRedeliveries = 2, from redeliveryPolicy 'queue://orders.>' (client.xml:11:" in said
    assert "redeliveryDelay = 20, from redeliveryPolicy (client.xml:4:" in str(found.explain("other"))
    assert found.explain("topic://news").delays[2].seconds == 4
    assert [str(each).partition(" (")[0] for each in found.unread] == [
        "bean org.apache.activemq.pool.PooledConnectionFactory",
        "bean org.springframework.jms.core.JmsTemplate",
    ]


@pytest.mark.parametrize(
    ("inside", "number"),
    [
        (f'<property name="brokerURL" value="{URL}"/><property name="redeliveryPolicy" ref="five"/>', 5),
        (f'<property name="redeliveryPolicy" ref="five"/><property name="brokerURL" value="{URL}"/>', 9),
        (f'<constructor-arg value="{URL}"/>', 9),
        (f'<constructor-arg value="u"/><constructor-arg value="p"/><constructor-arg value="{URL}"/>', 9),
        (f'<constructor-arg index="2" value="{URL}"/><constructor-arg index="0" value="u"/>', 9),
        (f'<argument value="{URL}"/>', 9),
        (f'<constructor-arg value="{URL}"/><property name="redeliveryPolicy" ref="five"/>', 5),
        ('<property name="redeliveryPolicy.maximumRedeliveries" value="3"/>', 3),
        ('<property name="redeliveryPolicy" ref="five"/><property name="redeliveryPolicyMap" ref="seven"/>', 7),
        ('<property name="redeliveryPolicyMap" ref="seven"/><property name="redeliveryPolicy" ref="five"/>', 5),
        (f'<property name="redeliveryPolicyMap" ref="seven"/><property name="brokerURL" value="{URL}"/>', 9),
        ('<property name="redeliveryPolicy"><ref bean="five"/></property>', 5),
        ('<property name="redeliveryPolicy"><ref component-id="alias"/></property>', 5),
        (f'<property name="redeliveryPolicy"><bean {POLICY} p:maximumRedeliveries="0x10"/></property>', 16),
        ('<property name="redeliveryPolicy" ref="child"/>', 8),
        ('<property name="redeliveryPolicy"><amq:redeliveryPolicy maximumRedeliveries=" 4 "/></property>', 4),
        ('<property name="redeliveryPolicy"><null/></property>', 6),
        ("", 6),
    ],
)
def test_what_is_set_last_counts(inside: str, number: int) -> None:
    others = f"""<bean id="five" {POLICY} p:maximumRedeliveries="5"/><alias name="five" alias="alias"/>
      <bean id="base" {POLICY} abstract="true" p:maximumRedeliveries="2" p:redeliveryDelay="10"/>
      <bean id="child" parent="base" p:maximumRedeliveries="8"/>
      <bean id="seven" {MAP} p:defaultEntry-ref="seven.policy"/>
      <bean id="seven.policy" {POLICY} p:maximumRedeliveries="7"/>"""
    found = beans(f"{others}<bean id='cf' {FACTORY}>{inside}</bean>")
    assert maximum(found) == number
    if "child" in inside:
        assert found.redelivery_policies.default.redelivery_delay == 0.01


@pytest.mark.parametrize(
    "text",
    [
        f'<bean {FACTORY} p:redeliveryPolicy-ref="rp" p:brokerURL="{URL}"/>',
        f'<amq:connectionFactory redeliveryPolicy="#rp" brokerURL="{URL}"/>',
        f'<amq:connectionFactory brokerURL="{URL}" redeliveryPolicy="#rp"/>',
        f'<amq:connectionFactory brokerURL="{URL}"><amq:redeliveryPolicy>'
        '<amq:redeliveryPolicy maximumRedeliveries="4"/></amq:redeliveryPolicy></amq:connectionFactory>',
        f'<amq:connectionFactory brokerURL="{URL}"><amq:redeliveryPolicy maximumRedeliveries="4"/>'
        "</amq:connectionFactory>",
        f'<amq:connectionFactory brokerURL="{URL}"><property name="redeliveryPolicy" ref="rp"/>'
        "</amq:connectionFactory>",
    ],
)
def test_attributes_are_set_in_the_order_of_their_names(text: str) -> None:
    found = beans(f'<amq:redeliveryPolicy id="rp" maximumRedeliveries="4"/>{text}')
    assert (maximum(found), found.rules.non_blocking) == (4, True)


def test_a_url_with_a_policy_makes_a_new_one_and_one_without_leaves_it() -> None:
    url = "tcp://h:1?jms.redeliveryPolicy.redeliveryDelay=5"
    set_first = f'<property name="redeliveryPolicy"><bean {POLICY} p:maximumRedeliveries="3"/></property>'
    found = beans(f'<bean {FACTORY}>{set_first}<property name="brokerURL" value="{url}"/></bean>')
    assert (maximum(found), found.redelivery_policies.default.redelivery_delay) == (6, 0.005)
    assert maximum(beans(f'<bean {FACTORY}>{set_first}<property name="brokerURL" value="tcp://h:1?a=b"/></bean>')) == 3


def test_blueprint_and_other_prefixes_are_the_same() -> None:
    text = f"""<blueprint xmlns="http://www.osgi.org/xmlns/blueprint/v1.0.0" xmlns:s="x">
      <bean id="rp" {POLICY}><property name="maximumRedeliveries" value="${{n:1}}"/></bean>
      <bean id="cf" {FACTORY}><argument value="tcp://h:1"/><property name="redeliveryPolicy" ref="rp"/></bean>
      <service interface="javax.jms.ConnectionFactory" ref="cf"/></blueprint>"""
    assert maximum(read(text)) == 1
    assert maximum(read(text, properties={"n": "7"})) == 7
    prefixed = f'<b:beans xmlns:b="http://www.springframework.org/schema/beans"><b:bean {FACTORY}><b:property name='
    assert maximum(read(f'{prefixed}"brokerURL" value="{URL}"/></b:bean></b:beans>')) == 9


@pytest.mark.parametrize(
    ("url", "number", "unread"),
    [
        ("${broker.url}", 6, "the options of the URL ${broker.url}"),
        ("${broker.url:tcp://h:1?jms.redeliveryPolicy.maximumRedeliveries=2}", 2, ""),
        ("tcp://${host}:${port}?jms.redeliveryPolicy.maximumRedeliveries=2", 2, ""),
        ("failover:(tcp://${a},tcp://${b})?jms.redeliveryPolicy.maximumRedeliveries=2&amp;timeout=${t}", 2, ""),
        ("tcp://h:1?jms.redeliveryPolicy.maximumRedeliveries=${n:4}", 4, ""),
    ],
)
def test_placeholders_of_a_url_matter_where_its_options_are(url: str, number: int, unread: str) -> None:
    found = beans(f'<bean {FACTORY} p:brokerURL="{url}"/>')
    assert maximum(found) == number
    assert [each.name for each in found.unread] == ([unread] if unread else [])
    if unread:
        properties = {"broker.url": "tcp://h:1?jms.redeliveryPolicy.maximumRedeliveries=3"}
        assert maximum(beans(f'<bean {FACTORY} p:brokerURL="{url}"/>', properties=properties)) == 3


@pytest.mark.parametrize(
    ("inside", "says"),
    [
        ('p:brokerURL="tcp://h?jms.redeliveryPolicy.maximumRedeliveries=${n}"/>', r"placeholder \$\{n\} has no value"),
        ('p:brokerURL="tcp://h?jms.redeliveryPolicy.maximumRetries=1"/>', "unknown option 'maximumRetries'"),
        ('p:redeliveryPolicy-ref="elsewhere"/>', "redeliveryPolicy: the bean 'elsewhere' is not in this file"),
        ('p:redeliveryPolicys-ref="x"/>', "unknown option 'redeliveryPolicys' of a connection factory; did you mean"),
        (
            f'><property name="redeliveryPolicy"><bean {POLICY} p:maxRedeliveries="1"/></property></bean>',
            "did you mean",
        ),
        (f'><property name="redeliveryPolicy"><bean {POLICY} p:redeliveryDelay="1s"/></property></bean>', "='1s' must"),
        (
            f'><property name="redeliveryPolicy"><bean {POLICY} p:redeliveryDelay="${{d}}"/></property></bean>',
            "no value",
        ),
        (
            f'><property name="redeliveryPolicy"><bean {POLICY} p:redeliveryDelay="#{{1+1}}"/></property></bean>',
            "expressions of Spring are not evaluated",
        ),
        (f'><property name="redeliveryPolicy"><bean {MAP}/></property></bean>', "RedeliveryPolicyMap is not one of"),
        ('><property name="redeliveryPolicy"><bean class="my.Policy"/></property></bean>', "a my.Policy is not one of"),
        (
            f'><property name="redeliveryPolicyMap"><bean {MAP}><property name="redeliveryPolicyEntries">'
            f'<bean {POLICY} p:queue="a"/><bean {POLICY} p:queue="a"/></property></bean></property></bean>',
            "'queue://a' occurs twice; leave one out",
        ),
        (
            f'><property name="redeliveryPolicyMap"><bean {MAP}><property name="redeliveryPolicyEntries">'
            f"<list><bean {POLICY}/></list></property></bean></property></bean>",
            "an entry of a redeliveryPolicyMap without queue, topic or destination",
        ),
    ],
)
def test_what_is_not_understood_is_an_error_with_its_place(inside: str, says: str) -> None:
    with pytest.raises(ConfigFileError, match=rf"client\.xml:3:\d+: .*{says}"):
        beans(f"<bean {FACTORY} {inside}")


def test_the_destination_of_an_entry_can_be_a_bean() -> None:
    target = '<bean id="d" class="org.apache.activemq.command.ActiveMQQueue"><constructor-arg value="orders"/></bean>'
    news = '<property name="destination"><amq:topic physicalName="news"/></property>'
    found = beans(
        f'{target}<bean {FACTORY}><property name="redeliveryPolicyMap"><bean {MAP}>'
        f'<property name="redeliveryPolicyEntries"><list>'
        f'<bean {POLICY} p:destination-ref="d" p:maximumRedeliveries="2"/>'
        f'<bean {POLICY} p:maximumRedeliveries="1">{news}</bean></list></property></bean></property></bean>'
    )
    assert [maximum(found, name) for name in ("orders", "topic://news", "news")] == [2, 1, 6]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (f'<bean class="org.apache.activemq.pool.PooledConnectionFactory"><constructor-arg value="{URL}"/></bean>', 9),
        (f'<bean class="org.apache.activemq.jms.pool.PooledConnectionFactory" p:brokerURL="{URL}"/>', 9),
        (f'<bean class="org.apache.activemq.camel.component.ActiveMQComponent" p:brokerURL="{URL}"/>', 9),
        (f'<bean class="org.apache.camel.component.activemq.ActiveMQComponent" p:brokerURL="{URL}"/>', 9),
        (
            f'<bean id="p" class="org.apache.activemq.pool.PooledConnectionFactory"><property name="connectionFactory">'
            f'<bean {FACTORY} p:brokerURL="{URL}"/></property></bean>',
            9,
        ),
        (f'<bean class="org.apache.activemq.ActiveMQXAConnectionFactory" p:brokerURL="{URL}"/>', 9),
        (f'<bean class="org.apache.activemq.spring.ActiveMQConnectionFactory" p:brokerURL="{URL}"/>', 9),
        (f'<bean {MAP}><property name="defaultEntry"><bean {POLICY} p:maximumRedeliveries="2"/></property></bean>', 2),
        (f'<bean {POLICY} p:maximumRedeliveries="3"/>', 3),
    ],
)
def test_a_factory_may_be_in_a_pool_or_a_component_and_a_policy_alone(text: str, number: int) -> None:
    assert maximum(beans(text)) == number


def test_of_factories_that_differ_one_is_named_and_equal_ones_are_one(tmp_path: Path) -> None:
    two = "".join(f'<bean id="{name}" {FACTORY} p:brokerURL="{URL}"/>' for name in ("a", "b"))
    assert maximum(beans(two)) == 9
    third = f'<beans profile="test"><bean id="a" {FACTORY}/></beans>'
    path = written(tmp_path, "client.xml", f"{HEAD}{two}{third}</beans>")
    with pytest.raises(redelivery.ConfigError, match=r"3 connection factories with different rules: a \(3:1\), b \(3:"):
        redelivery.policies.read(path)
    assert maximum(redelivery.policies.read(f"{path}#b")) == 9
    assert maximum(redelivery.policies.read(f"{path}#test/a")) == 6


def test_a_file_with_a_broker_is_the_broker_s_and_one_with_neither_is_refused() -> None:
    broker = '<broker xmlns="http://activemq.apache.org/schema/core"/>'
    text = f"<bean {FACTORY} p:brokerURL='{URL}'/>{broker}"
    assert beans(text).format == "activemq"
    assert maximum(beans(text, format="spring")) == 9
    with pytest.raises(ConfigFileError, match=r"client\.xml:1:1: there is no broker element, no connection factory"):
        beans('<bean class="x.Y"/>')


def test_a_client_of_artemis_returns_what_fails_to_its_broker() -> None:
    found = beans('<bean class="org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory"/>')
    assert found.explain("orders").summary == "1 delivery, then the broker, whose own rules count"
    artemis = read(
        '<core xmlns="urn:activemq:core"><address-settings><address-setting match="#">'
        "<max-delivery-attempts>4</max-delivery-attempts></address-setting></address-settings></core>"
    )
    assert str(simulate(artemis, "orders", found)) == str(simulate(artemis, "orders"))
    with pytest.raises(redelivery.ConfigError, match="no redelivery of its own that could be converted"):
        convert(found, "python")


def test_broker_and_client_are_compared_by_their_two_files() -> None:
    broker = read('<broker xmlns="http://activemq.apache.org/schema/core"/>')
    found = simulate(broker, "orders.eu", read(BEANS))
    assert (found.total, found.ends, found.wins) == (3, "ActiveMQ.DLQ", "client")
    assert simulate(broker, "other", read(BEANS)).total == 6


def test_it_becomes_python_whole() -> None:
    made = convert(read(BEANS), "python")
    assert made.lost == ()
    namespace: dict[str, object] = {}
    exec(made.text, namespace)  # noqa: S102  # our own text
    policies = namespace["redelivery_policies"]
    assert isinstance(policies, redelivery.RedeliveryPolicyMap)
    assert policies.policy_for("orders.eu") == read(BEANS).redelivery_policies.policy_for("orders.eu")
    assert namespace["prefetch"] == redelivery.PrefetchPolicy(queue=5)
    assert (
        "a URL has one policy for all destinations: that of queue://orders.> is lost"
        in convert(read(BEANS), "uri").lost
    )
