"""Which broker a file belongs to, and what reads it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final

from redelivery.model.errors import ConfigError
from redelivery.policies.brokers.places import ConfigFileError, Place, Problem
from redelivery.policies.brokers.policies import BrokerPolicies
from redelivery.policies.brokers.rules import Rules
from redelivery.policies.readers.activemq import read_activemq
from redelivery.policies.readers.artemis import read_artemis
from redelivery.policies.readers.broker_j import read_broker_j
from redelivery.policies.readers.client_url import read_client_url, shown_url
from redelivery.policies.readers.json_tree import Json, decoded, parse_json
from redelivery.policies.readers.qpid import read_qpid
from redelivery.policies.readers.rabbitmq import read_rabbitmq
from redelivery.policies.readers.report import NO_PROPERTIES, Report
from redelivery.policies.readers.xml import Element, Load, parse

_VARIABLE: Final = re.compile(r"^\$\{[^}]*\}/")
_SECTIONS: Final = frozenset({"core", "address-settings", "addresses", "queues"})  # that Artemis' files have
_POLICY: Final = frozenset({"pattern", "definition"})  # that each of RabbitMQ's policies has
LARGEST: Final = 16 * 1024 * 1024  # bytes of a file; the largest of a real broker seen had 60 KiB

_JSON: Final[Mapping[str, Callable[[Json, Report], Rules]]] = MappingProxyType(
    {"broker_j": read_broker_j, "rabbitmq": read_rabbitmq}
)
_XML: Final[Mapping[str, Callable[[Element, Report], Rules]]] = MappingProxyType(
    {
        "activemq": read_activemq,
        "artemis": partial(read_artemis, dialect="artemis"),
        "hornetq": partial(read_artemis, dialect="hornetq"),
        "qpid": read_qpid,
    }
)
URL: Final = "uri"
FORMATS: Final = (*_XML, *_JSON, URL)
"""What `redelivery.policies.read` understands."""


def read_content(
    content: bytes,
    name: str,
    *,
    format: str | None = None,
    properties: Mapping[str, str] = NO_PROPERTIES,
    strict: bool = True,
    load: Load | None = None,
) -> BrokerPolicies:
    """The rules in the content of a file.

    Args:
        content: its bytes.
        name: what errors call it; where the content does not say which broker it is for, the name may.
        format: one of FORMATS; None: by its content.
        properties: the values of placeholders (``${name}``).
        strict: raise an error for what was not understood; False keeps it in ``problems`` and leaves it out.
        load: gives the content of files that it includes; None: includes are refused.

    Raises:
        ConfigError: it is not a configuration of a broker known here, or (with ``strict``) something that concerns
            redelivery or dead letters was not understood; the text has file, line and column of each.
    """
    if len(content) > LARGEST:
        raise _problem(f"it has {len(content)} bytes; {LARGEST} are read at most", name)
    if format is not None and format not in FORMATS:
        raise ConfigError(f"format={format!r}: use one of {', '.join(FORMATS)}")
    report = Report(properties)
    rules: Rules
    first = _first(content)
    if format is None and first not in ("<", "{", "[", "/"):
        what = f"neither XML nor JSON: it begins with {first!r}" if first else "the file is empty"
        raise _problem(what, name)
    if format in _JSON or (format is None and first in ("{", "[", "/")):
        tree = parse_json(content, name)
        found = format or json_format(tree, name)
        rules = _JSON[found](tree, report)
    else:
        root = parse(content, name, load)
        found = format or xml_format(root, name)
        if found not in _XML:
            raise ConfigError(f"format={format!r}: that is not a file; pass the URL itself")
        if found == "qpid":
            root = _with_hosts(root, name, load)
        rules = _XML[found](root, report)
    return _policies(name, found, rules, report, strict)


def read_url(url: str, *, strict: bool = True) -> BrokerPolicies:
    """The rules of a client's connection URL.

    Raises:
        ConfigError: an option of redelivery was not understood (with ``strict``).
    """
    report = Report()
    rules = read_client_url(url, report)
    return _policies(shown_url(url), URL, rules, report, strict)


def _first(content: bytes) -> str:
    """The first character that is not blank; empty where there is none."""
    try:
        return decoded(content).lstrip()[:1]
    except UnicodeDecodeError:  # XML can have other encodings
        return content.lstrip()[:1].decode("latin-1")


def _policies(name: str, found: str, rules: Rules, report: Report, strict: bool) -> BrokerPolicies:
    if strict and report.problems:
        raise ConfigFileError(tuple(report.problems))
    return BrokerPolicies(name, found, rules, tuple(report.unread), tuple(report.problems))


def _with_hosts(root: Element, name: str, load: Load | None) -> Element:
    """Qpid's ``config.xml`` with the ``virtualhosts.xml`` that it names, where that is in its folder or below it.

    A variable at the head of the name (``${conf}/x.xml``) is this folder; ``${QPID_HOME}/etc/x.xml`` is in it too.
    """
    named = root.first("virtualhosts")
    if load is None or named is None or named.children or not named.text:
        return root
    relative = _VARIABLE.sub("", named.text)
    try:
        try:
            other, content = load(name, relative)
        except ConfigFileError:
            if relative == named.text or "/" not in relative:
                raise
            other, content = load(name, relative.rpartition("/")[2])
    except ConfigError as error:
        raise _problem(f"virtualhosts {named.text!r}: {error}", name, named.place) from error
    hosts = parse(content, other, load)
    return replace(root, children=tuple(hosts if each is named else each for each in root.children))


def json_format(root: Json, name: str) -> str:
    """The format of a document by the names in it."""
    if isinstance(root.value, list):
        objects = [set(dict(each.items())) for each in root]
        if not root.value or any(each >= _POLICY or "apply-to" in each for each in objects):
            return "rabbitmq"
        if any(objects):
            raise _problem(
                "a list in which no object has a pattern and a definition: it is not what RabbitMQ's `rabbitmqctl"
                " list_policies --formatter json` prints; pass that, its exported definitions, or another file",
                name,
                root.place,
            )
    names = set(dict(root.items()))
    if names & {"rabbit_version", "rabbitmq_version", "operator_policies", "vhosts", "policies"}:
        return "rabbitmq"
    if names & {"virtualhostnodes", "virtualhosts", "modelVersion", "nodeAutoCreationPolicies"}:
        return "broker_j"
    if names & {"bindings", "exchanges"}:
        return "rabbitmq"
    if "queues" in names:
        return "broker_j"
    raise _problem(f"no names of a broker known here ({', '.join(FORMATS)})", name, root.place)


def xml_format(root: Element, name: str) -> str:
    """The format of a document by its root, namespace and children."""
    server = root.first("server")
    if root.name == "broker" and server is not None and "configuration" in server.attributes:
        named = server.attributes["configuration"]
        raise _problem(
            f"this is Artemis' bootstrap.xml: pass the file that it names ({named})", name, server.at("configuration")
        )
    if root.name in ("beans", "blueprint") or (root.name == "broker" and "activemq" in root.namespace):
        return "activemq"
    if root.name in ("configuration", "core", "address-settings"):
        spaces = {root.namespace, *(each.namespace for each in root.children)}
        sections = {root.name, *(each.name for each in root.children)} & _SECTIONS
        is_theirs = any(each.startswith(("urn:activemq", "urn:hornetq")) for each in spaces)
        if not is_theirs and not (spaces == {""} and sections) and "hornetq" not in name.lower():
            raise _problem(
                f"<{root.name}> is neither Artemis' nor HornetQ's: its namespace is not urn:activemq or urn:hornetq",
                name,
                root.place,
            )
        is_hornetq = "urn:hornetq" in spaces or ("urn:activemq" not in spaces and "hornetq" in name.lower())
        return "hornetq" if is_hornetq else "artemis"
    if root.name == "virtualhosts":
        return "qpid"
    if root.name == "broker":
        ours = {"destinationPolicy", "plugins", "transportConnectors", "persistenceAdapter", "managementContext"}
        is_classic = not root.children or any(each.name in ours for each in root.children)
        return "activemq" if is_classic else "qpid"
    raise _problem(
        f"the root element {root.name!r} is of none of the brokers known here ({', '.join(FORMATS)})", name, root.place
    )


def _problem(text: str, name: str, place: Place | None = None) -> ConfigFileError:
    return ConfigFileError((Problem(text, place or Place(name)),))
