"""Artemis' configuration as HornetQ's, and the other way round: setting by setting, as both merge them alike."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from redelivery.policies.brokers.artemis.bound import BoundQueue
from redelivery.policies.brokers.artemis.names import NAMES, SINCE_ARTEMIS, written
from redelivery.policies.brokers.artemis.rules import JMS_QUEUE, JMS_TOPIC, AddressEntry, ArtemisRules
from redelivery.policies.brokers.patterns import Losses
from redelivery.policies.destinations.address_settings import AddressSettings

_ADDRESSES: Final = ("dead_letter_address", "expiry_address")
_ALL: Final = "#"


def hornetq_of(rules: ArtemisRules, losses: Losses, broker: str = "HornetQ") -> ArtemisRules:
    """Make the same of HornetQ, or of WildFly: an address is a queue and a topic, and what it does not have is lost."""
    entries: dict[str, AddressEntry] = {}
    for entry, match in _matches(rules, losses):
        values: dict[str, Any] = {}
        for name, text in sorted(written(entry.settings).items()):
            field, _ = NAMES[name]
            if name in SINCE_ARTEMIS:
                losses.add(f"{match}: {broker} has no {name} (here {text})")
            elif field in _ADDRESSES and not rules.jms_names:
                values[field] = _prefixed(text)
            else:
                values[field] = getattr(entry.settings, field)
        both = (
            [match] if match == _ALL or rules.jms_names else [_prefixed(match, JMS_QUEUE), _prefixed(match, JMS_TOPIC)]
        )
        entries |= {each: AddressEntry(each, AddressSettings(**values)) for each in both}
    if rules.max_redelivery_records is not None:
        losses.add(f"{broker} has no max-redelivery-records (here {rules.max_redelivery_records})")
    queues = [*rules.queues] if rules.jms_names else []
    for queue in rules.queues if not rules.jms_names else ():
        kind = JMS_TOPIC if queue.routing == "multicast" else JMS_QUEUE
        name = _prefixed(queue.name) if queue.name == queue.address and kind == JMS_QUEUE else queue.name
        queues.append(BoundQueue(_prefixed(queue.address, kind), name, "anycast", queue.filter))
    return with_queues(ArtemisRules("hornetq", tuple(entries.values()), tuple(queues), **_of_all(rules)))


def artemis_of(rules: ArtemisRules, losses: Losses) -> ArtemisRules:
    """Make the same of Artemis, whose addresses say nothing about queue or topic."""
    entries: dict[str, AddressEntry] = {}
    both = {match for _, match in _matches(rules, Losses())}
    for entry, match in sorted(_matches(rules, losses), key=lambda each: each[1].startswith(JMS_TOPIC)):
        short, settings = _short(match), _of_artemis(entry.settings)
        of_one_kind = match.startswith((JMS_QUEUE, JMS_TOPIC))
        other = (JMS_TOPIC if match.startswith(JMS_QUEUE) else JMS_QUEUE) + short
        known = entries.get(short)
        if known is None:
            if of_one_kind and other not in both:
                losses.add(f"an address-setting is for queues and topics alike: {match} becomes {short}")
            entries[short] = AddressEntry(short, settings)
        elif match.startswith(JMS_TOPIC):
            if known.settings != settings or known.fields_set != settings.fields_set:
                losses.add(f"{match}: {short} has the settings of the queues of that name")
        else:  # jms.# and #: the longer one counts first
            longer, shorter = (known.settings, settings) if match == _ALL else (settings, known.settings)
            entries[short] = AddressEntry(short, longer.merged_with(shorter))
    queues = [
        BoundQueue(
            _short(each.address),
            _short(each.name),
            "multicast" if each.address.startswith(JMS_TOPIC) else each.routing,
            each.filter,
        )
        for each in rules.queues
    ]
    order = sorted(queues, key=lambda each: each.address)  # as the file groups them
    records = rules.max_redelivery_records
    of_all = {"max_redelivery_records": records, **_of_all(rules)}
    return with_queues(ArtemisRules("artemis", tuple(entries.values()), tuple(order), **of_all))


def with_queues(rules: ArtemisRules) -> ArtemisRules:
    """Add the queues of dead letters, and of what expires, that no broker makes by itself.

    In HornetQ, which makes none at all, also those that a match names.
    """
    names = list(rules.unmade())
    if not rules.makes_queues:
        matches = (each.match for each in rules.entries if each.match.startswith(JMS_QUEUE))
        names += (each for each in matches if {_ALL, "*"}.isdisjoint(each.split(".")))
    there, taken = {each.address for each in rules.queues}, {each.name for each in rules.queues}
    more = [
        BoundQueue(each, f"{each}.queue" if each in taken else each, "anycast")
        for each in dict.fromkeys(names)
        if each not in there
    ]
    order = sorted([*rules.queues, *more], key=lambda each: (each.address, each.routing, each.name))
    return replace(rules, queues=tuple(order))


def _of_all(rules: ArtemisRules) -> dict[str, Any]:
    return {"persist_delivery_count_before_delivery": rules.persist_delivery_count_before_delivery}


def _matches(rules: ArtemisRules, losses: Losses) -> list[tuple[AddressEntry, str]]:
    """List each entry that counts, and its match with the usual wildcards."""
    found = []
    for entry in rules.counting:
        words = rules.wildcards.words(entry.match)
        if any("\0" in word for word in words):
            losses.add(f"address-setting {entry.match!r}: characters of its name are wildcards there")
        else:
            found.append((entry, ".".join(_ALL if word == ">" else word for word in words)))
    return found


def _of_artemis(settings: AddressSettings) -> AddressSettings:
    values: dict[str, Any] = {name: getattr(settings, name) for name in settings.fields_set}
    for name in _ADDRESSES:
        if name in values:
            values[name] = _short(values[name])
    return AddressSettings(**values)


def _prefixed(name: str, prefix: str = JMS_QUEUE) -> str:
    return name if name.startswith((JMS_QUEUE, JMS_TOPIC)) else prefix + name


def _short(name: str) -> str:
    for prefix in (JMS_QUEUE, JMS_TOPIC):
        name = name.removeprefix(prefix)
    return _ALL if name == "jms.#" else name
