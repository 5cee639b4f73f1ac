"""The values that a file of RabbitMQ's definitions holds: policies, queues, exchanges, bindings and virtual hosts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from redelivery.policies.brokers.rabbitmq.names import NAMES, plain_json, written
from redelivery.policies.checks import expression
from redelivery.policies.files.places import NOWHERE, Place, Setting

CLASSIC: Final = "classic"
QUORUM: Final = "quorum"
STREAM: Final = "stream"
KINDS: Final = (CLASSIC, QUORUM, STREAM)
DEFAULT_DELIVERY_LIMIT: Final = 20  # of quorum queues, from 4.0 on
ENDLESS: Final = 2**31 - 1
"""A delivery-limit from here on is taken as none. RabbitMQ 3 refuses -1, and 4 has the default where nothing is said;
3.10, 4.0 and 4.3 take this one."""

_APPLIES: Final[Mapping[str, tuple[str, ...]]] = {
    "all": KINDS,
    "queues": KINDS,
    "classic_queues": (CLASSIC,),
    "quorum_queues": (QUORUM,),
    "streams": (STREAM,),
}
_OF_STREAMS: Final = frozenset({"max-age", "stream-max-segment-size-bytes", "initial-cluster-size"})
_OF_QUORUM: Final = frozenset(
    {"delivery-limit", "dead-letter-strategy", "max-in-memory-length", "max-in-memory-bytes", "target-group-size"}
)
_OF_CLASSIC: Final = frozenset(
    {
        *("max-priority", "queue-mode", "queue-master-locator"),
        *("ha-mode", "ha-params", "ha-sync-mode", "ha-promote-on-shutdown", "ha-promote-on-failure"),
    }
)
_NOT_OF_STREAMS: Final = frozenset(
    {"expires", "message-ttl", "dead-letter-exchange", "dead-letter-routing-key", "max-length", "overflow"}
)
_UNKNOWN_TO: Final[Mapping[str, frozenset[str]]] = {
    CLASSIC: _OF_STREAMS | _OF_QUORUM,
    QUORUM: _OF_STREAMS | _OF_CLASSIC,
    STREAM: _OF_CLASSIC | _OF_QUORUM | _NOT_OF_STREAMS,
}
RESTRICTING: Final = _OF_STREAMS | _OF_QUORUM | _OF_CLASSIC
"""Settings that a kind of queue does not have: a policy with one of them has no effect on such a queue, as a whole."""


@dataclass(frozen=True, slots=True)
class RabbitLevel:
    """The values that a policy or the arguments of a queue set; None where they say nothing.

    ``delivery_limit``: failures that are redelivered; below 0, or from `ENDLESS` on, for no limit.
    ``message_ttl``, ``expires``: seconds.
    ``dead_letter_exchange``: "" is the default exchange, which routes to the queue named by the routing key.
    ``max_length``, ``max_length_bytes``, ``overflow``: of the queue. ``alternate_exchange``: of an exchange.
    ``delayed_retry_type``, ``_min``, ``_max``: RabbitMQ 4.3's delays (seconds): the minimum times the count, at most
    the maximum.
    """

    dead_letter_exchange: str | None = None
    dead_letter_routing_key: str | None = None
    dead_letter_strategy: str | None = None
    delivery_limit: int | None = None
    message_ttl: float | None = None
    delayed_retry_type: str | None = None
    delayed_retry_min: float | None = None
    delayed_retry_max: float | None = None
    expires: float | None = None
    max_length: int | None = None
    max_length_bytes: int | None = None
    overflow: str | None = None
    alternate_exchange: str | None = None
    place: Place = field(default=NOWHERE, compare=False)
    settings: tuple[Setting, ...] = field(default=(), compare=False)

    @property
    def names_a_key(self) -> bool:
        """True where it says where dead letters go, whatever queue they come from."""
        return self.dead_letter_exchange is not None and self.dead_letter_routing_key is not None

    def names(self) -> Iterator[str]:
        """Iterate over what it sets, as a policy spells it."""
        return (name for name, (each, _) in NAMES.items() if getattr(self, each) is not None)


@dataclass(frozen=True, slots=True)
class RabbitPolicy:
    """A policy; of those that match a queue the one of the highest ``priority`` counts, as a whole.

    ``operator``: an operator's policy, which counts beside the users' one. ``others``: its settings that say nothing
    about dead letters, and that some kinds of queue do not have.
    """

    name: str
    pattern: str
    level: RabbitLevel = RabbitLevel()
    virtual_host: str = "/"
    apply_to: str = "all"
    priority: int = 0
    operator: bool = False
    others: tuple[tuple[str, Any], ...] = ()

    @property
    def title(self) -> str:
        """``operator policy 'name'``."""
        return f"{'operator policy' if self.operator else 'policy'} {self.name!r}"

    @property
    def definition(self) -> dict[str, Any]:
        """The settings as JSON has them."""
        return {**written(self.level), **{name: plain_json(value) for name, value in self.others}}

    def matches(self, queue: str, kind: str) -> bool:
        """Say whether it is meant for queues of this name and type."""
        return kind in _APPLIES.get(self.apply_to, ()) and expression(self.pattern).search(queue) is not None

    def unknown_to(self, kind: str) -> tuple[str, ...]:
        """List its settings that this type of queue does not have; with one of them, the policy has no effect on it."""
        names = (*self.level.names(), *(name for name, _ in self.others))
        return tuple(each for each in names if each in _UNKNOWN_TO.get(kind, frozenset()))

    def applies(self, queue: str, kind: str) -> bool:
        """Say whether it has an effect on a queue of this name and type."""
        return self.matches(queue, kind) and not self.unknown_to(kind)

    def applies_to_exchange(self, exchange: str) -> bool:
        """Say whether it is about an exchange of this name."""
        return self.apply_to in ("all", "exchanges") and expression(self.pattern).search(exchange) is not None


@dataclass(frozen=True, slots=True)
class RabbitQueue:
    """A queue of the file. ``kind``: ``classic``, ``quorum`` or ``stream``; ``level``: its arguments."""

    name: str
    kind: str = CLASSIC
    level: RabbitLevel = RabbitLevel()
    virtual_host: str = "/"


@dataclass(frozen=True, slots=True)
class RabbitExchange:
    """An exchange of the file. ``alternate``: the exchange that gets what leads nowhere."""

    name: str
    kind: str = "direct"
    virtual_host: str = "/"
    alternate: str | None = None


@dataclass(frozen=True, slots=True)
class RabbitBinding:
    """A binding of a queue, or of an exchange (``to_exchange``), to an exchange.

    ``arguments``: what a headers exchange compares.
    """

    exchange: str
    queue: str
    routing_key: str = ""
    virtual_host: str = "/"
    to_exchange: bool = False
    arguments: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class RabbitHost:
    """A virtual host of the file. ``default_kind``: of a queue whose declaration does not say its type."""

    name: str
    default_kind: str | None = None
