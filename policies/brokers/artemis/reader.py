"""Reads Artemis' ``broker.xml``, and HornetQ's ``hornetq-configuration.xml``, whose elements have the same names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from redelivery.policies.brokers.artemis.bound import BoundQueue, Routing, in_order
from redelivery.policies.brokers.artemis.decisive import ADDRESS_SETTINGS, QUEUES, skip_decisive
from redelivery.policies.brokers.artemis.names import CONCERNS, HORNETQ_NAMES, NAMES, WILDCARDS
from redelivery.policies.brokers.artemis.rules import AddressEntry, ArtemisRules
from redelivery.policies.brokers.artemis.wildcards import DEFAULT_WILDCARDS, Wildcards
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.files.places import Place, problem_at
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.files.xml import Element
from redelivery.policies.kinds import FLAG, Kind, whole

_PERSISTS: Final = "persist-delivery-count-before-delivery"
_RECORDS: Final = "max-redelivery-records"
_READ: Final = (
    *("address-settings", "addresses", _RECORDS, _PERSISTS),
    *("queues", "wildcard-addresses"),
)
_SECTIONS: Final = frozenset({"core", "address-settings", "addresses", "queues"})  # that these files have
_ROUTINGS: Final[tuple[Routing, ...]] = ("anycast", "multicast")
# Of settings that this broker has and that are about something else, though their names do not sound so.
_OTHER: Final = frozenset({"message-expiry-scan-period", "message-expiry-thread-priority", "address-queue-scan-period"})


def is_artemis(root: Element, file: str) -> bool:
    """Say whether a document is Artemis'. Raises ConfigFileError where it is that of nobody."""
    return _dialect_of(root, file) == "artemis"


def is_hornetq(root: Element, file: str) -> bool:
    """Say whether a document is HornetQ's. Raises as `is_artemis`."""
    return _dialect_of(root, file) == "hornetq"


def _dialect_of(root: Element, file: str) -> str | None:
    if root.name not in ("configuration", "core", "address-settings"):
        return None
    spaces = {root.namespace, *(each.namespace for each in root.children)}
    sections = {root.name, *(each.name for each in root.children)} & _SECTIONS
    is_theirs = any(each.startswith(("urn:activemq", "urn:hornetq")) for each in spaces)
    named = "hornetq" in file.lower()
    if not is_theirs and not (spaces == {""} and sections) and not named:
        what = f"<{root.name}> is neither Artemis' nor HornetQ's: its namespace is not urn:activemq or urn:hornetq"
        raise problem_at(root.place, what)
    return "hornetq" if "urn:hornetq" in spaces or ("urn:activemq" not in spaces and named) else "artemis"


def read_artemis(root: Element, report: ReadingReport, dialect: str = "artemis") -> ArtemisRules:
    """Read the rules of a document. What is wrong, or skipped, is in the report."""
    part = False
    if root.name == "address-settings":  # what another file includes
        part, root = True, replace(root, name="core", children=(root,))
    core = root if root.name == "core" else root.first("core") or root
    for section in root.children:
        if section is not core and core is not root:
            report.skip(section.name, section.place)
    sections = ((each.name, each.place) for each in core.children)
    report.sections(sections, _READ, concerns=CONCERNS, of="the core", others=_OTHER)
    skip_decisive(core, report)
    wildcards = _wildcards(core, report)
    return ArtemisRules(
        dialect=dialect,
        entries=tuple(_entries(core, report, dialect, wildcards)),
        queues=in_order(_queues(core, report)),
        wildcards=wildcards,
        lists_queues=not part,
        persist_delivery_count_before_delivery=bool(_of_core(core, _PERSISTS, FLAG, report)),
        max_redelivery_records=_of_core(core, _RECORDS, whole(-1), report),
    )


def read_hornetq(root: Element, report: ReadingReport) -> ArtemisRules:
    """Read HornetQ's rules."""
    return read_artemis(root, report, "hornetq")


def _entries(core: Element, report: ReadingReport, dialect: str, wildcards: Wildcards) -> Iterator[AddressEntry]:
    names = HORNETQ_NAMES if dialect == "hornetq" else NAMES
    for section in core.all("address-settings"):
        for child in section.children:
            if child.name != "address-setting":
                report.problem(f"{child.name!r} is not an address-setting", child.place)
                continue
            match = child.attributes.get("match", "")
            if not is_match(match, report, child.at("match"), wildcards, dialect):
                continue
            elements = ((each.name, each.text, each.place) for each in child.children)
            given = report.settings(names, elements, "an address-setting", concerns=CONCERNS)
            elements = ((each.name, each.text, each.place) for each in child.children)
            report.skip_decisive(ADDRESS_SETTINGS, elements, part=child.place)
            settings = report.checked(partial(AddressSettings, **given.fields), child.place)
            if settings is not None:
                yield AddressEntry(match, settings, child.place, given.places)


def is_match(match: str, report: ReadingReport, place: Place, wildcards: Wildcards, dialect: str) -> bool:
    """Say whether an address-setting can have this match; if not, that is a problem."""
    one, rest = wildcards.single_word, wildcards.any_words
    words = match.split(wildcards.delimiter)
    if not match.strip():
        report.problem("an address-setting without match", place)
    elif rest in match[:-1]:  # as Match.verify
        report.problem(f"match={match!r}: {rest!r} can only be the last word", place)
    elif any(one in word and word != one for word in words):
        report.problem(f"match={match!r}: {one!r} as a part of a word is not supported: name each address", place)
    elif dialect == "hornetq" and rest in words[-1] and words[-1] != rest:
        report.problem(f"match={match!r}: {rest!r} as a part of a word is not supported: name each address", place)
    elif wildcards.delimiter != "." and "." in match:
        report.problem(f"match={match!r}: '.' is a part of a word there, which is not supported", place)
    else:
        return True
    return False


def _queues(core: Element, report: ReadingReport) -> Iterator[BoundQueue]:
    for section in core.all("addresses"):
        for address in section.all("address"):
            for routing in _ROUTINGS:
                for kind in address.all(routing):
                    for queue in kind.all("queue"):
                        yield from _queue(queue, address.attributes.get("name", ""), routing, report)
    for section in core.all("queues"):  # HornetQ's, and Artemis' before 2.0
        for queue in section.all("queue"):
            named = queue.first("address")
            yield from _queue(queue, named.text if named else "", "anycast", report)


def _queue(queue: Element, address: str, routing: Routing, report: ReadingReport) -> Iterator[BoundQueue]:
    name = queue.attributes.get("name", "")
    attributes = ((each, text, queue.at(each)) for each, text in queue.attributes.items())
    children = ((each.name, each.text, each.place) for each in queue.children)
    report.skip_decisive(QUEUES, (*attributes, *children), names=(name, address))
    condition = queue.first("filter")
    if name:
        text = condition.attributes.get("string") if condition else None
        yield BoundQueue(address or name, name, routing, text, queue.place)


def _wildcards(core: Element, report: ReadingReport) -> Wildcards:
    section = core.first("wildcard-addresses")
    if section is None:
        return DEFAULT_WILDCARDS
    given = {WILDCARDS[each.name]: each for each in section.children if each.name in WILDCARDS}
    for each in given.values():
        if len(each.text) != 1:
            report.problem(f"{each.name}={each.text!r}: use one character", each.place)
    return Wildcards(**{name: each.text for name, each in given.items() if len(each.text) == 1})


def _of_core(core: Element, name: str, kind: Kind, report: ReadingReport) -> Any:
    element = core.first(name)
    return None if element is None else report.read(kind.read, name, element.text, element.place)
