"""Writes ActiveMQ Classic's ``activemq.xml``, to which transports and a store must be added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from redelivery.model.destinations import Destination, destination
from redelivery.model.errors import ConfigError
from redelivery.policies.activemq.redelivery_names import BEAN
from redelivery.policies.brokers.classic import names
from redelivery.policies.brokers.classic.arrivals import ARRIVALS, write_limits
from redelivery.policies.brokers.classic.rules import (
    ClassicRules,
    DeadLetterRules,
    DiscardingPlugin,
    PolicyEntry,
    RedeliveryEntry,
    RedeliveryPlugin,
)
from redelivery.policies.brokers.classic.slow import write_slow
from redelivery.policies.dead_letters import (
    DEFAULT_DEAD_LETTER_QUEUE,
    DiscardingDeadLetterStrategy,
    SharedDeadLetterStrategy,
)
from redelivery.policies.files.xml_text import Node
from redelivery.policies.kinds import FLAG, changed
from redelivery.policies.redelivery import RedeliveryPolicy

_SPRING: Final = "http://www.springframework.org/schema/beans"
_ACTIVEMQ: Final = "http://activemq.apache.org/schema/core"
_XSI: Final = "http://www.w3.org/2001/XMLSchema-instance"
# Without these the broker does not start; it has both in its jars.
_SCHEMAS: Final = f"{_SPRING} {_SPRING}/spring-beans.xsd {_ACTIVEMQ} {_ACTIVEMQ}/activemq-core.xsd"
_DEFAULT_ENTRY: Final = PolicyEntry(">")
_DEFAULT_RULES: Final = DeadLetterRules()
_DEFAULT_POLICY: Final = RedeliveryPolicy()


def write_activemq(rules: ClassicRules) -> str:
    """Write the document. Raises ConfigError: a value cannot be written."""
    beans = Node("beans", {"xmlns": _SPRING, "xmlns:xsi": _XSI, "xsi:schemaLocation": _SCHEMAS})
    attributes = {"xmlns": _ACTIVEMQ}
    if rules.scheduler_support is not None:
        attributes["schedulerSupport"] = FLAG.spell(rules.scheduler_support)
    broker = beans.add("broker", attributes=attributes)
    if rules.entries or rules.default_entry:
        policy_map = broker.add("destinationPolicy").add("policyMap")
        if rules.entries:
            entries = policy_map.add("policyEntries")
            for entry in rules.entries:
                _write_entry(entries, entry, _places(entry.pattern))
        if rules.default_entry:
            _write_entry(policy_map.add("defaultEntry"), rules.default_entry, {})
    if rules.plugins or rules.arrivals:
        _write_plugins(broker.add("plugins"), rules)
    return beans.document()


def _write_plugins(parent: Node, rules: ClassicRules) -> None:
    for each in rules.arrivals:
        for name, (kind, attributes_of) in ARRIVALS.items():
            if isinstance(each, kind):
                parent.add(name, attributes=changed(attributes_of, each, kind()))
    for plugin in rules.plugins:
        if isinstance(plugin, DiscardingPlugin):
            parent.add("discardingDLQBrokerPlugin", attributes=changed(names.DISCARDING, plugin, DiscardingPlugin()))
        else:
            _write_redelivery(parent, plugin)


def _write_entry(parent: Node, entry: PolicyEntry, places: Mapping[str, str]) -> None:
    node = parent.add("policyEntry", attributes={**places, **changed(names.ENTRY, entry, _DEFAULT_ENTRY)})
    if entry.dead_letters is not None:
        _write_strategy(node.add("deadLetterStrategy"), entry.dead_letters)
    write_limits(node, entry.pending_limit, entry.eviction)
    write_slow(node, entry.slow_consumers)


def _write_strategy(parent: Node, rules: DeadLetterRules) -> None:
    strategy = rules.strategy
    name = next((name for name, kind in names.STRATEGIES.items() if kind is type(strategy)), None)
    some = isinstance(strategy, DiscardingDeadLetterStrategy) and (strategy.drop_only or not strategy.drop_expired)
    if name is None or some or strategy.for_expired is not None:
        raise ConfigError(f"a policyEntry cannot have {strategy!r}")
    own = {**names.STRATEGY, **(names.INDIVIDUAL if name == "individualDeadLetterStrategy" else {})}
    given = changed(own, strategy, names.STRATEGIES[name](process_non_persistent=False))
    node = parent.add(name, attributes=given | changed(names.AUDIT, rules, _DEFAULT_RULES))
    if isinstance(strategy, SharedDeadLetterStrategy) and strategy.dead_letter_queue != DEFAULT_DEAD_LETTER_QUEUE:
        target: Destination = destination(strategy.dead_letter_queue)
        node.add("deadLetterQueue").add(target.scheme, attributes={"physicalName": target.name})


def _write_redelivery(parent: Node, plugin: RedeliveryPlugin) -> None:
    node = parent.add("redeliveryPlugin", attributes=changed(names.REDELIVERY, plugin, RedeliveryPlugin()))
    if not plugin.entries and plugin.default is None:
        return
    policies = node.add("redeliveryPolicyMap").add("redeliveryPolicyMap")
    if plugin.entries:
        entries = policies.add("redeliveryPolicyEntries")
        for entry in plugin.entries:
            _write_policy(entries, entry, _places(entry.pattern))
    if plugin.default is not None:
        _write_policy(policies.add("defaultEntry"), plugin.default, {})


def _write_policy(parent: Node, entry: RedeliveryEntry, places: Mapping[str, str]) -> None:
    parent.add("redeliveryPolicy", attributes={**places, **changed(BEAN, entry.policy, _DEFAULT_POLICY)})


def _places(pattern: str) -> dict[str, str]:
    scheme, separator, name = pattern.partition("://")
    return {scheme: name} if separator else {"queue": pattern}
