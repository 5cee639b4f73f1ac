"""Values of Helm charts for Artemis: a list of address settings, a map of them by match, or the operator's own object.

Charts that make a ``broker.xml`` (such as that of Device Insight) render each name in kebab case with its value, and
nothing else; of what has the operator's shape (``applyRule``, ``addressSetting``, ``brokerProperties``) they make its
resource.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.artemis.bound import BoundQueue, Routing, in_order
from redelivery.policies.brokers.artemis.names import CAMEL_NAMES, CONCERNS, NAMES, written
from redelivery.policies.brokers.artemis.rules import ArtemisRules
from redelivery.policies.brokers.artemis.wildcards import DEFAULT_WILDCARDS
from redelivery.policies.brokers.kubernetes.documents import Resource, word
from redelivery.policies.brokers.kubernetes.entries import entry_of
from redelivery.policies.brokers.kubernetes.reader import of_broker
from redelivery.policies.files.json_tree import Json
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.files.yaml_text import quoted
from redelivery.policies.kinds import FLAG, Kind, Names, whole

_SETTINGS: Final = "addressSettings"
_PROPERTIES: Final = "brokerProperties"
_NAMES: Final[Names] = {**NAMES, **CAMEL_NAMES}
_TYPES: Final[Mapping[str, Routing]] = {"queue": "anycast", "topic": "multicast"}
_OF_CORE: Final[Mapping[str, tuple[str, Kind]]] = {
    "maxRedeliveryRecords": ("max_redelivery_records", whole(-1)),
    "persistDeliveryCountBeforeDelivery": ("persist_delivery_count_before_delivery", FLAG),
}
_LARGE: Final = 1_000_000  # from here on Helm may render a number as 1e+06


def is_helm(root: Json, _file: str) -> bool:
    """Say whether a file has address settings, and is none of Kubernetes' own."""
    return next(_found(root), None) is not None


def read_helm(root: Json, report: ReadingReport) -> ArtemisRules:
    """Read the rules of the values; of several brokers in it, those of the path `report.part`."""
    found = list(_found(root))
    values = report.chosen([(name, value, value.place) for name, value in found], "address settings")
    if values is None:
        return ArtemisRules()
    for name, value in values.items():
        if name not in (_SETTINGS, _PROPERTIES, "addresses"):
            report.skip(name, value.place)
    settings = values.get(_SETTINGS) or Json({}, values.place)
    if _is_operators(values):
        spec = Json({name: each for name, each in values.items() if name in (_SETTINGS, _PROPERTIES)}, values.place)
        document = Json({"spec": spec}, values.place)
        return of_broker(Resource("broker.amq.io", "v1beta1", "ActiveMQArtemis", "", "", document), (), report)
    entries = [entry_of(match, given, report, names=_NAMES) for match, given in _entries(settings)]
    core = values.get("core") or Json({}, values.place)
    given = ((name, value.text, value.place) for name, value in core.items())
    return ArtemisRules(
        entries=tuple(each for each in entries if each is not None),
        queues=in_order(_queues(values)),
        **report.settings(_OF_CORE, given, "core", concerns=CONCERNS).fields if core.value else {},
    )


def _found(root: Json) -> Iterator[tuple[str, Json]]:
    """Iterate over the objects that have address settings, each with its path."""
    todo = [("", each) for each in (root if isinstance(root.value, list) else (root,))]
    todo = [(name, each) for name, each in todo if not (word(each, "kind") and word(each, "apiVersion"))]
    while todo:
        path, each = todo.pop(0)
        settings, properties = each.get(_SETTINGS), each.get(_PROPERTIES)
        has_settings = settings is not None and isinstance(settings.value, (dict, list))
        if has_settings or (properties is not None and isinstance(properties.value, list)):
            yield path or "(top)", each
            continue
        inner = ((name, value) for name, value in each.items() if isinstance(value.value, dict))
        todo += [(f"{path}.{name}".strip("."), value) for name, value in inner]


def _is_operators(values: Json) -> bool:
    settings = values.get(_SETTINGS)
    if settings is None or values.get(_PROPERTIES) is not None:
        return True
    return isinstance(settings.value, dict) and not {"applyRule", "addressSetting"}.isdisjoint(settings.value)


def _entries(settings: Json) -> Iterator[tuple[Json | None, Json]]:
    """Iterate over match and settings of each entry."""
    if isinstance(settings.value, dict):
        for name, given in settings.items():
            yield Json(name, given.place), given
        return
    for each in settings:
        inner = each.get("settings")
        yield each.get("match"), inner if inner is not None and isinstance(inner.value, dict) else each


def _queues(values: Json) -> Iterator[BoundQueue]:
    for each in values.get("addresses") or ():
        name, routing = word(each, "name"), _TYPES.get(word(each, "type") or "queue")
        if name and routing is not None:
            queues = [one.value for one in each.get("queues") or () if isinstance(one.value, str)]
            own = [name] if routing == "anycast" else []
            yield from (BoundQueue(name, queue, routing, place=each.place) for queue in queues or own)


def write_helm(rules: ArtemisRules) -> str:
    """Write the values of a chart that makes a ``broker.xml`` of them.

    Raises:
        ConfigError: wildcards, the filter of a queue, an address of two kinds, or a character that such a chart would
            write into XML as it is.
    """
    if rules.wildcards != DEFAULT_WILDCARDS:
        raise ConfigError("the values of a chart have no wildcards of their own")
    lines = ["addressSettings:" if rules.entries else "addressSettings: []"]
    for entry in rules.entries:
        lines += [f"- match: {_plain(entry.match)}", "  settings:" if entry.fields_set else "  settings: {}"]
        lines += [f"    {name}: {_value(text)}" for name, text in written(entry.settings, CAMEL_NAMES).items()]
    if rules.queues:
        lines.append("addresses:")
    for address, queues in groupby(rules.queues, key=lambda each: each.address):
        found = list(queues)
        if len({each.routing for each in found}) > 1 or any(each.filter is not None for each in found):
            raise ConfigError(f"the values of a chart have no filters, and no address of two kinds, as {address!r} is")
        kind = next(name for name, routing in _TYPES.items() if routing == found[0].routing)
        lines += [f"- name: {_plain(address)}", f"  type: {kind}"]
        lines.append(f"  queues: [{', '.join(_plain(each.name) for each in found)}]")
    core = ((name, kind.spell(getattr(rules, of))) for name, (of, kind) in _OF_CORE.items())
    given = [f"  {name}: {text}" for name, text in core if text not in ("None", "false")]
    lines += ["core:", *given] if given else []
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    if set(text) & set('<&"'):
        raise ConfigError(f"{text!r}: a chart writes it into XML as it is")
    return quoted(text)


def _value(text: str) -> str:
    """Spell a value; Helm renders a large number as 1e+06, unless it is a str."""
    if text in ("true", "false") or (text.lstrip("-").isdigit() and text == str(int(text)) and int(text) < _LARGE):
        return text
    return _plain(text)
