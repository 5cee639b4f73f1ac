"""Reads the ``config.xml`` and ``virtualhosts.xml`` of Qpid's old Java broker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from redelivery.model.suggestions import unknown_option
from redelivery.policies.brokers.places import Setting
from redelivery.policies.brokers.qpid import QpidHost, QpidLevel, QpidRules
from redelivery.policies.checks import INT_MAX, read_flag, read_whole
from redelivery.policies.readers.report import Report
from redelivery.policies.readers.xml import Element

_CONCERNS: Final = re.compile(r"redel|deliv|dead_?l|dlq", re.IGNORECASE)
_COUNT: Final = "maximumDeliveryCount"
_QUEUES: Final = "deadLetterQueues"
_SUFFIXES: Final = {"deadLetterExchangeSuffix": "exchange_suffix", "deadLetterQueueSuffix": "queue_suffix"}


def read_qpid(root: Element, report: Report) -> QpidRules:
    """The rules of a document. What is wrong, or skipped, is in the report."""
    server, hosts, default = QpidLevel("broker"), root, None
    suffixes: dict[str, str] = {}
    if root.name == "broker":
        server = _level(root, "broker", report)
        suffixes = {field: each.text for name, field in _SUFFIXES.items() for each in root.all(name) if each.text}
        known = (_COUNT, _QUEUES, *_SUFFIXES, "virtualhosts")
        for section in root.children:
            if section.name not in known and _CONCERNS.search(section.name):
                report.problem(unknown_option(section.name, known, of="the broker"), section.place)
            elif section.name not in known:
                report.skip(section.name, section.place)
        hosts = root.first("virtualhosts") or replace(root, children=())
        if hosts.text and not hosts.children:
            report.skip(f"virtualhosts {hosts.text}", hosts.place)
    named = hosts.first("default")
    default = named.text if named and named.text else None
    return QpidRules(server, tuple(_hosts(hosts, report)), default, **suffixes)


def _hosts(element: Element, report: Report) -> Iterator[QpidHost]:
    for host in element.all("virtualhost"):
        name, inside = _named(host)
        if not name:
            report.problem("a virtualhost without a name", host.place)
            continue
        sections = [inside, *inside.all("queues")]
        level = QpidLevel(f"virtual host {name!r}", place=host.place)
        for section in sections:
            level = _merged(level, _level(section, level.name, report))
        queues = [each for section in sections for each in section.all("queue")]
        yield QpidHost(replace(level, name=name), tuple(_queues(queues, report)))
        for section in inside.children:
            if section.name not in ("queues", "queue", _COUNT, _QUEUES):
                report.skip(f"{section.name} of virtual host {name!r}", section.place)


def _queues(elements: list[Element], report: Report) -> Iterator[QpidLevel]:
    for queue in elements:
        name, inside = _named(queue)
        if not name:
            report.problem("a queue without a name", queue.place)
            continue
        level = _merged(_level(queue, name, report), _level(inside, name, report) if inside is not queue else None)
        yield replace(level, name=name, place=queue.place)


def _named(element: Element) -> tuple[str, Element]:
    """The name of a virtual host or queue, and the element that has its settings: one of that name, or itself."""
    child = element.first("name")
    name = child.text if child else element.attributes.get("name", "")
    return name, (element.first(name) if name else None) or element


def _level(element: Element, title: str, report: Report) -> QpidLevel:
    values: dict[str, Any] = {}
    settings = []
    for child in element.children:
        if child.name == _COUNT:
            values["maximum_delivery_count"] = report.read(_count, _COUNT, child.text, child.place)
        elif child.name == _QUEUES:
            values["dead_letter_queues"] = report.read(read_flag, _QUEUES, child.text, child.place)
        elif _CONCERNS.search(child.name) and child.name not in _SUFFIXES and title != "broker" and not child.children:
            report.problem(unknown_option(child.name, (_COUNT, _QUEUES), of=title), child.place)
            continue
        else:
            continue
        settings.append(Setting(child.name, child.text, title, child.place))
    return QpidLevel(title, place=element.place, settings=tuple(settings), **values)


def _merged(level: QpidLevel, nearer: QpidLevel | None) -> QpidLevel:
    if nearer is None:
        return level
    count, queues = nearer.maximum_delivery_count, nearer.dead_letter_queues
    return replace(
        level,
        maximum_delivery_count=level.maximum_delivery_count if count is None else count,
        dead_letter_queues=level.dead_letter_queues if queues is None else queues,
        settings=level.settings + nearer.settings,
    )


def _count(name: str, value: str) -> int:
    return read_whole(name, value, 0, INT_MAX)
