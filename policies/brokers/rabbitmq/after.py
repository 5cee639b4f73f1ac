"""The way of a dead letter that does not stay where it went: queues with a time to live, and circles of them.

RabbitMQ drops, without a word, what comes back to a queue where it has been by nothing but expiry, a full queue and the
delivery limit; what a client rejected on the way goes round without an end (seen on 3.10, 4.0 and 4.3).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final

from redelivery.policies.brokers.rabbitmq.routes import Route

CIRCLE: Final = "RabbitMQ drops what goes round in a circle in which nobody rejected it"
ENDLESS: Final = "without an end"
NOWHERE: Final = Route()
_LONGEST: Final = 10  # queues on the way


@dataclass(frozen=True, slots=True)
class Stop:
    """A queue on the way. ``ttl``, ``expires``: seconds. ``most``: messages, of which the oldest are removed first.

    ``exchange``: where its dead letters go, None for nowhere; ``route``: the queues behind that.
    """

    name: str
    ttl: float | None = None
    expires: float | None = None
    most: int | None = None
    exchange: str | None = None
    route: Route = NOWHERE

    def unmade(self, there: Collection[str] | None) -> Iterator[str]:
        """List the places of its dead letters without a queue; ``there``: the file's queues, None if not listed."""
        if self.route.unmade:
            yield self.route.unmade
        elif there is not None:
            yield from (each for each in self.route.queues if each not in there)


def afterwards(first: Stop, stop_at: Callable[[str], Stop], *, counted: bool) -> Iterator[str]:
    """Say where the dead letters of a queue (``first``) go on to; ``stop_at`` gives another one by its name.

    ``counted``: its own limit makes them dead letters, and not a client that rejects.
    """
    for target in first.route.queues:
        if target != first.name:
            yield from _waiting(first, stop_at(target), stop_at, counted=counted)
        elif not counted:
            yield f"what a client rejects comes back to {target} at once, {ENDLESS}: nothing counts how often"


def _waiting(first: Stop, at: Stop, stop_at: Callable[[str], Stop], *, counted: bool) -> Iterator[str]:
    seconds, seen = 0.0, [first.name]
    while at.ttl is not None and len(seen) < _LONGEST:
        seconds += at.ttl
        seen.append(at.name)
        after = f"after {seconds:g} s in {' and '.join(seen[1:])}"
        ends = _end(first, at, seen, counted=counted)
        if ends:
            yield f"{after} {ends}"
            return
        at = stop_at(at.route.queues[0])
    if len(seen) > 1:
        yield f"after {seconds:g} s in {' and '.join(seen[1:])} it goes on to {at.name}"
    if at.expires is not None:
        yield f"{at.name} is deleted after {at.expires:g} s without a consumer, with the dead letters in it"
    if at.most is not None:
        yield f"{at.name} holds {at.most} messages: a dead letter more, and the oldest one is gone"


def _end(first: Stop, at: Stop, seen: list[str], *, counted: bool) -> str:
    """Say what happens to it where it does not just go on to one queue that it has not seen."""
    if at.exchange is None:
        return f"a dead letter is removed, as {at.name} has no dead-letter-exchange"
    if at.route.lost:
        return f"a dead letter is removed: {at.route.lost}"
    if first.name in at.route.queues and counted:
        return f"it would come back to {first.name}, but {CIRCLE}: it is lost then"
    if first.name in at.route.queues:
        return f"it comes back to {first.name}, and so on {ENDLESS}: nothing counts how often"
    if set(seen) & set(at.route.queues):
        return f"it is lost: {CIRCLE}"
    if len(at.route.queues) != 1 or at.route.maybe:
        return f"it goes on to {at.route.text(at.exchange)}"
    return ""
