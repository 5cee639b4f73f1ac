"""Writes a ``standalone.xml`` of the messaging subsystem only, to be put into a whole one."""

from __future__ import annotations

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.artemis.bound import BoundQueue
from redelivery.policies.brokers.artemis.names import SINCE_ARTEMIS
from redelivery.policies.brokers.artemis.names import written as written_of_all
from redelivery.policies.brokers.artemis.rules import JMS_QUEUE
from redelivery.policies.brokers.wildfly.names import SETTINGS
from redelivery.policies.brokers.wildfly.rules import WildFlyRules
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.files.xml_text import Node


def write_wildfly(rules: WildFlyRules) -> str:
    """Write the document: attributes for Artemis, elements for HornetQ, as WildFly 9 had it last.

    Raises:
        ConfigError: a value cannot be written, or WildFly does not have a setting.
    """
    root = Node("server", {"xmlns": "urn:jboss:domain:19.0"})
    is_artemis = rules.dialect == "artemis"
    version = "messaging-activemq:13.0" if is_artemis else "messaging:3.0"
    subsystem = root.add("profile").add("subsystem", attributes={"xmlns": f"urn:jboss:domain:{version}"})
    server = subsystem.add("server" if is_artemis else "hornetq-server", attributes={"name": rules.server})
    if is_artemis:
        _write_artemis(server, rules)
    else:
        _write_hornetq(server, rules)
    return root.document()


def _written(settings: AddressSettings, match: str) -> dict[str, str]:
    missing = SINCE_ARTEMIS & written_of_all(settings).keys()
    if missing:
        raise ConfigError(f"WildFly has no {', '.join(sorted(missing))} (address-setting {match!r})")
    return written_of_all(settings, SETTINGS)


def _write_artemis(server: Node, rules: WildFlyRules) -> None:
    if rules.persist_delivery_count_before_delivery:
        server.set("persist-delivery-count-before-delivery", "true")
    for queue in rules.queues:
        if not _is_jms(queue):
            named = {"name": queue.name, "address": queue.address, **_condition("filter", queue)}
            server.add("queue", attributes={**named, "routing-type": queue.routing.upper()})
    for entry in rules.entries:
        server.add("address-setting", attributes={"name": entry.match, **_written(entry.settings, entry.match)})
    for queue in rules.queues:
        if _is_jms(queue):
            name = queue.name.removeprefix(JMS_QUEUE)
            given = {"name": name, "entries": f"java:/jms/queue/{name}", **_condition("selector", queue)}
            server.add("jms-queue", attributes=given)
    for topic in rules.topics:
        server.add("jms-topic", attributes={"name": topic, "entries": f"java:/jms/topic/{topic}"})


def _write_hornetq(server: Node, rules: WildFlyRules) -> None:
    if rules.persist_delivery_count_before_delivery:
        server.add("persist-delivery-count-before-delivery", "true")
    core = server.add("core-queues")
    settings = server.add("address-settings")
    destinations = server.add("jms-destinations")
    for entry in rules.entries:
        node = settings.add("address-setting", attributes={"match": entry.match})
        for name, text in _written(entry.settings, entry.match).items():
            node.add(name, text)
    for queue in rules.queues:
        is_jms = _is_jms(queue)
        name = queue.name.removeprefix(JMS_QUEUE) if is_jms else queue.name
        node = (destinations if is_jms else core).add("jms-queue" if is_jms else "queue", attributes={"name": name})
        node.add("entry", attributes={"name": f"java:/jms/queue/{name}"}) if is_jms else node.add(
            "address", queue.address
        )
        if queue.filter is not None:
            node.add("selector" if is_jms else "filter", attributes={"string": queue.filter})
    for topic in rules.topics:
        node = destinations.add("jms-topic", attributes={"name": topic})
        node.add("entry", attributes={"name": f"java:/jms/topic/{topic}"})


def _is_jms(queue: BoundQueue) -> bool:
    return queue.name == queue.address and queue.name.startswith(JMS_QUEUE) and queue.routing == "anycast"


def _condition(name: str, queue: BoundQueue) -> dict[str, str]:
    return {} if queue.filter is None else {name: queue.filter}
