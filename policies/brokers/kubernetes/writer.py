"""Writes a broker's resource, for ``kubectl apply``, to which what else it needs must be added."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.artemis.names import written
from redelivery.policies.brokers.artemis.properties import properties_of
from redelivery.policies.brokers.artemis.rules import AddressEntry, ArtemisRules
from redelivery.policies.brokers.kubernetes import image
from redelivery.policies.brokers.kubernetes.names import INT_MAX, SETTINGS, type_of
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.files.yaml_text import quoted

_VERSION = "v1beta1"


def write_kubernetes(rules: ArtemisRules) -> str:
    """Write the resource: its settings instead of the image's, and as properties what its schema does not have.

    Rules without the image's own queues are those of a restricted broker, which has properties only. Raises
    ConfigError: a name cannot be written as a property, or there are no settings to replace the image's with.
    """
    is_restricted = not set(image.QUEUES) <= set(rules.queues)
    if not rules.entries and not is_restricted:
        raise ConfigError("a broker of the operator has the image's address settings, or others: there are none here")
    lines = ["apiVersion: broker.amq.io/v1beta1", "kind: ActiveMQArtemis", "metadata:", "  name: broker", "spec:"]
    properties = rules if is_restricted else _beyond(rules)
    if is_restricted:
        lines.append("  restricted: true")
    else:
        lines += ["  addressSettings:", "    applyRule: replace_all", "    addressSetting:"]
        lines += [line for entry in rules.counting for line in _entry(entry)]
    if more := properties_of(properties):
        lines += ["  brokerProperties:", *(f"  - {quoted(each)}" for each in more)]
    return "\n".join(lines) + "\n"


def _entry(entry: AddressEntry) -> Iterator[str]:
    yield f"    - match: {quoted(entry.match)}"
    for name, text in written(entry.settings, SETTINGS).items():
        if _fits(name, text):
            yield f"      {name}: {quoted(text) if type_of(name, _VERSION) == 'string' else text}"


def _fits(name: str, text: str) -> bool:
    return type_of(name, _VERSION) != "integer" or int(text) <= INT_MAX


def _beyond(rules: ArtemisRules) -> ArtemisRules:
    """Return what the fields of a resource do not hold."""
    entries = []
    for entry in rules.counting:
        held = {SETTINGS[name][0] for name, text in written(entry.settings, SETTINGS).items() if _fits(name, text)}
        values = {name: getattr(entry.settings, name) for name in entry.fields_set - held}
        if values:
            entries.append(AddressEntry(entry.match, AddressSettings(**values)))
    return replace(rules, entries=tuple(entries), queues=tuple(e for e in rules.queues if e not in image.QUEUES))
