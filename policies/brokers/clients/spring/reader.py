"""Reads the connection factories of a file of beans; where there is none, a policy map, or else a policy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from redelivery.model.suggestions import unknown_option
from redelivery.policies.activemq.redelivery_names import BEAN as POLICY
from redelivery.policies.brokers.clients.spring.beans import Bean, Beans, Value, candidates
from redelivery.policies.brokers.clients.spring.names import CONCERNS, MADE_OF_URL, Kind
from redelivery.policies.brokers.clients.url.reader import UrlOptions, read_options
from redelivery.policies.brokers.clients.url.rules import ClientEntry, ClientRules
from redelivery.policies.destinations.map import DestinationMap
from redelivery.policies.files.places import Place, Setting
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.files.xml import Element
from redelivery.policies.kinds import FLAG
from redelivery.policies.prefetch import BEAN as PREFETCH
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy

_ORDER: Final[tuple[tuple[Kind, ...], ...]] = (("factory", "returning"), ("map",), ("policy",))
_URLS: Final = ("brokerURL", "brokerUrl")
_PLACES: Final = ("queue", "topic", "destination", "tempQueue", "tempTopic")
_WORDS: Final = {"on": "true", "yes": "true", "1": "true", "off": "false", "no": "false", "0": "false"}
_HEXADECIMAL: Final = re.compile(r"0[xX][0-9a-fA-F]{1,15}")


def is_spring(root: Element, _file: str) -> bool:
    """Say whether a document has beans; one with a broker and a client is the broker's, which is asked first."""
    has_broker = any(each.name == "broker" for each in root.walk())
    return root.name in ("beans", "blueprint") and not (has_broker and not _clients(root, Beans(root)))


def read_spring(root: Element, report: ReadingReport) -> ClientRules:
    """Read the rules of the client of a document; of several different ones, those of `report.part`."""
    beans = Beans(root)
    clients = _clients(root, beans)
    if not clients:
        what = "there is no broker element, no connection factory of ActiveMQ, and no redelivery policy"
        report.problem(what, root.place)
        return ClientRules()
    read = []
    for name, element, bean in clients:
        own = report.another()
        title = name or f"line {element.place.line}"
        read.append((title, (_Client(beans, own).read(bean), own), element.place))
    _skip_others(root, beans.used.union(id(each) for _, each, _ in clients), report)
    if report.part is None and all(rules == read[0][1][0] for _, (rules, _), _ in read):
        found: tuple[ClientRules, ReadingReport] | None = read[0][1]
    else:
        found = report.chosen(read, "connection factories with different rules")
    if found is None:
        return ClientRules()
    report.join(found[1])
    return found[0]


def _clients(root: Element, beans: Beans) -> list[tuple[str, Element, Bean]]:
    """List the factories; without any, the policy maps, and without these the policies."""
    made = [(name, each, beans.bean(each)) for name, each in candidates(root)]
    for kinds in _ORDER:
        found = [each for each in made if each[2].kind in kinds and not _is_only_a_pool(each[2])]
        if found:
            return found
    return []


def _is_only_a_pool(bean: Bean) -> bool:
    given = {name for name, _ in bean.properties}
    has_url = bool(given & set(_URLS)) or any(each.text for each in bean.arguments)
    return bean.type.endswith((*MADE_OF_URL, "pooledConnectionFactory")) and not has_url


def _skip_others(root: Element, seen: set[int], report: ReadingReport) -> None:
    for each in root.children:
        if not any(id(inner) in seen for inner in each.walk()):
            kind = each.attributes.get("class", each.attributes.get("resource", each.attributes.get("id", "")))
            report.skip(f"{each.name} {kind}".strip(), each.place)


@dataclass(slots=True)
class _PolicyOptions:
    """The options of one policy, and where each stands."""

    texts: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Setting] = field(default_factory=dict)

    def policy(self, report: ReadingReport, place: Place) -> RedeliveryPolicy:
        return report.checked(lambda: RedeliveryPolicy.from_activemq(self.texts), place) or RedeliveryPolicy()


class _Client:
    """Collects what a factory is given, step by step."""

    def __init__(self, beans: Beans, report: ReadingReport) -> None:
        self._beans = beans
        self._report = report
        self._default = _PolicyOptions()
        self._entries: dict[str, ClientEntry] = {}
        self._prefetch: dict[str, str] = {}
        self._non_blocking: bool | None = None
        self._of_all: dict[str, Setting] = {}

    def read(self, bean: Bean) -> ClientRules:
        if bean.kind == "returning":
            return ClientRules(returning=True)
        if bean.kind == "map":
            self._map(bean)
        elif bean.kind == "policy":
            self._default = self._options(bean)
        else:
            if bean.arguments:
                self._url(bean.arguments[-1])
            for name, value in bean.properties:
                self._set(name, value)
        prefetch = self._report.checked(lambda: PrefetchPolicy.from_activemq(self._prefetch), bean.place)
        return ClientRules(
            policy=self._default.policy(self._report, bean.place),
            prefetch=prefetch if self._prefetch else None,
            non_blocking=self._non_blocking,
            entries=tuple(self._entries.values()),
            settings=tuple(self._default.settings.values()),
            of_all=tuple(self._of_all.values()),
        )

    def _set(self, name: str, value: Value) -> None:
        of, _, inner = name.partition(".")
        setters = {
            "redeliveryPolicy": self._set_policy,
            "redeliveryPolicyMap": self._set_map,
            "prefetchPolicy": self._set_prefetch,
            "nonBlockingRedelivery": self._set_flag,
            **dict.fromkeys(_URLS, self._url),
        }
        if of == "redeliveryPolicy" and inner:
            self._option(self._default, inner, value)
        elif of == "prefetchPolicy" and inner:
            self._prefetch_option(inner, value)
        elif name in setters:
            setters[name](value)
        elif CONCERNS.search(name):
            self._report.problem(unknown_option(name, setters, of="a connection factory"), value.place)

    def _set_policy(self, value: Value) -> None:
        for bean in self._beans_of("redeliveryPolicy", value, "policy"):
            self._default = self._options(bean)

    def _set_map(self, value: Value) -> None:
        for bean in self._beans_of("redeliveryPolicyMap", value, "map"):
            self._map(bean)

    def _set_prefetch(self, value: Value) -> None:
        for bean in self._beans_of("prefetchPolicy", value, "prefetch"):
            for name, inside in bean.properties:
                self._prefetch_option(name, inside)

    def _set_flag(self, value: Value) -> None:
        text, name = self._text(value), "nonBlockingRedelivery"
        spelled = None if text is None else _WORDS.get(text.lower(), text)
        found = None if spelled is None else self._report.read(FLAG.read, name, spelled, value.place)
        if found is not None:
            self._non_blocking = found
            self._of_all[name] = Setting(name, FLAG.spell(found), "the connection factory", value.place)

    def _url(self, value: Value) -> None:
        """Take the options of a URL: one of a policy makes a new policy for all."""
        if value.text is None:
            return
        found: UrlOptions = read_options(value.text, self._report, value.place)
        if found.redelivery:
            self._default = _PolicyOptions()
            for name, text in found.redelivery.items():
                self._option(self._default, name, Value(value.place, text))
        if found.prefetch:
            self._prefetch = dict(found.prefetch)
        if found.non_blocking is not None:
            self._set_flag(Value(value.place, found.non_blocking))

    def _map(self, bean: Bean) -> None:
        """Take a map; without a default entry the client has a policy of its own (seen with 5.18)."""
        self._default, self._entries = _PolicyOptions(), {}
        for name, value in bean.properties:
            if name == "defaultEntry":
                for each in self._beans_of(name, value, "policy"):
                    self._default = self._options(each)
            elif name == "redeliveryPolicyEntries":
                for each in self._beans_of(name, value, "policy"):
                    self._entry(each)
            elif CONCERNS.search(name):
                known = ("defaultEntry", "redeliveryPolicyEntries")
                self._report.problem(unknown_option(name, known, of="a redeliveryPolicyMap"), value.place)

    def _entry(self, bean: Bean) -> None:
        pattern = self._pattern(bean)
        if pattern is None:
            return
        if pattern in self._entries:
            self._report.problem(f"{pattern!r} occurs twice; leave one out", bean.place)
        options = self._options(bean, f"redeliveryPolicy {pattern!r}")
        keys = dict.fromkeys([*self._entries, pattern], 1)
        if self._report.checked(lambda: DestinationMap(keys), bean.place) is not None:
            policy = options.policy(self._report, bean.place)
            self._entries[pattern] = ClientEntry(pattern, policy, bean.place, tuple(options.settings.values()))

    def _pattern(self, bean: Bean) -> str | None:
        given = dict(bean.properties)
        for name in ("queue", "topic"):
            if name in given and given[name].text is not None:
                text = self._text(given[name])
                return None if text is None else f"{name}://{text}"
        if "destination" in given:
            for element in self._beans.inside(given["destination"]):
                target = None if isinstance(element, str) else self._beans.bean(element)
                if target is not None and target.kind in ("queue", "topic"):
                    named = next((v for k, v in target.properties if k in ("physicalName", "name")), None)
                    text = self._text(named or (target.arguments or (Value(target.place, ""),))[0])
                    return None if text is None else f"{target.kind}://{text}"
        if given.keys() & {"tempQueue", "tempTopic"}:
            self._report.skip("redeliveryPolicy of temporary destinations", bean.place)
        else:
            self._report.problem("an entry of a redeliveryPolicyMap without queue, topic or destination", bean.place)
        return None

    def _options(self, bean: Bean, title: str = "redeliveryPolicy") -> _PolicyOptions:
        options = _PolicyOptions()
        for name, value in bean.properties:
            if name not in _PLACES:
                self._option(options, name, value, title)
        return options

    def _option(self, options: _PolicyOptions, name: str, value: Value, title: str = "redeliveryPolicy") -> None:
        text = self._text(value)
        if text is not None:
            spelled = _spelled(text, is_flag=POLICY.get(name, ("", None))[1] is FLAG)
            read = self._report.read(_checked, name, spelled, value.place)
            if read is not None:
                options.texts[name] = read
                options.settings[name] = Setting(name, read, title, value.place)

    def _prefetch_option(self, name: str, value: Value) -> None:
        text = self._text(value)
        if text is not None and name in PREFETCH:
            self._prefetch[name] = _spelled(text, is_flag=False)

    def _text(self, value: Value) -> str | None:
        """Return a str with its placeholders replaced; None where there is none, which is a problem then."""
        if value.text is None:
            self._report.problem(f"{value.ref or 'what is in it'!r}: a value is needed", value.place)
            return None
        if "#{" in value.text:
            self._report.problem(f"{value.text!r}: expressions of Spring are not evaluated", value.place)
            return None
        return self._report.text(value.text, value.place)

    def _beans_of(self, name: str, value: Value, kind: Kind) -> Iterator[Bean]:
        for each in self._beans.inside(value):
            bean = None if isinstance(each, str) else self._beans.bean(each)
            if bean is not None and bean.kind == kind:
                yield bean
            elif bean is not None:
                self._report.problem(f"{name}: a {bean.type} is not one of ActiveMQ's", value.place)
            else:
                self._report.problem(f"{name}: the bean {each!r} is not in this file: put it there", value.place)


def _checked(name: str, text: str) -> str:
    RedeliveryPolicy.from_activemq({name: text})
    return text


def _spelled(text: str, *, is_flag: bool) -> str:
    """Spell a value as ActiveMQ's own options are: Spring has more words for true and false, and takes 0x10 for 16."""
    if is_flag:
        return _WORDS.get(text.lower(), text)
    return str(int(text, 16)) if _HEXADECIMAL.fullmatch(text) else text
