"""Writes the ``config.xml`` of Qpid's old Java broker, with its virtual hosts inside."""

from __future__ import annotations

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.qpid import QpidLevel, QpidRules
from redelivery.policies.writers.xml_text import Node, is_name

_RESERVED = ("name", "deadLetterQueues", "maximumDeliveryCount")


def write_qpid(rules: QpidRules) -> str:
    """The document.

    Raises:
        ConfigError: a name of a queue or virtual host cannot be the name of an element.
    """
    root = Node("broker")
    _write_level(root, rules.server)
    usual = QpidRules()
    if rules.exchange_suffix != usual.exchange_suffix:
        root.add("deadLetterExchangeSuffix", rules.exchange_suffix)
    if rules.queue_suffix != usual.queue_suffix:
        root.add("deadLetterQueueSuffix", rules.queue_suffix)
    if rules.hosts or rules.default_host:
        hosts = root.add("virtualhosts")
        if rules.default_host:
            hosts.add("default", rules.default_host)
        for host in rules.hosts:
            queues = _named(hosts.add("virtualhost"), host.level.name).add("queues")
            _write_level(queues, host.level)
            for queue in host.queues:
                node = queues.add("queue")
                if queue.maximum_delivery_count is None and queue.dead_letter_queues is None:
                    node.add("name", queue.name)
                else:
                    _write_level(_named(node, queue.name), queue)
    return root.document()


def can_be_named(name: str) -> bool:
    """Whether a queue or virtual host of that name can have settings: they are in an element of its name."""
    return is_name(name) and name not in _RESERVED


def _named(node: Node, name: str) -> Node:
    if not can_be_named(name):
        raise ConfigError(f"{name!r} cannot be the name of an element, as this format needs it")
    node.add("name", name)
    return node.add(name)


def _write_level(node: Node, level: QpidLevel) -> None:
    if level.dead_letter_queues is not None:
        node.add("deadLetterQueues", str(level.dead_letter_queues).lower())
    if level.maximum_delivery_count is not None:
        node.add("maximumDeliveryCount", str(level.maximum_delivery_count))
