"""Reads the operator's resources: the broker's address settings, its properties, and the addresses beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from redelivery.model.suggestions import unknown_option
from redelivery.policies.brokers.artemis.bound import BoundQueue, Routing
from redelivery.policies.brokers.artemis.names import CAMEL_NAMES, CONCERNS
from redelivery.policies.brokers.artemis.properties import apply_properties
from redelivery.policies.brokers.artemis.rules import AddressEntry, ArtemisRules
from redelivery.policies.brokers.artemis.wildcards import Wildcards
from redelivery.policies.brokers.kubernetes import image
from redelivery.policies.brokers.kubernetes.documents import Resource, find, word
from redelivery.policies.brokers.kubernetes.entries import entry_of, shown_value
from redelivery.policies.brokers.kubernetes.names import INT_MAX, INT_MIN, RULES, VERSIONS, type_of
from redelivery.policies.brokers.kubernetes.properties import Layer, property_files
from redelivery.policies.files.json_tree import Json, listed
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.files.yaml_tree import TEMPLATE, is_template

_READ: Final = frozenset({"addressSettings", "brokerProperties", "deploymentPlan", "restricted"})
_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "string": str,
}
_ROUTINGS: Final[dict[str, Routing]] = {"anycast": "anycast", "multicast": "multicast"}


def read_kubernetes(root: Json, report: ReadingReport) -> ArtemisRules:
    """Read the rules of the broker of a file: the image's own, merged with its resource's, and then its properties."""
    found = find(root, report)
    rules = ArtemisRules(entries=image.ENTRIES, queues=image.QUEUES)
    if found.broker is not None:
        rules = of_broker(found.broker, found.secrets, report)
    elif not report.problems:
        why = "its address settings are taken to be those of the image"
        report.skip("the broker of these addresses is not in this file", root.place, why)
    made = (queue for each in found.addresses for queue in _queue(each, report))
    queues = {(each.address, each.routing, each.name): each for each in (*rules.queues, *made)}
    return replace(rules, queues=tuple(queues[key] for key in sorted(queues)))


def of_broker(broker: Resource, secrets: tuple[Resource, ...], report: ReadingReport) -> ArtemisRules:
    """Read the rules of one broker, with the secrets that may be mounted into it."""
    spec, restricted = broker.spec, broker.spec.get("restricted")
    if broker.version not in VERSIONS:
        what = unknown_option(broker.version, VERSIONS, of=f"the versions of {broker.group}")
        report.problem(what, broker.document.place)
    given = ((name, value.place) for name, value in spec.items())
    report.sections(given, _READ, concerns=CONCERNS, of=f"the spec of {broker.kind}")
    layers = list(property_files(broker, secrets, report))
    entries, rule = _settings(broker, _wildcards(layers), report)
    rules = ArtemisRules(entries=image.merged(entries, rule), queues=image.QUEUES)
    if restricted is not None and restricted.value is True:
        rules = ArtemisRules()  # there is no broker.xml
        if entries:
            report.problem("a restricted broker has no addressSettings: write brokerProperties", restricted.place)
    for each in layers:
        rules = apply_properties(rules, each, report)
    return rules


def _wildcards(layers: Iterable[Layer]) -> Wildcards:
    """Return the wildcards that the properties give."""
    rules = ArtemisRules()
    for each in layers:
        rules = apply_properties(rules, each, ReadingReport())
    return rules.wildcards


def _settings(broker: Resource, wildcards: Wildcards, report: ReadingReport) -> tuple[tuple[AddressEntry, ...], str]:
    section, names = broker.spec.get("addressSettings"), VERSIONS.get(broker.version, CAMEL_NAMES)
    if section is None:
        return (), RULES[0]
    if not isinstance(section.value, dict):
        report.problem("addressSettings is not an object with applyRule and addressSetting", section.place)
    if not names:
        report.problem(f"{broker.version} has no addressSettings: Kubernetes drops them", section.place)
    for name, value in section.items():
        if name not in ("applyRule", "addressSetting"):
            report.problem(unknown_option(name, ("applyRule", "addressSetting"), of="addressSettings"), value.place)
    entries = [
        entry_of(
            each.get("match"),
            each,
            report,
            wildcards=wildcards,
            names=names,
            checked=partial(_wrong_type, broker.version),
            unknown=partial(_dropped, broker.version),
        )
        for each in listed(section.get("addressSetting"), "addressSetting", report.problem)
    ]
    rule = section.get("applyRule")
    if rule is not None and rule.value not in RULES:
        what = f"applyRule={shown_value(rule)}: use one of {', '.join(RULES)}, else none of these settings counts"
        report.problem(what, rule.place)
    chosen_rule = RULES[0] if rule is None or rule.value not in RULES else rule.value
    return tuple(each for each in entries if each is not None), chosen_rule


def _dropped(version: str, name: str) -> str | None:
    if name not in CAMEL_NAMES or name in VERSIONS.get(version, CAMEL_NAMES):
        return None
    return f"{version} has no {name}, and Kubernetes drops it: write it as one of the brokerProperties"


def _wrong_type(version: str, name: str, value: Json) -> str | None:
    """Say what Kubernetes says of a value: nothing is converted."""
    kind = type_of(name, version)
    is_right = isinstance(value.value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value.value, bool))
    if value.value is None or (is_right and (kind != "integer" or INT_MIN <= value.value <= INT_MAX)):
        return None
    return f"{name}={shown_value(value)}: Kubernetes takes {kind}s only" + (" of 32 bits" if is_right else "")


def _queue(address: Resource, report: ReadingReport) -> Iterator[BoundQueue]:
    """Return the queue that an address has, if it has one."""
    spec = address.spec
    name, queue, own = word(spec, "addressName"), word(spec, "queueName"), spec.get("queueConfiguration")
    for text in (name, queue):
        if is_template(text):
            report.problem(TEMPLATE, address.document.place)
            return
    if not name:
        report.problem("an address without addressName", address.document.place)
        return
    if not queue:
        return
    routing = word(own, "routingType") if own is not None else word(spec, "routingType")
    kind = _ROUTINGS.get(routing.lower() or "multicast")
    if kind is None:
        report.problem(f"routingType={routing!r}: use anycast or multicast", address.document.place)
    else:
        filter = word(own, "filterString") if own is not None else ""
        yield BoundQueue(name, queue, kind, filter or None, address.document.place)
