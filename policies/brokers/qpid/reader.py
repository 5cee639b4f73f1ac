"""Reads the ``config.xml`` and ``virtualhosts.xml`` of Qpid's old Java broker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.qpid.names import CONCERNS, LEVEL, SUFFIXES, UNREAD
from redelivery.policies.brokers.qpid.rules import QpidHost, QpidLevel, QpidRules
from redelivery.policies.files.places import ConfigFileError, problem_at
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.files.xml import Element, Load, parse

_VARIABLE: Final = re.compile(r"^\$\{[^}]*\}/")


def is_qpid(root: Element, _file: str) -> bool:
    """Say whether a document, which is not Classic's, is that of Qpid's old broker."""
    return root.name in ("broker", "virtualhosts")


def with_hosts(root: Element, file: str, load: Load | None) -> Element:
    """Return the ``config.xml`` with the ``virtualhosts.xml`` that it names, where that is in its folder or below it.

    A variable at the head of the name (``${conf}/x.xml``) is this folder; ``${QPID_HOME}/etc/x.xml`` is in it too.
    Raises ConfigFileError: the file cannot be loaded.
    """
    named = root.first("virtualhosts")
    if load is None or named is None or named.children or not named.text:
        return root
    relative = _VARIABLE.sub("", named.text)
    try:
        try:
            other, content = load(file, relative)
        except ConfigFileError:
            if relative == named.text or "/" not in relative:
                raise
            other, content = load(file, relative.rpartition("/")[2])
    except ConfigError as error:
        raise problem_at(named.place, f"virtualhosts {named.text!r}: {error}") from error
    hosts = parse(content, other, load)
    return replace(root, children=tuple(hosts if each is named else each for each in root.children))


def read_qpid(root: Element, report: ReadingReport) -> QpidRules:
    """Read the rules of a document. What is wrong, or skipped, is in the report."""
    report.skip_decisive(UNREAD, ((each.name, each.text, each.place) for each in root.walk()))
    server, hosts, default = QpidLevel("broker"), root, None
    suffixes: dict[str, str] = {}
    if root.name == "broker":
        server = _level(root, "broker", report)
        suffixes = {field: each.text for name, (field, _) in SUFFIXES.items() for each in root.all(name) if each.text}
        sections = ((each.name, each.place) for each in root.children)
        report.sections(sections, (*LEVEL, *SUFFIXES, "virtualhosts"), concerns=CONCERNS, of="the broker")
        hosts = root.first("virtualhosts") or replace(root, children=())
        if hosts.text and not hosts.children:
            report.skip(f"virtualhosts {hosts.text}", hosts.place)
    named = hosts.first("default")
    default = named.text if named and named.text else None
    return QpidRules(server, tuple(_hosts(hosts, report)), default, **suffixes)


def _hosts(element: Element, report: ReadingReport) -> Iterator[QpidHost]:
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
            if section.name not in ("queues", "queue", *LEVEL):
                report.skip(f"{section.name} of virtual host {name!r}", section.place)


def _queues(elements: list[Element], report: ReadingReport) -> Iterator[QpidLevel]:
    for queue in elements:
        name, inside = _named(queue)
        if not name:
            report.problem("a queue without a name", queue.place)
            continue
        level = _merged(_level(queue, name, report), _level(inside, name, report) if inside is not queue else None)
        yield replace(level, name=name, place=queue.place)


def _named(element: Element) -> tuple[str, Element]:
    """Return the name of a virtual host or queue, and the element of its settings: one of that name, or itself."""
    child = element.first("name")
    name = child.text if child else element.attributes.get("name", "")
    return name, (element.first(name) if name else None) or element


def _level(element: Element, title: str, report: ReadingReport) -> QpidLevel:
    of_broker = title == "broker"  # whose sections are looked at elsewhere
    children = ((each.name, each.text, each.place) for each in element.children)
    others = {each.name for each in element.children if each.children or of_broker}
    given = report.settings(LEVEL, children, title, concerns=CONCERNS, known={*others, *SUFFIXES})
    return QpidLevel(title, place=element.place, settings=given.settings, **given.fields)


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
