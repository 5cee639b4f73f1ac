"""Writes a connection factory of a client as beans of Spring."""

from __future__ import annotations

from redelivery.model.errors import ConfigError
from redelivery.policies.activemq.redelivery_names import BEAN as POLICY
from redelivery.policies.brokers.clients.url.rules import ClientRules
from redelivery.policies.files.xml_text import Node
from redelivery.policies.kinds import FLAG, changed
from redelivery.policies.prefetch import BEAN as PREFETCH
from redelivery.policies.redelivery import RedeliveryPolicy

_SPRING = "http://www.springframework.org/schema/"
_POLICY = "org.apache.activemq.RedeliveryPolicy"
_MAP = "org.apache.activemq.broker.region.policy.RedeliveryPolicyMap"


def write_spring(rules: ClientRules) -> str:
    """Write the document, whose connection factory is for a broker on this host.

    Raises:
        ConfigError: a pattern cannot be written into XML.
    """
    location = f"{_SPRING}beans {_SPRING}beans/spring-beans.xsd"
    namespaces = {"xmlns": f"{_SPRING}beans", "xmlns:xsi": "http://www.w3.org/2001/XMLSchema-instance"}
    root = Node("beans", {**namespaces, "xsi:schemaLocation": location})
    if rules.returning:
        root.add("bean", attributes=_bean("org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory"))
        return root.document()
    factory = root.add("bean", attributes=_bean("org.apache.activemq.ActiveMQConnectionFactory"))
    _set(factory, "brokerURL", "tcp://localhost:61616")
    if rules.non_blocking is not None:
        _set(factory, "nonBlockingRedelivery", FLAG.spell(rules.non_blocking))
    numbers = {name: getattr(rules.prefetch, field, None) for name, field in PREFETCH.items()}
    if rules.prefetch is not None:
        prefetch = _inside(factory, "prefetchPolicy", "org.apache.activemq.ActiveMQPrefetchPolicy")
        for name, number in numbers.items():
            if number is not None:
                _set(prefetch, name, str(number))
    if not rules.entries:
        _policy(_inside(factory, "redeliveryPolicy", _POLICY), rules.policy)
        return root.document()
    found = _inside(factory, "redeliveryPolicyMap", _MAP)
    _policy(_inside(found, "defaultEntry", _POLICY), rules.policy)
    entries = found.add("property", attributes={"name": "redeliveryPolicyEntries"}).add("list")
    for entry in rules.entries:
        scheme, separator, name = entry.pattern.partition("://")
        if not separator or "," in name:
            raise ConfigError(f"{entry.pattern!r} is not one pattern of queues, or of topics")
        bean = entries.add("bean", attributes={"class": _POLICY})
        _set(bean, scheme, name)
        _policy(bean, entry.policy)
    return root.document()


def _policy(bean: Node, policy: RedeliveryPolicy) -> None:
    for name, text in changed(POLICY, policy, RedeliveryPolicy()).items():
        _set(bean, name, text)


def _bean(kind: str) -> dict[str, str]:
    return {"id": "connectionFactory", "class": kind}


def _inside(bean: Node, name: str, kind: str) -> Node:
    return bean.add("property", attributes={"name": name}).add("bean", attributes={"class": kind})


def _set(bean: Node, name: str, value: str) -> None:
    bean.add("property", attributes={"name": name, "value": value})
