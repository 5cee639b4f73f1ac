"""Reads the messaging of ``standalone*.xml`` and ``domain.xml``: attributes of Artemis, elements of HornetQ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, cast

from redelivery.policies.brokers.artemis.bound import BoundQueue, Routing, in_order
from redelivery.policies.brokers.artemis.decisive import ADDRESS_SETTINGS, skip_decisive
from redelivery.policies.brokers.artemis.names import CONCERNS
from redelivery.policies.brokers.artemis.reader import is_match
from redelivery.policies.brokers.artemis.rules import JMS_QUEUE, AddressEntry
from redelivery.policies.brokers.artemis.wildcards import DEFAULT_WILDCARDS
from redelivery.policies.brokers.wildfly.names import DEPLOYMENT, DOMAIN, FILLED, SETTINGS, SUBSYSTEM, fills
from redelivery.policies.brokers.wildfly.rules import WildFlyRules
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.files.places import Place, problem_at
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.files.xml import Element
from redelivery.policies.kinds import FLAG

_ROOTS: Final = ("server", "domain", "profile", "subsystem", DEPLOYMENT)
_PERSISTS: Final = "persist-delivery-count-before-delivery"
_HORNETQ: Final = "hornetq-server"
_READ: Final = (
    *("address-setting", "address-settings", "queue", "core-queues", "jms-queue", "jms-topic", "jms-destinations"),
    _PERSISTS,
)
# Of elements that have such names, and of which the first two say when the broker looks, not what it does.
_OTHER: Final = frozenset({"message-expiry", "message-expiry-scan-period", "message-expiry-thread-priority"})
_Given = tuple[str, str, Place]


@dataclass(frozen=True, slots=True)
class _Server:
    """One broker of the file; ``name``: with the profile, if there is one: ``full/default``."""

    name: str
    element: Element
    dialect: str
    filled: bool


def is_wildfly(root: Element, _file: str) -> bool:
    """Say whether a document is WildFly's, or that of JBoss; its messaging may be missing all the same."""
    theirs = root.namespace.startswith((DOMAIN, "urn:jboss:messaging"))
    return root.name in _ROOTS and (theirs or any(each.namespace.startswith(DOMAIN) for each in root.children))


def read_wildfly(root: Element, report: ReadingReport) -> WildFlyRules:
    """Read the rules of the one server, or of the one that was chosen; of several that say the same, of the first.

    Raises:
        ConfigFileError: there is none.
    """
    servers = list(_servers(root, ""))
    if not servers:
        raise problem_at(root.place, _missing(root))
    if report.part is None and len(servers) > 1:
        read = [_rules(each, report.another()) for each in servers]
        if all((each.entries, each.queues) == (read[0].entries, read[0].queues) for each in read):
            servers = servers[:1]
    found = report.chosen([(each.name, each, each.element.place) for each in servers], "messaging servers")
    return WildFlyRules() if found is None else _rules(found, report)


def _servers(element: Element, profile: str) -> Iterator[_Server]:
    """Iterate over the brokers of all profiles."""
    known = SUBSYSTEM.fullmatch(element.namespace) if element.name == "subsystem" else None
    if known is None:
        for child in element.children:
            name = child.attributes.get("name", "") if child.name == "profile" else ""
            yield from _servers(child, f"{name}/" if name else profile)
        return
    is_artemis, filled = known["artemis"] is not None, known["artemis"] is None and fills(known["version"])
    found = list(element.all("server" if is_artemis else _HORNETQ))
    if not is_artemis and not found and any(each.name in _READ for each in element.children):
        found = [element]  # as the first schema has it
    for each in found:
        name = each.attributes.get("name", "default")
        yield _Server(f"{profile}{name}", each, "artemis" if is_artemis else "hornetq", filled)


def _missing(root: Element) -> str:
    if root.name == DEPLOYMENT:
        return "queues and topics of a deployment, without settings: pass the standalone*.xml of the server"
    subsystems = [each for each in root.walk() if each.name == "subsystem" and SUBSYSTEM.fullmatch(each.namespace)]
    if subsystems:
        return f"{subsystems[0].namespace} ({subsystems[0].place}) has no server: here WildFly is only a client"
    return (
        "no messaging subsystem (urn:jboss:domain:messaging-activemq:… or urn:jboss:domain:messaging:…): "
        "standalone-full.xml has one, and so has the profile full of domain.xml"
    )


def _rules(server: _Server, report: ReadingReport) -> WildFlyRules:
    sections = ((each.name, each.place) for each in server.element.children)
    report.sections(sections, _READ, concerns=CONCERNS, of=f"the server {server.name!r}", others=_OTHER)
    skip_decisive(server.element, report)
    topics = [*server.element.all("jms-topic"), *_within(server.element, "jms-destinations", "jms-topic")]
    return WildFlyRules(
        dialect=server.dialect,
        entries=tuple(_entries(server, report)),
        queues=in_order(_queues(server.element, report)),
        persist_delivery_count_before_delivery=_persists(server.element, report),
        server=server.element.attributes.get("name", "default"),
        topics=tuple(dict.fromkeys(each.attributes["name"] for each in topics if each.attributes.get("name"))),
        filled=server.filled,
    )


def _within(element: Element, section: str, name: str) -> Iterator[Element]:
    for each in element.all(section):
        yield from each.all(name)


def _entries(server: _Server, report: ReadingReport) -> Iterator[AddressEntry]:
    seen: dict[str, Place] = {}
    for each in (
        *server.element.all("address-setting"),
        *_within(server.element, "address-settings", "address-setting"),
    ):
        key = "match" if "match" in each.attributes else "name"
        match = report.text(each.attributes.get(key, ""), each.at(key))
        if match is None or not is_match(match, report, each.at(key), DEFAULT_WILDCARDS, server.dialect):
            continue
        if match in seen:
            report.problem(
                f"another address-setting {match!r}, first at {seen[match]}: WildFly refuses it", each.at(key)
            )
            continue
        seen[match] = each.place
        names = [name for name in each.attributes if name != key]
        given: list[_Given] = [(name, each.attributes[name], each.at(name)) for name in names]
        given += [(one.name, one.text, one.place) for one in each.children]
        found = report.settings(SETTINGS, given, "an address-setting", concerns=CONCERNS)
        report.skip_decisive(ADDRESS_SETTINGS, given, part=each.place)
        fields: dict[str, Any] = {**found.fields}
        if server.filled:
            usual = AddressSettings()
            fields = {**{name: getattr(usual, name) for name in FILLED}, **fields}
        settings = report.checked(partial(AddressSettings, **fields), each.place)
        if settings is not None:
            yield AddressEntry(match, settings, each.place, found.places)


def _queues(server: Element, report: ReadingReport) -> Iterator[BoundQueue]:
    for each in (*server.all("jms-queue"), *_within(server, "jms-destinations", "jms-queue")):
        name, condition = _text(each, "name", report), _value(each, "selector", report)
        if name:
            yield BoundQueue(JMS_QUEUE + name, JMS_QUEUE + name, "anycast", condition, each.place)
    for each in server.all("queue"):
        name, address = _text(each, "name", report), _value(each, "address", report)
        routing = (_text(each, "routing-type", report) or "MULTICAST").lower()
        if routing not in ("anycast", "multicast"):
            report.problem(f"routing-type={routing!r}: use ANYCAST or MULTICAST", each.at("routing-type"))
        elif name:
            yield BoundQueue(address or name, name, cast(Routing, routing), _value(each, "filter", report), each.place)
    for each in _within(server, "core-queues", "queue"):
        name, address = _text(each, "name", report), _value(each, "address", report)
        if name:
            yield BoundQueue(address or name, name, "anycast", _value(each, "filter", report), each.place)


def _text(element: Element, attribute: str, report: ReadingReport) -> str | None:
    text = element.attributes.get(attribute)
    return None if text is None else report.text(text, element.at(attribute))


def _value(element: Element, name: str, report: ReadingReport) -> str | None:
    """Return the text of an attribute, or of an element in whose ``string`` it can be."""
    child = element.first(name)
    if child is not None:
        return report.text(child.attributes.get("string", child.text), child.place) or None
    return _text(element, name, report) or None


def _persists(server: Element, report: ReadingReport) -> bool:
    child = server.first(_PERSISTS)
    if child is not None:
        return bool(report.read(FLAG.read, _PERSISTS, child.text, child.place))
    text = server.attributes.get(_PERSISTS)
    return text is not None and bool(report.read(FLAG.read, _PERSISTS, text, server.at(_PERSISTS)))
