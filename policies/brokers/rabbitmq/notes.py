"""The rest that there is to know of a queue of RabbitMQ, in sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from redelivery.policies.brokers.rabbitmq.after import Stop, afterwards
from redelivery.policies.brokers.rabbitmq.effective import is_at_least_once
from redelivery.policies.brokers.rabbitmq.routes import Key, Route
from redelivery.policies.brokers.rabbitmq.values import (
    CLASSIC,
    DEFAULT_DELIVERY_LIMIT,
    ENDLESS,
    QUORUM,
    STREAM,
    RabbitLevel,
    RabbitPolicy,
    RabbitQueue,
)
from redelivery.policies.brokers.rules import no_queue

_MOST_WAYS: Final = 5
_NOT_OF_OPERATORS: Final = ("dead-letter-exchange", "dead-letter-routing-key", "dead-letter-strategy")
_QUORUM_ONLY: Final = ("delivery-limit", "dead-letter-strategy", "delayed-retry-type")


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """A queue, and the facts that were found of it.

    ``listed``: whether the file names it. ``default_kind``: of its virtual host. ``version``: empty if not known.
    ``policies``: of its virtual host. ``stop``: where its dead letters go; ``stop_at``: the same of another queue.
    ``otherwise``: the summary if it were of another type. ``makes``: the queues of the file, None where it lists none.
    ``ways``: exchanges that lead to it, the keys of what comes from there, and where that goes as a dead letter.
    """

    queue: RabbitQueue
    listed: bool
    default_kind: str | None
    version: tuple[int, ...]
    level: RabbitLevel
    policies: tuple[RabbitPolicy, ...]
    stop: Stop
    stop_at: Callable[[str], Stop]
    otherwise: Callable[[str], str]
    makes: frozenset[str] | None
    ways: tuple[tuple[str, Key, Route], ...]


def notes(facts: QueueFacts) -> Iterator[str]:
    """Iterate over the sentences, the most important first."""
    if not facts.listed:
        yield from _supposed(facts)
    yield from _of_policies(facts)
    if facts.queue.kind == STREAM:
        yield "a stream has no dead letters, and what a client releases or rejects has no effect on it"
        return
    yield from _of_limit(facts)
    if facts.level.dead_letter_exchange is not None:
        yield from _of_dead_letters(facts)
    elif facts.level.dead_letter_routing_key is not None or facts.level.dead_letter_strategy is not None:
        yield "without a dead-letter-exchange the other dead-letter settings have no effect"
    yield from _of_times(facts)
    yield from _of_length(facts)


def _supposed(facts: QueueFacts) -> Iterator[str]:
    kind = facts.queue.kind
    why = (
        f"the default_queue_type of virtual host {facts.queue.virtual_host!r}"
        if facts.default_kind
        else "what RabbitMQ makes where nothing says otherwise"
    )
    yield f"the file does not name this queue: a {kind} queue is supposed, {why}"
    other = CLASSIC if kind == QUORUM else QUORUM
    yield f"if it is a {other} queue: {facts.otherwise(other)}"


def _of_policies(facts: QueueFacts) -> Iterator[str]:
    name, kind = facts.queue.name, facts.queue.kind
    matching = [each for each in facts.policies if each.matches(name, kind)]
    for each in matching:
        unknown = each.unknown_to(kind)
        title = "operator policy" if each.operator else "policy"
        for setting in each.level.names() if each.operator else ():
            if setting in _NOT_OF_OPERATORS:
                yield f"RabbitMQ refuses {title} {each.name!r}, as it has {setting}"
        if unknown and any(each.level.names()):
            yield f"{title} {each.name!r} has no effect on a {kind} queue, which has no {unknown[0]}"
    for operator in (False, True):
        counting = [each for each in matching if each.operator == operator and not each.unknown_to(kind)]
        highest = max((each.priority for each in counting), default=0)
        alike = [repr(each.name) for each in counting if each.priority == highest]
        if len(alike) > 1:
            yield f"policies {' and '.join(alike)} have the same priority: RabbitMQ takes any one of them"


def _of_limit(facts: QueueFacts) -> Iterator[str]:
    limit, version = facts.level.delivery_limit, facts.version
    if facts.queue.kind != QUORUM:
        yield "a classic queue counts nothing: what a client rejects without requeueing is a dead letter at once"
        argued = facts.queue.level.names()
        yield from (f"RabbitMQ refuses a classic queue with x-{each}" for each in argued if each in _QUORUM_ONLY)
        return
    if limit is None:
        yield f"no delivery-limit is set: {DEFAULT_DELIVERY_LIMIT} from RabbitMQ 4.0 on, none before"
    elif limit < 0 and (not version or version < (4, 0)):
        yield "RabbitMQ 3 refuses a delivery-limit below 0"
    elif limit >= ENDLESS:
        yield f"a delivery-limit of {limit} is as good as none: RabbitMQ 3 refuses -1, and 4 has one where none is set"
    if version >= (4, 3):
        yield "only failures count: what a client releases, or NACKs over STOMP, does not"
    elif version:
        yield "each return counts, also of what was released, or only prefetched when a connection ended"
    if facts.level.delayed_retry_type is not None and version and version < (4, 3):
        yield "RabbitMQ has delayed-retry from 4.3 on"


def _of_dead_letters(facts: QueueFacts) -> Iterator[str]:
    level, stop, quorum = facts.level, facts.stop, facts.queue.kind == QUORUM
    exchange = stop.exchange or ""
    if quorum and level.dead_letter_strategy == "at-least-once":
        if level.overflow == "reject-publish":
            yield "at-least-once: a dead letter stays in the queue until its target has it"
        else:
            yield "dead-letter-strategy at-least-once needs overflow reject-publish: at-most-once counts"
    if stop.route.unknown and exchange:
        yield f"the file does not say where exchange {exchange!r} leads"
    if not is_at_least_once(facts.queue, level):
        yield from map(no_queue, stop.unmade(facts.makes))
    ways = dict.fromkeys((way, key.text, route) for way, key, route in facts.ways)
    for way, key, route in [each for each in ways if each[2] != stop.route][:_MOST_WAYS]:
        if facts.queue.name in route.queues and quorum:
            continue  # its own circle, of which the fate says it
        what = f"comes by exchange {way!r} with {key!r}" if way else "is sent to the queue itself"
        text = route.text(exchange)
        yield f"a dead letter of what {what} {f'is removed: {route.lost}' if text is None else f'goes to {text}'}"
    yield from afterwards(stop, facts.stop_at, counted=quorum)


def _of_times(facts: QueueFacts) -> Iterator[str]:
    level = facts.level
    if level.message_ttl is not None and level.dead_letter_exchange is not None:
        yield "message-ttl dead-letters what nobody takes in time"
    elif level.message_ttl is not None:
        yield "message-ttl removes what nobody takes in time"
    if level.expires is not None:
        yield "expires deletes the queue when it has had no consumer for so long: what is in it is no dead letter"


def _of_length(facts: QueueFacts) -> Iterator[str]:
    level = facts.level
    given = {"max-length": level.max_length, "max-length-bytes": level.max_length_bytes}
    most = " or ".join(name for name, number in given.items() if number is not None)
    if not most:
        return
    overflow, dead = level.overflow or "drop-head", level.dead_letter_exchange is not None
    if overflow == "reject-publish-dlx" and facts.queue.kind == QUORUM:
        yield "a quorum queue does not know overflow reject-publish-dlx: drop-head counts"
        overflow = "drop-head"
    match overflow:
        case "reject-publish":
            yield f"beyond {most} a send is refused, and nothing becomes a dead letter"
        case "reject-publish-dlx":
            fate = "is a dead letter" if dead else "is removed"
            yield f"beyond {most} a send is refused, and what was sent {fate}"
        case _:
            yield f"beyond {most} the oldest message {'is a dead letter' if dead else 'is removed'}"
