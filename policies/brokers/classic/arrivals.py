"""The rules of Classic for a message as it arrives: its time to live, its persistence, and slow subscribers of a topic.

The rules are those of TimeStampingBrokerPlugin, ForcePersistencyModeBroker, TopicSubscription and the eviction
strategies of ActiveMQ 5.18.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from redelivery.model.suggestions import unknown_option
from redelivery.policies.checks import INT_MAX
from redelivery.policies.files.places import NOWHERE, Place, Setting
from redelivery.policies.files.report import ANY, ReadingReport
from redelivery.policies.files.xml import Element
from redelivery.policies.files.xml_text import Node
from redelivery.policies.kinds import FLAG, MILLISECONDS, TEXT, Names, changed, number, whole

STAMPING: Final[Names] = {
    "zeroExpirationOverride": ("zero_expiration_override", MILLISECONDS),
    "ttlCeiling": ("ttl_ceiling", MILLISECONDS),
    "futureOnly": ("future_only", FLAG),
    "processNetworkMessages": ("process_network_messages", FLAG),
}
FORCING: Final[Names] = {"persistenceFlag": ("persistence_flag", FLAG)}
_CONSTANT: Final[Names] = {"limit": ("limit", whole(-1, INT_MAX))}
_RATE: Final[Names] = {"multiplier": ("multiplier", number(0.0))}
_EVICTION: Final[Names] = {
    "propertyName": ("property_name", TEXT),
    "evictExpiredMessagesHighWatermark": ("watermark", whole(0)),
}
_OTHERS: Final = ("id", "xmlns")

Evicts: TypeAlias = Literal["oldest", "oldestWithLowestPriority", "uniqueProperty"]


@dataclass(frozen=True, slots=True)
class TimeStamping:
    """``timeStampingBrokerPlugin``: the broker's time stamp, and times to live in seconds; 0: left as they are.

    ``zero_expiration_override``: of what has none. ``ttl_ceiling``: the longest. ``future_only``: only where it makes
    a message expire later. ``process_network_messages``: what came from other brokers, too.
    """

    zero_expiration_override: float = 0.0
    ttl_ceiling: float = 0.0
    future_only: bool = False
    process_network_messages: bool = False
    place: Place = field(default=NOWHERE, compare=False)
    settings: tuple[Setting, ...] = field(default=(), compare=False)

    def stamp(self, timestamp: int, expiration: int, now: int) -> tuple[int, int]:
        """Return time stamp and expiration of a message that arrives; all in milliseconds."""
        live = expiration - timestamp if expiration > 0 else round(self.zero_expiration_override * 1000)
        ceiling = round(self.ttl_ceiling * 1000)
        if live > 0 and ceiling > 0:
            live = min(live, ceiling)
        if self.future_only and live + now <= expiration:
            return timestamp, expiration
        return now, live + now if live > 0 else expiration


@dataclass(frozen=True, slots=True)
class ForcedPersistency:
    """``forcePersistencyModeBrokerPlugin``: each message is persistent, or none is."""

    persistence_flag: bool = False
    place: Place = field(default=NOWHERE, compare=False)
    settings: tuple[Setting, ...] = field(default=(), compare=False)


Arrival: TypeAlias = TimeStamping | ForcedPersistency
ARRIVALS: Final[Mapping[str, tuple[type[Arrival], Names]]] = {
    "timeStampingBrokerPlugin": (TimeStamping, STAMPING),
    "forcePersistencyModeBrokerPlugin": (ForcedPersistency, FORCING),
}
"""Element of ``plugins`` -> its type and attributes."""


@dataclass(frozen=True, slots=True)
class PendingLimit:
    """``pendingMessageLimitStrategy``: how many messages may wait for a topic's subscriber beside its prefetch.

    ``limit``: so many, -1 for any number; ``multiplier``: its prefetch times that instead.
    """

    limit: int = -1
    multiplier: float | None = None

    def of(self, prefetch: int) -> int | None:
        """Return the limit of a subscriber with that prefetch; None: it has none."""
        found = self.limit if self.multiplier is None else int(prefetch * self.multiplier)
        return None if found < 0 else found

    def __str__(self) -> str:
        return str(self.limit) if self.multiplier is None else f"{self.multiplier:g} times its prefetch"


@dataclass(frozen=True, slots=True)
class Eviction:
    """``messageEvictionStrategy``: which message is discarded where too many wait."""

    evicts: Evicts = "oldest"
    property_name: str | None = None
    watermark: int = 1000

    def chosen(
        self, waiting: Sequence[Mapping[str, object]], priorities: Sequence[int], stamps: Sequence[int]
    ) -> list[int]:
        """Return the places of those to be discarded; ``waiting``: the properties of each, the oldest one first.

        ``uniqueProperty`` keeps the message of each value that has the latest of the ``stamps`` (of several the first
        one); where it keeps all the oldest goes.
        """
        if self.evicts == "oldestWithLowestPriority":
            return [priorities.index(min(priorities))]
        if self.evicts == "uniqueProperty" and self.property_name is not None:
            newest: dict[object, int] = {}
            for place, each in enumerate(waiting):
                value = each.get(self.property_name)
                if value is not None and (value not in newest or stamps[place] > stamps[newest[value]]):
                    newest[value] = place
            gone = [place for place in range(len(waiting)) if place not in newest.values()]
            if newest and gone:
                return gone
        return [0]


def read_arrival(element: Element, report: ReadingReport) -> Arrival:
    """Read one of the plug-ins of ARRIVALS."""
    kind, names = ARRIVALS[element.name]
    items = ((name, text, element.at(name)) for name, text in element.attributes.items())
    given = report.settings(names, items, element.name, concerns=ANY, known=_OTHERS)
    return kind(place=element.place, settings=given.settings, **given.fields)


def read_limit(entry: Element, report: ReadingReport) -> PendingLimit | None:
    """Read the ``pendingMessageLimitStrategy`` of a policy entry."""
    kinds = {"constantPendingMessageLimitStrategy": _CONSTANT, "prefetchRatePendingMessageLimitStrategy": _RATE}
    for child in (each for one in entry.all("pendingMessageLimitStrategy") for each in one.children):
        if child.name not in kinds:
            report.problem(unknown_option(child.name, kinds, of="pendingMessageLimitStrategy"), child.place)
            continue
        given = _fields(child, kinds[child.name], report)
        usual = {"multiplier": 0.5} if child.name.startswith("prefetch") else {}
        return PendingLimit(**{**usual, **given})
    return None


def read_eviction(entry: Element, report: ReadingReport) -> Eviction | None:
    """Read the ``messageEvictionStrategy`` of a policy entry."""
    kinds: dict[str, Evicts] = {
        "oldestMessageEvictionStrategy": "oldest",
        "oldestMessageWithLowestPriorityEvictionStrategy": "oldestWithLowestPriority",
        "uniquePropertyMessageEvictionStrategy": "uniqueProperty",
    }
    for child in (each for one in entry.all("messageEvictionStrategy") for each in one.children):
        if child.name not in kinds:
            report.problem(unknown_option(child.name, kinds, of="messageEvictionStrategy"), child.place)
            continue
        return Eviction(kinds[child.name], **_fields(child, _EVICTION, report))
    return None


def _fields(element: Element, names: Names, report: ReadingReport) -> dict[str, Any]:
    items = ((name, text, element.at(name)) for name, text in element.attributes.items())
    return dict(report.settings(names, items, element.name, concerns=ANY, known=_OTHERS).fields)


def write_limits(node: Node, limit: PendingLimit | None, eviction: Eviction | None) -> None:
    """Write the two strategies into a policy entry."""
    if eviction is not None:
        name = {"uniqueProperty": "uniquePropertyMessage", "oldest": "oldestMessage"}.get(
            eviction.evicts, "oldestMessageWithLowestPriority"
        )
        given = {} if eviction.property_name is None else {"propertyName": eviction.property_name}
        if eviction.watermark != Eviction().watermark:
            given["evictExpiredMessagesHighWatermark"] = str(eviction.watermark)
        node.add("messageEvictionStrategy").add(f"{name}EvictionStrategy", attributes=given)
    if limit is not None:
        kind = "constant" if limit.multiplier is None else "prefetchRate"
        given = {"limit": str(limit.limit)} if limit.multiplier is None else {"multiplier": repr(limit.multiplier)}
        node.add("pendingMessageLimitStrategy").add(f"{kind}PendingMessageLimitStrategy", attributes=given)


def notes_of_arrivals(arrivals: Sequence[Arrival]) -> Iterator[str]:
    """Say what happens to each message."""
    for each in arrivals:
        if isinstance(each, ForcedPersistency):
            says = "each message is" if each.persistence_flag else "no message, dead letters neither, is"
            yield f"forcePersistencyModeBrokerPlugin: {says} persistent"
        else:
            if each.zero_expiration_override:
                usual = f"{each.zero_expiration_override:g} s"
                yield f"timeStampingBrokerPlugin: what has no time to live expires after {usual}"
            if each.ttl_ceiling:
                yield f"timeStampingBrokerPlugin: what lives longer expires after {each.ttl_ceiling:g} s"


def lost_of_arrivals(arrivals: Sequence[Arrival]) -> Iterator[str]:
    """Say what another format leaves out."""
    for each in arrivals:
        for name, (kind, names) in ARRIVALS.items():
            if isinstance(each, kind):
                given = " ".join(f'{key}="{text}"' for key, text in changed(names, each, kind()).items())
                yield f"{name} {given}".strip() + " is lost"
