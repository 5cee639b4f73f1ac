"""Artemis' ``broker.properties``, also as JSON: settings that it applies after ``broker.xml``, one by one.

Each rule here was seen on Artemis 2.44, which starts all the same where a property is wrong: it notes that in its
status, and takes 0, that is no limit, for a number that is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import chain, count
from typing import Any, Final, cast

from redelivery.model.errors import ConfigError
from redelivery.model.suggestions import did_you_mean, nearest, unknown_option
from redelivery.policies.brokers.artemis.bound import BoundQueue, Routing, in_order
from redelivery.policies.brokers.artemis.decisive import PROPERTIES, PROPERTY_QUEUES, PROPERTY_SETTINGS
from redelivery.policies.brokers.artemis.names import BEAN_FLAG, CONCERNS, PROPERTY_NAMES, WILDCARDS, written
from redelivery.policies.brokers.artemis.reader import is_match
from redelivery.policies.brokers.artemis.rules import AddressEntry, ArtemisRules
from redelivery.policies.brokers.artemis.wildcards import DEFAULT_WILDCARDS
from redelivery.policies.destinations.address_settings import AddressSettings
from redelivery.policies.files.json_tree import Json
from redelivery.policies.files.places import Place
from redelivery.policies.files.properties import Property, escaped
from redelivery.policies.files.report import ReadingReport
from redelivery.policies.kinds import whole

_SETTINGS: Final = ("addressSettings", "addressesSettings")
_ADDRESSES: Final = "addressConfigurations"
_QUEUES: Final = "queueConfigs"
_PERSISTS: Final = "persistDeliveryCountBeforeDelivery"
_RECORDS: Final = "maxRedeliveryRecords"
_WILDCARDS: Final = "wildcardConfiguration"
_WILDCARD_NAMES: Final = {"delimiter": "delimiter", "anyWords": "any_words", "singleWord": "single_word"}
_TOPS: Final = (*_SETTINGS, _ADDRESSES, _RECORDS, _PERSISTS, _WILDCARDS)
_OTHER: Final = frozenset({"messageExpiryScanPeriod", "messageExpiryThreadPriority", "addressQueueScanPeriod"})
_OF_ADDRESS: Final = ("routingTypes", "name")
_OF_QUEUE: Final = ("routingType", "address", "filterString")
_SURROUND: Final = "key.surround"
_QUOTE: Final = '"'
_REMOVE: Final = "remove.value"
_REMOVES: Final = "-"
_DEEPEST: Final = 100  # dots of a key of JSON


@dataclass(slots=True)
class _Override:
    """The properties of one match: values by field, each with its place, on top of the file's or anew."""

    place: Place
    anew: bool = False
    values: dict[str, tuple[Any, Place]] = field(default_factory=dict)


class _Overrides:
    """The properties that were read, until they are put on top of a file's rules."""

    def __init__(self, rules: ArtemisRules, report: ReadingReport, surround: str, removes: str) -> None:
        self._rules = rules
        self._report = report
        self._surround = surround
        self._removes = removes
        self._entries: dict[str, _Override | None] = {}  # by match; None: removed
        self._queues = {(each.address, each.name): each for each in rules.queues}
        self._addresses: dict[tuple[str, str], str] = {}
        self._of_all: dict[str, Any] = {}
        self._wildcards: dict[str, str] = {}
        self._seen: dict[tuple[str, ...], Place] = {}
        self._skipped: set[str] = set()

    def apply(self, key: str, text: str, place: Place) -> None:
        """Read one property."""
        path = self._path(key, place)
        if path is None:
            return
        top, *rest = path or ("",)
        if top not in _TOPS:
            self._skip(path, key, text, place)
            return
        path = (_SETTINGS[0] if top in _SETTINGS else top, *rest)
        if path in self._seen:
            self._report.problem(f"{key} stands twice, first at {self._seen[path]}: the last one counts", place)
        self._seen[path] = place
        if top in _SETTINGS:
            self._setting(key, rest, text, place)
        elif top == _ADDRESSES:
            self._address(key, rest, text, place)
        elif top == _WILDCARDS and len(rest) == 1:
            self._wildcard(key, rest[0], text, place)
        elif top in (_RECORDS, _PERSISTS) and not rest:
            kind = whole(-1) if top == _RECORDS else BEAN_FLAG
            name = "max_redelivery_records" if top == _RECORDS else "persist_delivery_count_before_delivery"
            self._of_all[name] = self._report.read(kind.read, top, text.strip(), place)
        else:
            self._report.problem(f"{key} is not a property of Artemis{self._quoted(rest)}", place)

    def _path(self, key: str, place: Place) -> tuple[str, ...] | None:
        """Split a key at its dots, but for those between quotes."""
        found, rest, mark = [], self._report.text(key, place), self._surround
        while rest:
            if mark and rest.startswith(mark):
                name, end, rest = rest.removeprefix(mark).partition(mark)
                if not end or rest[:1] not in ("", "."):
                    self._report.problem(f"{key}: the {mark} before {name!r} has no second one before a dot", place)
                    return None
            else:
                name, _, rest = rest.partition(".")
                rest = rest and "." + rest
            found.append(name)
            rest = rest.removeprefix(".")
        return None if rest is None else tuple(found)

    def _skip(self, path: tuple[str, ...], key: str, text: str, place: Place) -> None:
        """Skip what is about something else; a problem where it looks as if it concerned redelivery."""
        path = path or (key,)
        top, last = path[0], path[-1]
        if top in PROPERTIES:
            self._report.skip_decisive(PROPERTIES, [(top, text, place)])
            return
        if top in _OTHER:
            return
        meant = _meant(top)
        if CONCERNS.search(top) or last in PROPERTY_NAMES or meant:
            hint = f"; did you mean {meant!r}?" if meant else ""
            if last in PROPERTY_NAMES and meant not in _SETTINGS:
                hint = f': write addressSettings."…".{last}'
            self._report.problem(f"{key} is not a property of Artemis{hint}", place)
        elif top not in self._skipped:
            self._skipped.add(top)
            self._report.skip(top, place)

    def _setting(self, key: str, rest: list[str], text: str, place: Place) -> None:
        match, *names = rest or [""]
        if not names and text == self._removes and rest:
            self._entries[match] = None
        elif text == self._removes:
            self._report.problem(f"{key}={text}: that removes what has a name, which no setting is", place)
        elif len(names) != 1:
            self._report.problem(f"{key}: name an address and a setting of it{self._quoted(rest)}", place)
        elif match in self._entries or is_match(match, self._report, place, self._matches, "artemis"):
            known = self._entries.get(match, _Override(place))
            override = self._entries[match] = _Override(place, anew=True) if known is None else known
            title = "an address-setting"
            given = self._report.settings(PROPERTY_NAMES, [(names[0], text, place)], title, concerns=CONCERNS)
            self._report.skip_decisive(PROPERTY_SETTINGS, [(names[0], text, place)])
            override.values |= {of: (value, place) for of, value in given.fields.items()}

    @property
    def _matches(self) -> Any:
        return replace(self._rules.wildcards, **self._wildcards)

    def _quoted(self, rest: list[str]) -> str:
        """Say how an address with dots is written."""
        if len(rest) < 2:
            return ""
        address, mark = ".".join(rest[:-1]), self._surround
        return f": {_SETTINGS[0]}.{mark}{address}{mark}.{rest[-1]} if the dots are those of an address"

    def _address(self, key: str, rest: list[str], text: str, place: Place) -> None:
        address, *names = rest or [""]
        if not names and text == self._removes and rest:
            self._queues = {each: queue for each, queue in self._queues.items() if each[0] != address}
        elif len(names) >= 2 and names[0] == _QUEUES:
            self._queue(key, address, names[1:], text, place)
        elif len(names) != 1 or names[0] not in _OF_ADDRESS:
            hint = did_you_mean(names[0], (_QUEUES, *_OF_ADDRESS)) if names else ""
            self._report.problem(f"{key}: name a queue, as {_ADDRESSES}.{address}.{_QUEUES}.….routingType{hint}", place)

    def _queue(self, key: str, address: str, names: list[str], text: str, place: Place) -> None:
        name, *rest = names
        at = self._addresses.get((address, name), address), name
        if not rest and text == self._removes:
            self._queues.pop(at, None)
        elif len(rest) != 1 or not address or not name:
            self._report.problem(f"{key}: name a queue and a setting of it; quote a name that has dots", place)
        else:
            usual = BoundQueue(address, name, "multicast", place=place)  # where none is given, Artemis makes this
            queue = self._queues.pop(at, usual)
            changed = self._changed(queue, rest[0], text, place)
            self._addresses[address, name] = changed.address
            self._queues[changed.address, name] = changed

    def _changed(self, queue: BoundQueue, name: str, text: str, place: Place) -> BoundQueue:
        value = self._report.text(text, place)
        if value is None:
            return queue
        if name == "routingType":
            if value not in ("ANYCAST", "MULTICAST"):
                self._report.problem(f"{name}={text!r}: use ANYCAST or MULTICAST", place)
                return queue
            return replace(queue, routing=cast(Routing, value.lower()))
        if name == "address" and value:
            return replace(queue, address=value)
        if name == "filterString":
            return replace(queue, filter=value or None)
        self._report.skip_decisive(PROPERTY_QUEUES, [(name, text, place)], names=(queue.name, queue.address))
        if nearest(name, _OF_QUEUE):
            self._report.problem(unknown_option(name, _OF_QUEUE, of="a queue"), place)
        return queue

    def _wildcard(self, key: str, name: str, text: str, place: Place) -> None:
        value = self._report.text(text, place)
        if name not in _WILDCARD_NAMES:
            if name != "routingEnabled":
                self._report.problem(unknown_option(name, _WILDCARD_NAMES, of=_WILDCARDS), place)
        elif value is not None and len(value) != 1:
            self._report.problem(f"{key}={text!r}: use one character", place)
        elif value is not None:
            self._wildcards[_WILDCARD_NAMES[name]] = value

    def rules(self) -> ArtemisRules:
        """Return the rules of the file with all of it on top."""
        left, entries = dict(self._entries), []
        for each in self._rules.entries:
            override = left.pop(each.match, None) if each.match in left else None
            if each.match not in self._entries:
                entries.append(each)
            elif override is not None and not override.anew:
                entries += self._entry(each, override)
            elif override is not None:
                left[each.match] = override
        for match, override in left.items():
            if override is not None and override.values:
                entries += self._entry(AddressEntry(match, AddressSettings(), override.place), override)
        given = {name: value for name, value in self._of_all.items() if value is not None}
        return replace(
            self._rules,
            entries=tuple(entries),
            queues=in_order(self._queues.values()),
            wildcards=self._matches,
            **given,
        )

    def _entry(self, entry: AddressEntry, override: _Override) -> Iterator[AddressEntry]:
        values: dict[str, Any] = {name: getattr(entry.settings, name) for name in entry.fields_set}
        values |= {name: value for name, (value, _) in override.values.items()}
        settings = self._report.checked(partial(AddressSettings, **values), override.place)
        places = {**entry.places, **{name: place for name, (_, place) in override.values.items()}}
        if settings is not None:
            yield AddressEntry(entry.match, settings, entry.place, places)


@lru_cache(maxsize=1024)
def _meant(top: str) -> str | None:
    return nearest(top, _TOPS)


def is_artemis_properties(root: object, file: str) -> bool:
    """Say whether keys, or the members of a JSON object, are Artemis'."""
    if isinstance(root, Json):
        return any(name.partition(".")[0] in _TOPS for name, _ in root.items())
    named = file.lower().endswith("broker.properties")
    return isinstance(root, list) and (named or any(each.key.partition(".")[0] in _TOPS for each in root))


def read_artemis_properties(root: list[Property] | Json, report: ReadingReport) -> ArtemisRules:
    """Read the rules that properties alone make, on top of Artemis' defaults; queues may be in its ``broker.xml``."""
    return apply_properties(ArtemisRules(lists_queues=False), root, report)


def apply_properties(
    rules: ArtemisRules, given: Iterable[tuple[str, str, Place]] | Json, report: ReadingReport
) -> ArtemisRules:
    """Put properties (key, value and place of each) on top of other rules, as Artemis does after it read its file.

    Raises:
        ConfigError: the other rules are not Artemis'.
    """
    if not isinstance(rules, ArtemisRules) or rules.dialect != "artemis":
        raise ConfigError(f"{rules.broker} has no broker properties: Artemis puts them upon its broker.xml")
    found = list(_flat(given, report) if isinstance(given, Json) else given)
    last = {key: value for key, value, _ in found}
    found.sort(key=lambda each: not each[0].startswith(_WILDCARDS))  # of what makes the matches of all others
    overrides = _Overrides(rules, report, last.get(_SURROUND, _QUOTE), last.get(_REMOVE, _REMOVES))
    for key, text, place in found:
        if key not in (_SURROUND, _REMOVE):
            overrides.apply(key, text, place)
    return overrides.rules()


def _flat(root: Json, report: ReadingReport) -> Iterator[Property]:
    """Make properties of JSON, where a name with dots is quoted by Artemis itself."""
    if not isinstance(root.value, dict):
        report.problem("broker properties are an object of JSON", root.place)
    yield from _members(root, "", root.member(_SURROUND, _QUOTE), report)


def _members(parent: Json, before: str, mark: str, report: ReadingReport) -> Iterator[Property]:
    for name, value in parent.items():
        plain = "." not in name or name.startswith("key.") or (name.startswith(mark) and name.endswith(mark))
        key = before + (name if plain else f"{mark}{name}{mark}")
        if not before and not plain and name.partition(".")[0] in _TOPS:
            report.problem(f"{name}: in JSON, write an object within an object for each dot", value.place)
        elif isinstance(value.value, dict) and key.count(".") < _DEEPEST:
            yield from _members(value, f"{key}.", mark, report)
        elif isinstance(value.value, (dict, list)) or value.value is None:
            report.problem(f"{key}: Artemis reads no lists and no null, and then nothing of the file", value.place)
        else:
            yield Property(key, value.text, value.place)


def properties_of(rules: ArtemisRules) -> list[str]:
    """Write the rules as lines of properties; an address setting that says nothing is left out."""
    names = {each.match for each in rules.entries} | {
        name for each in rules.queues for name in (each.address, each.name)
    }
    marks = chain([_QUOTE], ("$" * number for number in count(2)))  # what can stand around a name
    mark = next(each for each in marks if all(each not in name for name in names))
    found = [] if mark == _QUOTE else [f"{_SURROUND}={mark}"]
    if rules.max_redelivery_records is not None:
        found.append(f"{_RECORDS}={rules.max_redelivery_records}")
    if rules.wildcards != DEFAULT_WILDCARDS:
        fields = zip(WILDCARDS.values(), _WILDCARD_NAMES, strict=True)
        found += [f"{_WILDCARDS}.{name}={escaped(getattr(rules.wildcards, of))}" for of, name in fields]
    for entry in rules.counting:
        start = f"{_SETTINGS[0]}.{mark}{entry.match}{mark}"
        for name, text in written(entry.settings, PROPERTY_NAMES).items():
            found.append(f"{escaped(f'{start}.{name}', is_key=True)}={escaped(text)}")
    for queue in rules.queues:
        start = f"{_ADDRESSES}.{mark}{queue.address}{mark}.{_QUEUES}.{mark}{queue.name}{mark}."
        found.append(f"{escaped(start, is_key=True)}routingType={queue.routing.upper()}")
        if queue.filter is not None:
            found.append(f"{escaped(start, is_key=True)}filterString={escaped(queue.filter)}")
    if any(each.endswith(f"={_REMOVES}") for each in found):
        found.insert(0, f"{_REMOVE}={_REMOVES * 2}")
    if rules.persist_delivery_count_before_delivery or not found:
        found.append(f"{_PERSISTS}={str(rules.persist_delivery_count_before_delivery).lower()}")
    return found


def write_artemis_properties(rules: ArtemisRules) -> str:
    """Write the file."""
    return "".join(f"{line}\n" for line in properties_of(rules))
