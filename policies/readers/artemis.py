"""Reads Artemis' ``broker.xml``, and HornetQ's ``hornetq-configuration.xml``, whose elements have the same names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from redelivery.model.destinations import Queue
from redelivery.model.errors import InvalidDestinationError
from redelivery.model.suggestions import unknown_option
from redelivery.policies.brokers.artemis import (
    DEFAULT_WILDCARDS,
    AddressEntry,
    ArtemisRules,
    BoundQueue,
    Routing,
    Wildcards,
)
from redelivery.policies.brokers.artemis_names import CONCERNS, NAMES, SINCE_ARTEMIS
from redelivery.policies.brokers.places import Place
from redelivery.policies.checks import INT_MAX, read_flag, read_whole
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.readers.report import Report
from redelivery.policies.readers.xml import Element

_READ: Final = frozenset(
    {
        "address-settings",
        "addresses",
        "queues",
        "wildcard-addresses",
        "persist-delivery-count-before-delivery",
        "max-redelivery-records",
    }
)
_ROUTINGS: Final[tuple[Routing, ...]] = ("anycast", "multicast")
_ADDRESSES: Final = ("dead-letter-address", "expiry-address")
_WILDCARDS: Final = {"delimiter": "delimiter", "any-words": "any_words", "single-word": "single_word"}
# Of settings that this broker has and that are about something else, though their names do not sound so.
_OTHER: Final = frozenset({"message-expiry-scan-period", "message-expiry-thread-priority", "address-queue-scan-period"})


def read_artemis(root: Element, report: Report, dialect: str = "artemis") -> ArtemisRules:
    """The rules of a document. What is wrong, or skipped, is in the report."""
    if root.name == "address-settings":  # what another file includes
        root = replace(root, name="core", children=(root,))
    core = root if root.name == "core" else root.first("core") or root
    for section in root.children:
        if section is not core and core is not root:
            report.skip(section.name, section.place)
    for section in core.children:
        if section.name not in _READ and section.name not in _OTHER and CONCERNS.search(section.name):
            report.problem(unknown_option(section.name, sorted(_READ), of="the core"), section.place)
        elif section.name not in _READ:
            report.skip(section.name, section.place)
    wildcards = _wildcards(core, report)
    return ArtemisRules(
        dialect=dialect,
        entries=tuple(_entries(core, report, dialect, wildcards)),
        queues=tuple(sorted(_queues(core), key=lambda each: (each.address, each.routing, each.name))),
        wildcards=wildcards,
        persist_delivery_count_before_delivery=_persists(core, report),
        max_redelivery_records=_records(core, report),
    )


def _entries(core: Element, report: Report, dialect: str, wildcards: Wildcards) -> Iterator[AddressEntry]:
    for section in core.all("address-settings"):
        for child in section.children:
            if child.name != "address-setting":
                report.problem(f"{child.name!r} is not an address-setting", child.place)
                continue
            match = child.attributes.get("match", "")
            if _is_pattern(match, report, child.at("match"), wildcards, dialect):
                entry = _entry(match, child, report, dialect)
                if entry is not None:
                    yield entry


def _entry(match: str, element: Element, report: Report, dialect: str) -> AddressEntry | None:
    values: dict[str, Any] = {}
    places: dict[str, Place] = {}
    for child in element.children:
        if child.name not in NAMES or (dialect == "hornetq" and child.name in SINCE_ARTEMIS):
            if CONCERNS.search(child.name):
                known = [name for name in NAMES if dialect != "hornetq" or name not in SINCE_ARTEMIS]
                report.problem(unknown_option(child.name, known, of="an address-setting"), child.place)
            continue
        field, reader = NAMES[child.name]
        value = report.read(reader, child.name, child.text, child.place)
        if child.name in _ADDRESSES and isinstance(value, str) and not _is_address(value):
            report.problem(f"{child.name}={value!r}: use the name of one address", child.place)
        elif value is not None:
            values[field], places[field] = value, child.place
    settings = report.checked(lambda: AddressSettings(**values), element.place)
    return None if settings is None else AddressEntry(match, settings, element.place, places)


def _is_pattern(match: str, report: Report, place: Place, wildcards: Wildcards, dialect: str) -> bool:
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


def _is_address(name: str) -> bool:
    try:
        return not Queue(name).is_pattern
    except InvalidDestinationError:
        return False


def _queues(core: Element) -> Iterator[BoundQueue]:
    for section in core.all("addresses"):
        for address in section.all("address"):
            for routing in _ROUTINGS:
                for kind in address.all(routing):
                    for queue in kind.all("queue"):
                        yield from _queue(queue, address.attributes.get("name", ""), routing)
    for section in core.all("queues"):  # HornetQ's, and Artemis' before 2.0
        for queue in section.all("queue"):
            named = queue.first("address")
            yield from _queue(queue, named.text if named else "", "anycast")


def _queue(queue: Element, address: str, routing: Routing) -> Iterator[BoundQueue]:
    name = queue.attributes.get("name", "")
    condition = queue.first("filter")
    if name:
        text = condition.attributes.get("string") if condition else None
        yield BoundQueue(address or name, name, routing, text, queue.place)


def _wildcards(core: Element, report: Report) -> Wildcards:
    section = core.first("wildcard-addresses")
    if section is None:
        return DEFAULT_WILDCARDS
    given = {_WILDCARDS[each.name]: each for each in section.children if each.name in _WILDCARDS}
    for each in given.values():
        if len(each.text) != 1:
            report.problem(f"{each.name}={each.text!r}: use one character", each.place)
    return Wildcards(**{name: each.text for name, each in given.items() if len(each.text) == 1})


def _persists(core: Element, report: Report) -> bool:
    name = "persist-delivery-count-before-delivery"
    element = core.first(name)
    return bool(element and report.read(read_flag, name, element.text, element.place))


def _records(core: Element, report: Report) -> int | None:
    name = "max-redelivery-records"
    element = core.first(name)
    if element is None:
        return None
    return report.read(lambda n, text: read_whole(n, text, -1, INT_MAX), name, element.text, element.place)
