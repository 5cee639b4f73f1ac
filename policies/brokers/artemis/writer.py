"""Writes Artemis' ``broker.xml`` and HornetQ's ``hornetq-configuration.xml``, to which other sections must be added."""

from __future__ import annotations

from itertools import groupby

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.artemis.bound import BoundQueue
from redelivery.policies.brokers.artemis.names import SINCE_ARTEMIS, WILDCARDS, written
from redelivery.policies.brokers.artemis.rules import AddressEntry, ArtemisRules
from redelivery.policies.brokers.artemis.wildcards import DEFAULT_WILDCARDS
from redelivery.policies.files.xml_text import Node


def write_artemis(rules: ArtemisRules) -> str:
    """Write the document. Raises ConfigError: a value cannot be written, or HornetQ does not have a setting."""
    is_hornetq = rules.dialect == "hornetq"
    root = Node("configuration", {"xmlns": "urn:hornetq" if is_hornetq else "urn:activemq"})
    core = root if is_hornetq else root.add("core", attributes={"xmlns": "urn:activemq:core"})
    if rules.persist_delivery_count_before_delivery:
        core.add("persist-delivery-count-before-delivery", "true")
    if rules.max_redelivery_records is not None:
        core.add("max-redelivery-records", str(rules.max_redelivery_records))
    if rules.wildcards != DEFAULT_WILDCARDS:
        wildcards = core.add("wildcard-addresses")
        for name, field in WILDCARDS.items():
            wildcards.add(name, getattr(rules.wildcards, field))
    if rules.entries:
        settings = core.add("address-settings")
        for entry in rules.entries:
            _write_entry(settings.add("address-setting", attributes={"match": entry.match}), entry, is_hornetq)
    if rules.queues:
        _write_hornetq_queues(core, rules.queues) if is_hornetq else _write_addresses(core, rules.queues)
    return root.document()


def _write_entry(node: Node, entry: AddressEntry, is_hornetq: bool) -> None:
    for name, text in written(entry.settings).items():
        if is_hornetq and name in SINCE_ARTEMIS:
            raise ConfigError(f"HornetQ has no {name} (address-setting {entry.match!r})")
        node.add(name, text)


def _write_addresses(core: Node, queues: tuple[BoundQueue, ...]) -> None:
    addresses = core.add("addresses")
    for name, of_address in groupby(queues, key=lambda each: each.address):
        address = addresses.add("address", attributes={"name": name})
        for routing, of_routing in groupby(of_address, key=lambda each: each.routing):
            kind = address.add(routing)
            for queue in of_routing:
                _write_filter(kind.add("queue", attributes={"name": queue.name}), queue)


def _write_hornetq_queues(core: Node, queues: tuple[BoundQueue, ...]) -> None:
    section = core.add("queues")
    for queue in queues:
        node = section.add("queue", attributes={"name": queue.name})
        node.add("address", queue.address)
        _write_filter(node, queue)


def _write_filter(node: Node, queue: BoundQueue) -> None:
    if queue.filter is not None:
        node.add("filter", attributes={"string": queue.filter})
