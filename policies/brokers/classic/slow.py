"""The rules of Classic that end slow consumers: ``abortSlowConsumerStrategy`` and ``abortSlowAckConsumerStrategy``.

As of ActiveMQ 5.18: AbortSlowConsumerStrategy, AbortSlowAckConsumerStrategy, TopicSubscription.add.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from redelivery.model.destinations import Destination, Topic
from redelivery.policies.brokers.classic.arrivals import Eviction, PendingLimit
from redelivery.policies.checks import INT_MAX, LONG_MAX, read_whole
from redelivery.policies.files.report import ANY, ReadingReport
from redelivery.policies.files.xml import Element
from redelivery.policies.files.xml_text import Node
from redelivery.policies.kinds import FLAG, MILLISECONDS, Kind, Names, changed, whole

_NONE: Final = -1.0
_WHY: Final = "a slow consumer is disconnected, and what it had is redelivered"
_KNOWN: Final = ("id", "xmlns", "name")


def _limit(name: str, text: str) -> float:
    milliseconds = read_whole(name, text, -LONG_MAX, LONG_MAX)
    return _NONE if milliseconds < 0 else milliseconds / 1000


_LIMIT: Final = Kind(_limit, lambda seconds: "-1" if seconds < 0 else MILLISECONDS.spell(seconds))
_PERIOD: Final = Kind(lambda name, text: read_whole(name, text, 1, LONG_MAX) / 1000, MILLISECONDS.spell)
_BY_SIZE: Final[Names] = {
    "maxSlowCount": ("max_slow_count", whole(-1, INT_MAX)),
    "maxSlowDuration": ("max_slow_duration", _LIMIT),
    "checkPeriod": ("check_period", _PERIOD),
    "abortConnection": ("abort_connection", FLAG),
    "ignoreNetworkConsumers": ("ignore_network_consumers", FLAG),
}
_BY_ACKS: Final[Names] = {
    **_BY_SIZE,
    "maxTimeSinceLastAck": ("max_time_since_last_ack", _LIMIT),
    "ignoreIdleConsumers": ("ignore_idle_consumers", FLAG),
}
_KINDS: Final = {"abortSlowConsumerStrategy": _BY_SIZE, "abortSlowAckConsumerStrategy": _BY_ACKS}


@dataclass(frozen=True, slots=True)
class SlowConsumers:
    """``slowConsumerStrategy``: a consumer that is slow ends, or its connection. Durations in seconds, -1 for no limit.

    ``by_acks``: it is slow if it has acknowledged nothing for longer than ``max_time_since_last_ack`` and has messages
    (with ``ignore_idle_consumers=False`` also if it has none). Else a subscriber of a topic is, for which more than its
    prefetch waits beside that, and a durable one that has no room.
    It ends when it was slow for ``max_slow_duration``, or found slow ``max_slow_count`` times, by checks that are made
    each ``check_period``.
    """

    by_acks: bool = False
    max_slow_count: int = -1
    max_slow_duration: float = 30.0
    check_period: float = 30.0
    abort_connection: bool = False
    ignore_network_consumers: bool = True
    max_time_since_last_ack: float = 30.0
    ignore_idle_consumers: bool = True

    @property
    def ends_some(self) -> bool:
        """False: no limit is set, so that none ends."""
        limited = self.max_slow_count > 0 or self.max_slow_duration > 0
        return limited and not (self.by_acks and self.max_time_since_last_ack < 0)

    @property
    def name(self) -> str:
        """The element's name."""
        return "abortSlowAckConsumerStrategy" if self.by_acks else "abortSlowConsumerStrategy"

    def __str__(self) -> str:
        given = " ".join(f'{name}="{text}"' for name, text in self.attributes.items())
        return f"{self.name} {given}".strip()

    @property
    def attributes(self) -> dict[str, str]:
        """The settings that differ from the defaults, by the names of the attributes."""
        return changed(_KINDS[self.name], self, SlowConsumers())


def read_slow(entry: Element, report: ReadingReport) -> SlowConsumers | None:
    """Read the ``slowConsumerStrategy`` of a policy entry; one of another class is said to be not read."""
    for child in (each for one in entry.all("slowConsumerStrategy") for each in one.children):
        if child.name not in _KINDS:
            report.skip(f"slowConsumerStrategy = {child.name}", child.place, _WHY, part=entry.place)
            continue
        items = ((name, text, child.at(name)) for name, text in child.attributes.items())
        given = report.settings(_KINDS[child.name], items, child.name, concerns=ANY, known=_KNOWN)
        return SlowConsumers(by_acks="Ack" in child.name, **given.fields)
    return None


def write_slow(node: Node, slow: SlowConsumers | None) -> None:
    """Write the strategy into a policy entry."""
    if slow is not None:
        node.add("slowConsumerStrategy").add(slow.name, attributes=slow.attributes)


class SlowRules(Protocol):
    """The rules of slow consumers, as `ClassicRules` has them."""

    def slow_subscribers_of(self, topic: Destination) -> tuple[PendingLimit, Eviction] | None: ...  # noqa: D102  # see there

    def slow_consumers_of(self, destination: Destination) -> SlowConsumers | None: ...  # noqa: D102


def notes_of_slow(rules: SlowRules, destination: Destination) -> Iterator[str]:
    """Say what slow consumers of a destination lose, and which end."""
    is_topic = isinstance(destination, Topic)
    found = rules.slow_subscribers_of(destination) if is_topic else None
    if found is not None and found[0].of(1) is not None:
        evicted = "it is removed" if found[0].limit == 0 else "it is a dead letter if it is persistent"
        yield f"of more than {found[0]} that wait for a subscriber which is not durable one is evicted: {evicted}"
    slow = rules.slow_consumers_of(destination)
    if slow is not None:
        yield _note(slow, is_topic=is_topic)


def _note(slow: SlowConsumers, *, is_topic: bool) -> str:
    if not slow.ends_some:
        return f"{slow.name}: no limit is set, so that no consumer ends"
    if not (slow.by_acks or is_topic):
        return f"{slow.name}: on a queue no consumer of STOMP or AMQP is ever slow"
    ends = "the connection of a consumer ends" if slow.abort_connection else "a consumer ends"
    if slow.by_acks:
        having = " and has messages" if slow.ignore_idle_consumers else ""
        who = f"that has acknowledged nothing for {slow.max_time_since_last_ack:g} s{having}"
    else:
        who = "for which more than its prefetch waits, or that is durable and has no room,"
    longest = [f"for {slow.max_slow_duration:g} s"] if slow.max_slow_duration > 0 else []
    often = [f"in {slow.max_slow_count} checks"] if slow.max_slow_count > 0 else []
    return f"{slow.name}: {ends} {who} {' or '.join(longest + often)}: what it had is redelivered"
