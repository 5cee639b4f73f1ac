"""Reads Classic's ``activemq.xml``: the ``broker`` element, in ``beans``, ``blueprint`` or alone, with any prefix."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final, TypeVar

from redelivery.model.destinations import read_destination
from redelivery.model.errors import InvalidDestinationError
from redelivery.model.suggestions import did_you_mean, unknown_option
from redelivery.policies.brokers.classic import names
from redelivery.policies.brokers.classic.arrivals import ARRIVALS, read_arrival, read_eviction, read_limit
from redelivery.policies.brokers.classic.decisive import skip_of_broker, skip_of_entry, skip_plugin
from redelivery.policies.brokers.classic.rules import (
    ClassicRules,
    DeadLetterRules,
    DiscardingPlugin,
    Plugin,
    PolicyEntry,
    RedeliveryEntry,
    RedeliveryPlugin,
)
from redelivery.policies.brokers.classic.slow import read_slow
from redelivery.policies.checks import read_flag
from redelivery.policies.dead_letters import DeadLetterStrategy, IndividualDeadLetterStrategy, SharedDeadLetterStrategy
from redelivery.policies.destinations.map import DestinationMap
from redelivery.policies.files.expressions import bounded_expression
from redelivery.policies.files.places import Place, Setting, problem_at
from redelivery.policies.files.report import ANY, Given, ReadingReport
from redelivery.policies.files.xml import Element
from redelivery.policies.kinds import Names
from redelivery.policies.redelivery import RedeliveryPolicy

T = TypeVar("T")

_SHORTEST: Final = 1.0  # second: RedeliveryPlugin.checkSafeConfig
_PLUGINS: Final = ("redeliveryPlugin", "discardingDLQBrokerPlugin")
_SECTIONS: Final = frozenset(
    {"destinationPolicy", "plugins", "transportConnectors", "persistenceAdapter", "managementContext"}
)
_ALL: Final = ">"
_OF_OTHERS: Final = frozenset({"id", "xmlns", "name", "brokerName"})


def is_activemq(root: Element, _file: str) -> bool:
    """Say whether a document is Classic's. Raises ConfigFileError: it only names a file that is Artemis'."""
    server = root.first("server")
    if root.name == "broker" and server is not None and "configuration" in server.attributes:
        what = f"pass the file that it names ({server.attributes['configuration']})"
        raise problem_at(server.at("configuration"), f"this is Artemis' bootstrap.xml: {what}")
    if root.name in ("beans", "blueprint"):
        return any(each.name == "broker" for each in root.walk())
    if root.name != "broker":
        return False
    return "activemq" in root.namespace or not root.children or any(each.name in _SECTIONS for each in root.children)


def read_activemq(root: Element, report: ReadingReport) -> ClassicRules:
    """Read the rules of a document. What is wrong, or skipped, is in the report."""
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
    skip_of_broker(broker, report)
    scheduler, place = broker.attributes.get("schedulerSupport"), broker.at("schedulerSupport")
    supports = None if scheduler is None else report.read(read_flag, "schedulerSupport", scheduler, place)
    maps = [each for policy in broker.all("destinationPolicy") for each in policy.all("policyMap")]
    entries = [entry for each in maps for found in each.all("policyEntries") for entry in found.all("policyEntry")]
    defaults = [entry for each in maps for found in each.all("defaultEntry") for entry in found.all("policyEntry")]
    plugins = [(child, _from_bean(child, "Plugin")) for each in broker.all("plugins") for child in each.children]
    rules = ClassicRules(
        entries=_distinct(entries, report, _entry),
        default_entry=_entry(defaults[-1], report, _ALL) if defaults else None,
        plugins=tuple(_plugins(plugins, report)),
        scheduler_support=supports,
        arrivals=tuple(read_arrival(each, report) for _, each in plugins if each.name in ARRIVALS),
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


def _skip_or_refuse(element: Element, report: ReadingReport) -> None:
    if names.CONCERNS.search(element.name):
        report.problem(f"{element.name!r} is not known here{did_you_mean(element.name, _PLUGINS)}", element.place)
    else:
        report.skip(_title(element), element.place)


def _distinct(
    elements: list[Element], report: ReadingReport, read: Callable[[Element, ReadingReport, str], T | None]
) -> tuple[T, ...]:
    """Read the elements that are for patterns, each pattern once."""
    found: dict[str, T] = {}
    for element in elements:
        pattern = _pattern(element, report)
        entry = read(element, report, pattern or _ALL)
        if pattern is not None and entry is not None and _is_new(pattern, found, report, element.place):
            found[pattern] = entry
    return tuple(found.values())


def _entry(element: Element, report: ReadingReport, pattern: str) -> PolicyEntry:
    given = _attributes(element, names.ENTRY, report, concerns=names.CONCERNS)
    strategies = [each for child in element.all("deadLetterStrategy") for each in child.children]
    for child in element.children:
        if child.name != "deadLetterStrategy" and names.CONCERNS.search(child.name):
            report.problem(
                f"{child.name!r} is not known in a policyEntry; did you mean 'deadLetterStrategy'?", child.place
            )
    rules = _dead_letters(strategies[0], report) if strategies else None
    skip_of_entry(element, report)
    if element.attributes.get("prioritizedMessages", "false") != "false":
        report.skip(f"prioritizedMessages of policyEntry {pattern}", element.place)
    limit, eviction = read_limit(element, report), read_eviction(element, report)
    slow = read_slow(element, report)
    fields = {**given.fields, "pending_limit": limit, "eviction": eviction, "slow_consumers": slow}
    return PolicyEntry(pattern, rules, place=element.place, settings=given.settings, **fields)


def _pattern(element: Element, report: ReadingReport) -> str | None:
    """Return the key of an entry; None where it is for temporary destinations, or is not a pattern."""
    for name in ("queue", "topic"):
        if name in element.attributes:
            text = report.text(element.attributes[name], element.at(name))
            key = None if text is None else f"{name}://{text}"
            return None if key is None or not _is_new(key, {}, report, element.at(name)) else key
    if any(name in element.attributes for name in names.PLACES):
        report.skip(f"{element.name} of temporary destinations", element.place)
    else:
        report.problem(f"{element.name} without queue or topic", element.place)
    return None


def _is_new(pattern: str, seen: Mapping[str, object], report: ReadingReport, place: Place) -> bool:
    if pattern in seen:
        report.problem(f"{pattern!r} occurs twice; leave one out", place)
        return False
    return report.checked(lambda: DestinationMap(dict.fromkeys([*seen, pattern], 1)), place) is not None


def _dead_letters(element: Element, report: ReadingReport) -> DeadLetterRules | None:
    element = _from_bean(element, "DeadLetterStrategy")
    kind = names.STRATEGIES.get(element.name)
    if kind is None:
        report.problem(unknown_option(element.name, names.STRATEGIES, of="deadLetterStrategy"), element.place)
        return None
    own = _attributes(element, names.AUDIT, report, known=element.attributes)
    shared = names.STRATEGY if kind is not IndividualDeadLetterStrategy else {**names.STRATEGY, **names.INDIVIDUAL}
    given = _attributes(element, shared, report, known=(*names.AUDIT, "deadLetterQueue"))
    fields = {"process_non_persistent": False, **given.fields}  # as the broker has it
    if kind is SharedDeadLetterStrategy:
        fields |= _queue(element, report)
    strategy: DeadLetterStrategy | None = report.checked(lambda: kind(**fields), element.place)
    if strategy is None:
        return None
    named = Setting("deadLetterStrategy", element.name, "policyEntry", element.place)
    settings = (named, *given.settings, *own.settings)
    return DeadLetterRules(strategy, place=element.place, settings=settings, **own.fields)


def _queue(element: Element, report: ReadingReport) -> dict[str, Any]:
    """Read the ``deadLetterQueue`` of a shared strategy: an attribute, or an element with a queue or topic in it."""
    named = [(each.name, each) for child in element.all("deadLetterQueue") for each in child.all("queue", "topic")]
    if named:
        scheme, target = named[0]
        name = target.attributes.get("physicalName", target.attributes.get("name", ""))
        text = report.text(name, target.at("physicalName"))
        return _target(None if text is None else f"{scheme}://{text}", target.place, report)
    name = element.attributes.get("deadLetterQueue", "")
    text = report.text(name, element.at("deadLetterQueue")) if name else None
    return _target(text, element.place, report)


def _target(text: str | None, place: Place, report: ReadingReport) -> dict[str, Any]:
    """Return the option of a strategy: a queue or topic, whatever other brokers mean by such a name."""
    if text is None:
        return {}
    try:
        return {"dead_letter_queue": read_destination(text)}
    except InvalidDestinationError as error:
        report.problem(f"deadLetterQueue: {error}", place)
        return {}


def _plugins(elements: list[tuple[Element, Element]], report: ReadingReport) -> Iterator[Plugin]:
    """Read the plug-ins but for the ARRIVALS; each as it stands in the file, and as XBean writes it."""
    for child, element in elements:
        if element.name == "redeliveryPlugin":
            yield _redelivery(element, report)
        elif element.name == "discardingDLQBrokerPlugin":
            yield from _discarding(element, report)
        elif element.name not in ARRIVALS and names.CONCERNS.search(element.name):
            _skip_or_refuse(element, report)
        elif element.name not in ARRIVALS:
            skip_plugin(element, _title(child), report)


def _redelivery(element: Element, report: ReadingReport) -> RedeliveryPlugin:
    given = _attributes(element, names.REDELIVERY, report, known=("redeliveryPolicyMap",))
    defaults = [p for each in element.walk() if each.name == "defaultEntry" for p in each.all("redeliveryPolicy")]
    policies = [each for each in element.walk() if each.name == "redeliveryPolicy" and each not in defaults]
    entries = _distinct(policies, report, _policy)
    default = _policy(defaults[-1], report, _ALL) if defaults else None
    return RedeliveryPlugin(entries, default, place=element.place, settings=given.settings, **given.fields)


def _policy(element: Element, report: ReadingReport, pattern: str) -> RedeliveryEntry | None:
    options: dict[str, str] = {}
    settings = []
    for name, text in element.attributes.items():
        if name in names.PLACES or name in _OF_OTHERS:
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


def _discarding(element: Element, report: ReadingReport) -> Iterator[DiscardingPlugin]:
    given = _attributes(element, names.DISCARDING, report)
    plugin = DiscardingPlugin(place=element.place, settings=given.settings, **given.fields)
    place = element.at("dropOnly")
    read = [report.read(lambda _, text: bounded_expression(text), "dropOnly", e, place) for e in plugin.drop_only]
    if None not in read:
        yield plugin


def _attributes(
    element: Element,
    names: Names,
    report: ReadingReport,
    *,
    concerns: re.Pattern[str] = ANY,
    known: Collection[str] = (),
) -> Given:
    """Read the attributes that are in ``names``; see `ReadingReport.settings` for the others."""
    items = ((name, text, element.at(name)) for name, text in element.attributes.items())
    others = known if concerns is not ANY else {*known, *_OF_OTHERS}
    return report.settings(names, items, element.name, concerns=concerns, known=others)


def _from_bean(element: Element, ending: str) -> Element:
    """Return a Spring ``bean`` of a class of ActiveMQ as the element that XBean writes for it; others as they are."""
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
