"""Reads a broker's reports of its queues and its clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from redelivery.operate.doctor.findings import Finding
from redelivery.operate.management.interface import ManagedQueue

LARGEST_SKEW: Final = 2.0  # seconds
ALIKE: Final = 5
"""Findings of one kind that are one."""
_SHOWN: Final = 3  # queues of such a one that are named
_DEAD: Final = re.compile(r"dlq|\bdla\b|dead[._-]?letter", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ObservedQueue:
    """The numbers of one queue; None where the broker does not say one.

    ``messages``: on the queue, of which consumers have ``in_flight``, and ``held_back`` wait for the time of their
    delivery: a redelivery's, or a sender's. ``enqueued`` and ``dequeued`` are counts since the queue was made or the
    broker started. ``address``: on Artemis.
    """

    name: str
    messages: int | None
    consumers: int | None = None
    address: str | None = None
    in_flight: int | None = None
    held_back: int | None = None
    enqueued: int | None = None
    dequeued: int | None = None

    @property
    def depth(self) -> int:
        """The number of messages; 0, too, where the broker has not said it yet."""
        return self.messages or 0


def observed(queue: ManagedQueue) -> ObservedQueue:
    """The numbers that a broker's management shows of a queue."""
    return ObservedQueue(
        queue.name,
        queue.messages,
        queue.consumers,
        queue.address,
        in_flight=queue.unacknowledged,
        held_back=queue.held_back,
        enqueued=queue.enqueued,
        dequeued=queue.dequeued,
    )


def is_called_dead(name: str) -> bool:
    """Check whether a queue's name says that it holds dead letters."""
    return _DEAD.search(name) is not None


def check_queues(
    before: Mapping[str, ObservedQueue],
    after: Mapping[str, ObservedQueue],
    dead_letters: frozenset[str],
    asked: frozenset[str] = frozenset(),
) -> Iterator[Finding]:
    """The findings of queues that were looked at twice; five of one kind or more are one.

    ``dead_letters``: which of them, or of their addresses, hold dead letters; beside those that are called so.
    ``asked``: of which the user wants to know: up to four of them are findings of their own in any case.
    """
    kinds: dict[tuple[bool, bool, bool], list[tuple[ObservedQueue, int]]] = {}
    for name, state in after.items():
        grew = state.depth - before[name].depth if name in before else 0
        if state.depth <= 0 or state.consumers or (state.consumers is None and grew < 0):
            continue  # there are none, or somebody reads them
        dead = name in dead_letters or state.address in dead_letters or is_called_dead(name)
        if dead or state.consumers == 0:
            kinds.setdefault((dead, dead and grew > 0, state.consumers is None), []).append((state, grew))
    for (dead, grows, unknown), found in kinds.items():
        found.sort(key=lambda each: -each[0].depth)
        for part in _alike(found, asked):
            yield _dead_letters(part, grows, unknown) if dead else _backlog(part)


def _alike(found: list[tuple[ObservedQueue, int]], asked: frozenset[str]) -> Iterator[list[tuple[ObservedQueue, int]]]:
    own = [each for each in found if each[0].name in asked]
    others = [each for each in found if each[0].name not in asked]
    if len(own) >= ALIKE:
        own, others = [], found
    yield from ([each] for each in own)
    yield from [others] if others and len(found) >= ALIKE else ([each] for each in others)


def _dead_letters(found: Sequence[tuple[ObservedQueue, int]], grows: bool, unknown: bool) -> Finding:
    number, grew = sum(state.depth for state, _ in found), sum(more for _, more in found)
    growing = f", {grew} more than a moment ago" if grows else ""
    unread = "" if unknown else ", and nobody reads them"
    return Finding(
        "error" if grows else "warning",
        "dead-letters",
        f"{number} dead letter{' is' if number == 1 else 's are'} in {_places(found)}{growing}{unread}",
        "each is work that was not done, and they fill the broker",
        "read them, then send them again or delete them; watch the depth of "
        + (found[0][0].name if len(found) == 1 else "these queues"),
    )


def _backlog(found: Sequence[tuple[ObservedQueue, int]]) -> Finding:
    number = sum(state.depth for state, _ in found)
    have = "which has no consumer" if len(found) == 1 else "which have no consumer"
    return Finding(
        "warning",
        "backlog",
        f"{number} message{' is' if number == 1 else 's are'} in {_places(found)}, {have}",
        "nobody works on them, and they fill the broker",
        "start its consumer, or stop sending to it",
    )


def _places(found: Sequence[tuple[ObservedQueue, int]]) -> str:
    """The queue's name, or the number of queues, and the longest of them."""
    if len(found) == 1:
        return found[0][0].name
    longest = ", ".join(f"{state.name} ({state.depth})" for state, _ in found[:_SHOWN])
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return f"{len(found)} queues ({longest}{more})"


def check_bound(dead_letter_addresses: Iterable[str], queues: Mapping[str, ObservedQueue]) -> Iterator[Finding]:
    """The dead-letter addresses that no queue is bound to, where these are all queues of an Artemis broker.

    Of an address with ``::`` the broker makes the queue itself.
    """
    bound = {each.address for each in queues.values()}
    missing = [each for each in dict.fromkeys(dead_letter_addresses) if "::" not in each and each not in bound]
    if not bound - {None}:
        return
    for part in [missing] if len(missing) >= ALIKE else [[each] for each in missing]:
        more = "" if len(part) == 1 else f", {', '.join(part[1:_SHOWN])} and {len(part) - _SHOWN} more"
        yield Finding(
            "error",
            "unbound",
            f"the broker has no queue on the dead-letter address {part[0]}{more}",
            "a dead letter without a queue is removed",
            "make a queue on the dead-letter address, or let the broker create them",
        )


def check_clock(skew: float) -> Iterator[Finding]:
    """``skew``: seconds by which the broker's clock is ahead."""
    if abs(skew) > LARGEST_SKEW:
        yield Finding(
            "warning",
            "clock",
            f"the broker's clock is {abs(skew):.1f} s {'ahead of' if skew > 0 else 'behind'} this machine's",
            "messages with a time to live expire too early or too late, and delayed ones come at the wrong time",
            "let both machines take the time from NTP",
        )
