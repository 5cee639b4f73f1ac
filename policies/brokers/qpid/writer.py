"""Writes the ``config.xml`` of Qpid's old Java broker, with its virtual hosts inside."""

from __future__ import annotations

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.qpid.names import LEVEL, SUFFIXES
from redelivery.policies.brokers.qpid.rules import QpidLevel, QpidRules
from redelivery.policies.files.xml_text import Node, is_name
from redelivery.policies.kinds import changed


def write_qpid(rules: QpidRules) -> str:
    """Write the document. Raises ConfigError: a name of a queue or virtual host cannot be the name of an element."""
    root = Node("broker")
    _write_level(root, rules.server)
    for name, suffix in changed(SUFFIXES, rules, QpidRules()).items():
        root.add(name, suffix)
    if rules.hosts or rules.default_host:
        hosts = root.add("virtualhosts")
        if rules.default_host:
            hosts.add("default", rules.default_host)
        for host in rules.hosts:
            queues = _named(hosts.add("virtualhost"), host.name).add("queues")
            _write_level(queues, host.level)
            for queue in host.queues:
                node = queues.add("queue")
                if queue.maximum_delivery_count is None and queue.dead_letter_queues is None:
                    node.add("name", queue.name)
                else:
                    _write_level(_named(node, queue.name), queue)
    return root.document()


def can_be_named(name: str) -> bool:
    """Say whether a queue or virtual host of that name can have settings: they are in an element of its name."""
    return is_name(name) and name != "name" and name not in LEVEL


def _named(node: Node, name: str) -> Node:
    if not can_be_named(name):
        raise ConfigError(f"{name!r} cannot be the name of an element, as this format needs it")
    node.add("name", name)
    return node.add(name)


def _write_level(node: Node, level: QpidLevel) -> None:
    for name, text in changed(LEVEL, level, QpidLevel("")).items():
        node.add(name, text)
