"""The formats that are read and written: a row for each, and a folder beside this file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.artemis import conversion as artemis
from redelivery.policies.brokers.artemis.properties import (
    apply_properties,
    is_artemis_properties,
    read_artemis_properties,
    write_artemis_properties,
)
from redelivery.policies.brokers.artemis.reader import is_artemis, is_hornetq, read_artemis, read_hornetq
from redelivery.policies.brokers.artemis.writer import write_artemis
from redelivery.policies.brokers.broker_j import conversion as broker_j
from redelivery.policies.brokers.broker_j.reader import is_broker_j, read_broker_j
from redelivery.policies.brokers.broker_j.writer import write_broker_j
from redelivery.policies.brokers.classic import conversion as classic
from redelivery.policies.brokers.classic.reader import is_activemq, read_activemq
from redelivery.policies.brokers.classic.writer import write_activemq
from redelivery.policies.brokers.clients.spring import conversion as spring
from redelivery.policies.brokers.clients.spring.reader import is_spring, read_spring
from redelivery.policies.brokers.clients.spring.writer import write_spring
from redelivery.policies.brokers.clients.spring_boot.reader import is_spring_boot, read_spring_boot
from redelivery.policies.brokers.clients.spring_boot.writer import to_spring_boot, write_spring_boot
from redelivery.policies.brokers.clients.url import conversion as client_url
from redelivery.policies.brokers.clients.url.reader import read_client_url, shown_url
from redelivery.policies.brokers.clients.url.writer import write_client_url
from redelivery.policies.brokers.kubernetes import conversion as kubernetes
from redelivery.policies.brokers.kubernetes.documents import is_kubernetes, shown_kinds
from redelivery.policies.brokers.kubernetes.helm import is_helm, read_helm, write_helm
from redelivery.policies.brokers.kubernetes.reader import read_kubernetes
from redelivery.policies.brokers.kubernetes.writer import write_kubernetes
from redelivery.policies.brokers.patterns import Losses
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.qpid import conversion as qpid
from redelivery.policies.brokers.qpid.reader import is_qpid, read_qpid, with_hosts
from redelivery.policies.brokers.qpid.writer import write_qpid
from redelivery.policies.brokers.rabbitmq import conversion as rabbitmq
from redelivery.policies.brokers.rabbitmq.reader import is_rabbitmq, read_rabbitmq
from redelivery.policies.brokers.rabbitmq.writer import write_rabbitmq
from redelivery.policies.brokers.rules import Rules
from redelivery.policies.brokers.wildfly.conversion import to_wildfly
from redelivery.policies.brokers.wildfly.reader import is_wildfly, read_wildfly
from redelivery.policies.brokers.wildfly.writer import write_wildfly
from redelivery.policies.files.places import ConfigFileError, Place, problem_at
from redelivery.policies.files.report import NO_PROPERTIES, ReadingReport
from redelivery.policies.files.syntax import Syntax, syntax_of, tree_of
from redelivery.policies.files.xml import Element, Load

R = TypeVar("R", bound=Rules)
URL: Final = "uri"
LARGEST: Final = 16 * 1024 * 1024  # bytes of a file; the largest of a real broker seen had 60 KiB


def _never(_root: object, _file: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Format(Generic[R]):
    """A format of a broker's configuration.

    ``syntax``: what the file is written in. ``recognizes``: says of the root of a document, and of the file's name, if
    it is in this format; it is asked in the order of `FORMATS`, and raises ConfigFileError where it is nobody's.
    ``read``: makes rules of the root, and reports what is wrong. ``write``: makes the text. ``convert_to``: makes rules
    of another format's, and adds what is lost. ``unsaid``: adds what the conversion of its rules to another format, or
    to ``python``, leaves out. ``with_others``: the root with the other files that the broker reads along. ``also``:
    another syntax of the same. ``upon``: puts what a root says upon the rules of another file. ``expects``: what its
    files have, for the error of one that does not.
    """

    syntax: Syntax
    recognizes: Callable[[Any, str], bool]
    read: Callable[[Any, ReadingReport], R]
    write: Callable[[R], str]
    convert_to: Callable[[BrokerPolicies, Losses], R]
    unsaid: Callable[[R, str, Losses], None]
    with_others: Callable[[Element, str, Load | None], Element] = lambda root, _file, _load: root
    also: Syntax | None = None
    upon: Callable[[Any, Any, ReadingReport], R] | None = None
    expects: str = ""


FORMATS: Final[Mapping[str, Format[Any]]] = {
    "activemq": Format(
        "xml",
        is_activemq,
        read_activemq,
        write_activemq,
        classic.to_activemq,
        classic.say_unsaid,
        expects="ActiveMQ's <broker>, alone or in Spring's <beans>",
    ),
    "artemis": Format(
        "xml",
        is_artemis,
        read_artemis,
        write_artemis,
        artemis.to_artemis,
        artemis.say_unsaid,
        expects="Artemis' <configuration> or <core> of urn:activemq",
    ),
    "artemis_properties": Format(
        "properties",
        is_artemis_properties,
        read_artemis_properties,
        write_artemis_properties,
        artemis.to_artemis,
        artemis.say_unsaid,
        also="json",
        upon=apply_properties,
        expects="properties such as addressSettings.#.redeliveryDelay, or the same in JSON",
    ),
    "hornetq": Format(
        "xml",
        is_hornetq,
        read_hornetq,
        write_artemis,
        artemis.to_hornetq,
        artemis.say_unsaid,
        expects="HornetQ's <configuration> of urn:hornetq",
    ),
    "wildfly": Format(
        "xml",
        is_wildfly,
        read_wildfly,
        write_wildfly,
        to_wildfly,
        artemis.say_unsaid,
        expects="WildFly's <server> or <domain> of urn:jboss:domain with a messaging subsystem",
    ),
    "qpid": Format(
        "xml",
        is_qpid,
        read_qpid,
        write_qpid,
        qpid.to_qpid,
        qpid.say_unsaid,
        with_hosts,
        expects="the <broker> or <virtualhosts> of Qpid's old Java broker",
    ),
    "broker_j": Format(
        "json",
        is_broker_j,
        read_broker_j,
        write_broker_j,
        broker_j.to_broker_j,
        broker_j.say_unsaid,
        expects="Broker-J's JSON with modelVersion",
    ),
    "rabbitmq": Format(
        "json",
        is_rabbitmq,
        read_rabbitmq,
        write_rabbitmq,
        rabbitmq.to_rabbitmq,
        rabbitmq.say_unsaid,
        expects="RabbitMQ's definitions: JSON with policies, queues or vhosts, or a list of policies",
    ),
    "kubernetes": Format(
        "yaml",
        is_kubernetes,
        read_kubernetes,
        write_kubernetes,
        kubernetes.to_kubernetes,
        artemis.say_unsaid,
        also="json",
        expects="resources of Artemis' operator: an ActiveMQArtemis, or addresses",
    ),
    "helm": Format(
        "yaml",
        is_helm,
        read_helm,
        write_helm,
        artemis.to_artemis,
        artemis.say_unsaid,
        expects="values of a Helm chart with addressSettings",
    ),
    "spring_boot": Format(
        "yaml",
        is_spring_boot,
        read_spring_boot,
        write_spring_boot,
        to_spring_boot,
        client_url.say_unsaid,
        also="properties",
        expects="an application's properties with spring.activemq or spring.artemis, in YAML or not",
    ),
    "spring": Format(
        "xml",
        is_spring,
        read_spring,
        write_spring,
        spring.to_spring,
        client_url.say_unsaid,
        expects="<beans> or <blueprint> with a connection factory of ActiveMQ's client",
    ),
    URL: Format("url", _never, read_client_url, write_client_url, client_url.to_client_url, client_url.say_unsaid),
}
"""The formats that `redelivery.policies.read` understands, by name."""


def read_content(
    content: bytes,
    name: str,
    *,
    format: str | None = None,
    properties: Mapping[str, str] = NO_PROPERTIES,
    strict: bool = True,
    load: Load | None = None,
    overrides: Iterable[tuple[str, bytes]] = (),
    part: str | None = None,
) -> BrokerPolicies:
    """Read the rules in the content of a file.

    ``name``: what errors call it; where the content does not say which broker it is for, the name may. ``format``: one
    of FORMATS; None: by its content. ``properties``: the values of placeholders (``${name}``). ``strict``: False keeps
    what was not understood in ``problems`` and leaves it out. ``load``: gives the content of files that it includes;
    None: includes are refused. ``overrides``: the names and contents of files that the broker applies after it, in
    their order. ``part``: the name of one of several brokers, connection factories or profiles in it. Raises
    ConfigError: it is not a configuration of a broker known here, or (with ``strict``) something that concerns
    redelivery or dead letters was not understood; the text has file, line and column of each.
    """
    report = ReadingReport(properties, part)
    found, root = _parsed(content, name, format, load, report)
    rules = FORMATS[found].read(FORMATS[found].with_others(root, name, load), report)
    if part is not None and not report.chose:
        raise problem_at(Place(name), f"there are no parts with names in it, of which one could be {part!r}")
    for other, more in overrides:
        kind, root = _parsed(more, other, None, load, report)
        upon = FORMATS[kind].upon
        if upon is None:
            raise problem_at(Place(other), f"only properties are put upon {name}, and this is {kind}")
        rules = upon(rules, root, report)
    return _policies(",".join([name, *(other for other, _ in overrides)]), found, rules, report, strict)


def _parsed(content: bytes, name: str, format: str | None, load: Load | None, report: ReadingReport) -> tuple[str, Any]:
    """Return the format of a file, and its root; where a format is given, the file must be of it."""
    if len(content) > LARGEST:
        raise problem_at(Place(name), f"it has {len(content)} bytes; {LARGEST} are read at most")
    if format is not None and format not in FORMATS:
        raise ConfigError(f"format={format!r}: use one of {', '.join(FORMATS)}")
    if format == URL:
        raise ConfigError(f"format={format!r}: that is not a file; pass the URL itself")
    syntax = syntax_of(content, name, None if format is None else FORMATS[format].syntax)
    root = tree_of(content, name, syntax, load, report.problem)
    if format is None:
        return _recognized(root, name, syntax), root
    if syntax not in (FORMATS[format].syntax, FORMATS[format].also) or not _is_of(format, root, name):
        raise problem_at(getattr(root, "place", Place(name)), _foreign(format, root, name, syntax))
    return format, root


def _is_of(format: str, root: Any, name: str) -> bool:
    """Say whether a root is of a format, where its own words do not say that it is of another one."""
    for file in (name, f"{format}.xml"):  # of what says nothing, the name may
        with suppress(ConfigFileError):
            if FORMATS[format].recognizes(root, file):
                return True
    return False


def _foreign(format: str, root: Any, name: str, syntax: Syntax) -> str:
    """Say what was expected of a file of that format, and what it looks like."""
    others = [each for each, one in FORMATS.items() if syntax in (one.syntax, one.also) and _is_of(each, root, name)]
    looks = (
        f"which looks like format={others[0]!r}"
        if others
        else f"which is of no format known here ({', '.join(FORMATS)})"
    )
    if isinstance(root, Element):
        found = f"<{root.name}>{f' of {root.namespace}' if root.namespace else ''}"
    else:
        found = {"json": "JSON with other names", "properties": "other properties"}.get(syntax, syntax)
    return f"format={format!r} is {FORMATS[format].expects or 'something else'}; this is {found}, {looks}"


def read_url(url: str, *, strict: bool = True) -> BrokerPolicies:
    """Read the rules of a client's connection URL.

    Raises:
        ConfigError: an option of redelivery was not understood (with ``strict``).
    """
    report = ReadingReport()
    rules = read_client_url(url, report)
    return _policies(shown_url(url), URL, rules, report, strict)


def _recognized(root: Any, name: str, syntax: str) -> str:
    for each, format in FORMATS.items():
        if syntax in (format.syntax, format.also) and format.recognizes(root, name):
            return each
    known = f"known here ({', '.join(FORMATS)})"
    if syntax == "properties":
        raise problem_at(Place(name), f"no property of a broker {known}, such as addressSettings.#.redeliveryDelay")
    if syntax == "yaml":
        raise problem_at(root.place, f"{shown_kinds(root)} that is {known}")
    what = f"the root element {root.name!r} is of none of the brokers" if syntax == "xml" else "no names of a broker"
    raise problem_at(root.place, f"{what} {known}")


def _policies(name: str, found: str, rules: Rules, report: ReadingReport, strict: bool) -> BrokerPolicies:
    if strict and report.problems:
        raise ConfigFileError(tuple(report.problems))
    return BrokerPolicies(name, found, rules, tuple(report.unread), tuple(report.problems))
