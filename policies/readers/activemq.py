"""Reads Classic's ``activemq.xml``: the ``broker`` element, in ``beans``, ``blueprint`` or alone, with any prefix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Final

from redelivery.model.suggestions import did_you_mean, unknown_option
from redelivery.policies.brokers.classic import (
    ClassicRules,
    DeadLetterRules,
    DiscardingPlugin,
    Plugin,
    PolicyEntry,
    RedeliveryEntry,
    RedeliveryPlugin,
)
from redelivery.policies.brokers.classic_names import (
    AUDIT,
    CONCERNS,
    DISCARDING,
    ENTRY,
    INDIVIDUAL,
    PLACES,
    REDELIVERY,
    STRATEGIES,
    STRATEGY,
    Names,
)
from redelivery.policies.brokers.places import Place, Setting
from redelivery.policies.checks import read_flag
from redelivery.policies.dead_letters import (
    DeadLetterStrategy,
    IndividualDeadLetterStrategy,
    SharedDeadLetterStrategy,
)
from redelivery.policies.destinations.map import DestinationMap
from redelivery.policies.readers.expressions import bounded_expression
from redelivery.policies.readers.report import Report
from redelivery.policies.readers.xml import Element
from redelivery.policies.redelivery import RedeliveryPolicy

_SHORTEST: Final = 1.0  # second: RedeliveryPlugin.checkSafeConfig
_PLUGINS: Final = ("redeliveryPlugin", "discardingDLQBrokerPlugin")
_ALL: Final = ">"
_OF_OTHERS: Final = frozenset({"id", "xmlns", "name", "brokerName"})


def read_activemq(root: Element, report: Report) -> ClassicRules:
    """The rules of a document. What is wrong, or skipped, is in the report."""
    broker = root if root.name == "broker" else next((each for each in root.walk() if each.name == "broker"), None)
    if broker is None:
        report.problem("there is no broker element", root.place)
        return ClassicRules()
    if broker is not root:
        for other in root.children:
            if other is not broker:
                report.skip(_title(other), other.place)
    for name in ("destinationPolicy", "plugins"):
        if name in broker.attributes:
            what = f"{name}={broker.attributes[name]!r} names a bean, which is not read: write it into the broker"
            report.problem(what, broker.at(name))
    for section in broker.children:
        if section.name not in ("destinationPolicy", "plugins"):
            _skip_or_refuse(section, report)
    scheduler = broker.attributes.get("schedulerSupport")
    supports = (
        None
        if scheduler is None
        else report.read(read_flag, "schedulerSupport", scheduler, broker.at("schedulerSupport"))
    )
    rules = ClassicRules(
        entries=tuple(_entries(broker, report)),
        default_entry=_default(broker, report),
        plugins=tuple(_plugins(broker, report)),
        scheduler_support=supports,
    )
    if rules.redelivery and supports is not True and "${" not in (scheduler or ""):
        report.problem(
            'the broker does not start with redeliveryPlugin unless it has schedulerSupport="true"',
            rules.redelivery.place,
        )
    return rules


def _title(element: Element) -> str:
    kind = element.attributes.get("class", element.attributes.get("id", ""))
    return f"{element.name} {kind}".strip()


def _skip_or_refuse(element: Element, report: Report) -> None:
    if CONCERNS.search(element.name):
        report.problem(f"{element.name!r} is not known here{did_you_mean(element.name, _PLUGINS)}", element.place)
    else:
        report.skip(_title(element), element.place)


def _maps(broker: Element) -> Iterator[Element]:
    for policy in broker.all("destinationPolicy"):
        yield from policy.all("policyMap")


def _entries(broker: Element, report: Report) -> Iterator[PolicyEntry]:
    seen: dict[str, PolicyEntry] = {}
    for policy_map in _maps(broker):
        for entries in policy_map.all("policyEntries"):
            for element in entries.all("policyEntry"):
                entry = _entry(element, report, _pattern(element, report))
                if entry is not None and _is_new(entry.pattern, seen, report, element.place):
                    seen[entry.pattern] = entry
    yield from seen.values()


def _default(broker: Element, report: Report) -> PolicyEntry | None:
    found = [
        entry for each in _maps(broker) for default in each.all("defaultEntry") for entry in default.all("policyEntry")
    ]
    return _entry(found[-1], report, _ALL) if found else None


def _entry(element: Element, report: Report, pattern: str | None) -> PolicyEntry | None:
    values = _attributes(element, ENTRY, report, skip_others=True)
    strategies = [each for child in element.all("deadLetterStrategy") for each in child.children]
    for child in element.children:
        if child.name != "deadLetterStrategy" and CONCERNS.search(child.name):
            report.problem(
                f"{child.name!r} is not known in a policyEntry; did you mean 'deadLetterStrategy'?", child.place
            )
    rules = _dead_letters(strategies[0], report) if strategies else None
    if pattern is None:
        return None
    if element.attributes.get("prioritizedMessages", "false") != "false":
        report.skip(f"prioritizedMessages of policyEntry {pattern}", element.place)
    return PolicyEntry(pattern, rules, place=element.place, settings=values.settings, **values.fields)


def _pattern(element: Element, report: Report) -> str | None:
    """The key of an entry; None where it is for temporary destinations, or is not a pattern."""
    for name in ("queue", "topic"):
        if name in element.attributes:
            text = report.read(lambda _, value: value, name, element.attributes[name], element.at(name))
            key = None if text is None else f"{name}://{text}"
            return None if key is None or not _is_new(key, {}, report, element.at(name)) else key
    if any(name in element.attributes for name in PLACES):
        report.skip(f"{element.name} of temporary destinations", element.place)
    else:
        report.problem(f"{element.name} without queue or topic", element.place)
    return None


def _is_new(pattern: str, seen: Mapping[str, object], report: Report, place: Place) -> bool:
    if pattern in seen:
        report.problem(f"{pattern!r} occurs twice; leave one out", place)
        return False
    return report.checked(lambda: DestinationMap(dict.fromkeys([*seen, pattern], 1)), place) is not None


def _dead_letters(element: Element, report: Report) -> DeadLetterRules | None:
    element = _from_bean(element, "DeadLetterStrategy")
    kind = STRATEGIES.get(element.name)
    if kind is None:
        report.problem(unknown_option(element.name, STRATEGIES, of="deadLetterStrategy"), element.place)
        return None
    own = _attributes(element, AUDIT, report, skip_others=True)
    shared = STRATEGY if kind is not IndividualDeadLetterStrategy else {**STRATEGY, **INDIVIDUAL}
    values = _attributes(element, shared, report, known=(*AUDIT, "deadLetterQueue"))
    fields = {"process_non_persistent": False, **values.fields}  # as the broker has it
    if kind is SharedDeadLetterStrategy:
        fields |= _queue(element, report)
    strategy: DeadLetterStrategy | None = report.checked(lambda: kind(**fields), element.place)
    if strategy is None:
        return None
    settings = (
        Setting("deadLetterStrategy", element.name, "policyEntry", element.place),
        *values.settings,
        *own.settings,
    )
    return DeadLetterRules(strategy, place=element.place, settings=settings, **own.fields)


def _queue(element: Element, report: Report) -> dict[str, Any]:
    """The ``deadLetterQueue`` of a shared strategy: an attribute, or an element with a queue or topic in it."""
    named = [(each.name, each) for child in element.all("deadLetterQueue") for each in child.all("queue", "topic")]
    if named:
        scheme, target = named[0]
        name = target.attributes.get("physicalName", target.attributes.get("name", ""))
        text = report.read(lambda _, value: value, "physicalName", name, target.at("physicalName"))
        return {} if text is None else {"dead_letter_queue": f"{scheme}://{text}"}
    name = element.attributes.get("deadLetterQueue", "")
    text = report.read(lambda _, value: value, "deadLetterQueue", name, element.at("deadLetterQueue")) if name else None
    return {} if text is None else {"dead_letter_queue": text if "://" in text else f"queue://{text}"}


def _plugins(broker: Element, report: Report) -> Iterator[Plugin]:
    for section in broker.all("plugins"):
        for child in section.children:
            element = _from_bean(child, "Plugin")
            if element.name == "redeliveryPlugin":
                yield _redelivery(element, report)
            elif element.name == "discardingDLQBrokerPlugin":
                plugin = _discarding(element, report)
                if plugin is not None:
                    yield plugin
            else:
                _skip_or_refuse(element, report)


def _redelivery(element: Element, report: Report) -> RedeliveryPlugin:
    values = _attributes(element, REDELIVERY, report, known=("redeliveryPolicyMap",))
    policies = [each for each in element.walk() if each.name == "redeliveryPolicy"]
    defaults = [p for each in element.walk() if each.name == "defaultEntry" for p in each.all("redeliveryPolicy")]
    entries: dict[str, RedeliveryEntry] = {}
    for policy in policies:
        if policy in defaults:
            continue
        pattern = _pattern(policy, report)
        entry = _policy(policy, report, pattern or _ALL)
        if pattern is not None and entry is not None and _is_new(pattern, entries, report, policy.place):
            entries[pattern] = entry
    default = _policy(defaults[-1], report, _ALL) if defaults else None
    return RedeliveryPlugin(
        tuple(entries.values()), default, place=element.place, settings=values.settings, **values.fields
    )


def _policy(element: Element, report: Report, pattern: str) -> RedeliveryEntry | None:
    options: dict[str, str] = {}
    settings = []
    for name, text in element.attributes.items():
        if name in PLACES or name in _OF_OTHERS:
            continue
        value = report.read(_checked_option, name, text, element.at(name))
        if value is not None:
            options[name] = value
            settings.append(Setting(name, value, f"redeliveryPolicy {pattern!r}", element.at(name)))
    policy = report.checked(lambda: RedeliveryPolicy.from_activemq(options), element.place)
    if policy is None:
        return None
    for name, delay in (
        ("initialRedeliveryDelay", policy.initial_redelivery_delay),
        ("redeliveryDelay", policy.redelivery_delay),
    ):
        if delay < _SHORTEST:
            text = f"{name}={round(delay * 1000)}: redeliveryPlugin needs at least 1000, or the broker does not start"
            report.problem(text, element.at(name))
    return RedeliveryEntry(pattern, policy, element.place, tuple(settings))


def _checked_option(name: str, text: str) -> str:
    RedeliveryPolicy.from_activemq({name: text})
    return text


def _discarding(element: Element, report: Report) -> DiscardingPlugin | None:
    values = _attributes(element, DISCARDING, report)
    plugin = DiscardingPlugin(place=element.place, settings=values.settings, **values.fields)
    place = element.at("dropOnly")
    read = [report.read(lambda _, text: bounded_expression(text), "dropOnly", e, place) for e in plugin.drop_only]
    return None if None in read else plugin


@dataclass(frozen=True, slots=True)
class _Values:
    fields: Mapping[str, Any]
    settings: tuple[Setting, ...]


def _attributes(
    element: Element, names: Names, report: Report, *, known: tuple[str, ...] = (), skip_others: bool = False
) -> _Values:
    """The attributes that are in ``names``, read. Others are problems; with ``skip_others`` only some are."""
    fields: dict[str, Any] = {}
    settings = []
    for name, text in element.attributes.items():
        if name in names:
            field, reader = names[name]
            value = report.read(reader, name, text, element.at(name))
            if value is not None or field == "expiration":
                fields[field] = value
                settings.append(Setting(name, text, element.name, element.at(name)))
        elif (name not in _OF_OTHERS and name not in known and not skip_others) or (
            skip_others and element.name == "policyEntry" and CONCERNS.search(name)
        ):
            report.problem(unknown_option(name, names, of=element.name), element.at(name))
    return _Values(MappingProxyType(fields), tuple(settings))


def _from_bean(element: Element, ending: str) -> Element:
    """A Spring ``bean`` of one of ActiveMQ's classes as the element that XBean writes for it; others as they are."""
    name = element.attributes.get("class", "").rpartition(".")[2]
    if element.name != "bean" or not name.endswith(ending):
        return element
    found = {"DiscardingDLQBrokerPlugin": "discardingDLQBrokerPlugin", "DiscardingDeadLetterStrategy": "discarding"}
    properties = {each.attributes.get("name", ""): each.attributes.get("value", each.text) for each in element.children}
    return replace(
        element,
        name=found.get(name, name[:1].lower() + name[1:]),
        attributes=MappingProxyType(properties),
        places={each.attributes.get("name", ""): each.at("value") for each in element.children},
    )
