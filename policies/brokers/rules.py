"""The meaning of a broker's configuration for one destination, in the same words for every broker."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import ClassVar, Final, Literal, Self, TypeAlias

from redelivery.model.destinations import Destination, Queue, Topic
from redelivery.model.errors import InvalidDestinationError
from redelivery.policies.activemq.back_off import Random
from redelivery.policies.dead_letters import (
    BrokerDeadLetterStrategy,
    DeadLetterStrategy,
    DiscardingDeadLetterStrategy,
    SharedDeadLetterStrategy,
)
from redelivery.policies.destinations.examples import OTHER
from redelivery.policies.destinations.overlaps import is_exact
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.files.durations import seconds_text, time_text
from redelivery.policies.files.places import NOWHERE, Place, Setting, Unread
from redelivery.policies.prefetch import PrefetchPolicy
from redelivery.policies.redelivery import RedeliveryPolicy

LISTED: Final = 1000  # delays that are listed where the number of deliveries is limited
LISTED_WITHOUT_LIMIT: Final = 12
OTHERS: Final = (OTHER, "Z", "0-9")  # that a regular expression for all queues matches

# Draws of collision avoidance: the side to which a delay is moved, then how far: almost the whole way.
_SHORTEST: Final = (0.0, 1 - 1e-12)
_LONGEST: Final = (0.9, 1 - 1e-12)

Counts: TypeAlias = Literal["deliveries", "failures", "give-ups"]
"""What a broker counts: every delivery; deliveries that a client returned as failed; or poison acknowledgements, with
which a client says that its own redelivery policy is used up."""


class Address(Destination):
    """An address of Artemis or HornetQ by its very name, which nothing is put before. ``str()`` gives ``address:name``.

    It is something to ask for, not to send to.
    """

    __slots__ = ()
    scheme: ClassVar[str] = "address"

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InvalidDestinationError("the name of an address is empty: write address:NAME")

    def __str__(self) -> str:
        return f"{self.scheme}:{self.name}"

    @property
    def destination(self) -> Destination:
        """The queue or topic of a JMS client that has this address."""
        found = _CLIENTS_NAME.match(self.name)
        return Queue(self.name) if found is None else (Topic if found[1] == "topic" else Queue)(found[2])


# How JMS and STOMP name the address of a queue or topic.
_CLIENTS_NAME: Final = re.compile(r"(?:jms\.|/)(queue|topic)[./](.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Delay:
    """Seconds before one redelivery, and the bounds between which collision avoidance moves them."""

    seconds: float
    least: float
    most: float


@dataclass(frozen=True, slots=True)
class Matched:
    """A part of the file that applies to the destination."""

    title: str
    place: Place | None = None

    def __str__(self) -> str:
        return f"{self.title} ({self.place})" if self.place not in (None, NOWHERE) else self.title


@dataclass(frozen=True, slots=True)
class DestinationRules:
    """The fate of a message of ``destination`` that fails again and again; ``str()`` explains it.

    ``broker``: its name. ``counts``: what is counted. ``maximum``: how many of these until the message is a dead
    letter, the last one included; None for no limit.
    ``delays``: before each redelivery, in order; without a limit the first 12.
    ``dead_letter``: the address where it goes then; None where it is removed, and ``removed_because`` says why.
    ``expired``: the address where it goes if it expires; None where it is removed.
    ``matched``: the parts of the file that apply, in the order in which they are asked. ``settings``: the settings
    that count. ``notes``: what else there is to know. ``kept``: it is not removed, but stays where it is.
    ``several``: the queues behind ``dead_letter``, where that is not the name of one. ``not_read``: what else of the
    file decides about this destination, and is not modelled.
    """

    broker: str
    destination: Destination
    counts: Counts
    maximum: int | None
    delays: tuple[Delay, ...]
    dead_letter: str | None
    removed_because: str = ""
    expired: str | None = None
    matched: tuple[Matched, ...] = ()
    settings: tuple[Setting, ...] = ()
    notes: tuple[str, ...] = ()
    kept: bool = False
    several: tuple[str, ...] | None = None
    not_read: tuple[Unread, ...] = field(default=(), compare=False)

    @property
    def dead_letter_queues(self) -> tuple[str, ...]:
        """The queues, or addresses, that get it then; none where it is removed, or where it depends on the message."""
        if self.several is not None:
            return self.several
        return () if self.dead_letter is None else (self.dead_letter,)

    @property
    def summary(self) -> str:
        """``7 deliveries over 31.5 s ± 15 %, then ActiveMQ.DLQ``."""
        if self.counts == "give-ups" and self.maximum == 1:
            policy = RedeliveryPolicy()
            delays = listed_delays(policy.delay, policy.maximum_redeliveries + 1)
            client = f"{policy.maximum_redeliveries + 1} deliveries{duration_text(delays)}"
            return f"as the client's policy says (by default {client}), then {self.fate}"
        if self.maximum is None:
            waits = ", ".join(time_text(each.seconds) for each in self.delays[:4])
            return f"{self.counts} without a limit, redelivered after {waits}, …"
        return f"{counted(self.maximum, self.counts)}{duration_text(self.delays)}, then {self.fate}"

    @property
    def fate(self) -> str:
        """The place where a message ends that has failed for good."""
        return self.dead_letter or f"{'kept' if self.kept else 'removed'} ({self.removed_because})"

    def __str__(self) -> str:
        asked = ", ".join(map(str, self.matched)) or "nothing matches, so the defaults count"
        lines = [f"{self.destination} ({self.broker}): {self.summary}", f"asked in this order: {asked}"]
        lines += [*map(str, self.settings), f"what expires: {self.expired or ('kept' if self.kept else 'removed')}"]
        return "\n  ".join([*lines, *(f"note: {each}" for each in self.notes), *(each.line for each in self.not_read)])


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The times to live of messages, and where they go when they expire.

    ``expired``: True: they become dead letters as the others do; False: they are removed; or where else they go.
    ``least``, ``most``: seconds to which a shorter or longer time to live is changed; ``most`` is also that of messages
    that have none. None: no bound.
    """

    expired: bool | str = False
    least: float | None = None
    most: float | None = None


class Rules(ABC):
    """The rules that are read of a broker's configuration: its own values, with answers in the same words for all.

    ``broker``: the broker's name. ``dialect``: what `redelivery.connect` calls it. ``is_client``: it is a client, which
    leaves the rest to its broker; ``prefetch``, ``non_blocking``: what its configuration says beside its policy.
    ``returning``: a client's, that redelivers nothing by itself, and returns to its broker what failed.
    ``makes_queues``: the broker, or its clients, make the queues that are used and are not there. ``of_queues``: what
    it says is about queues by their names, and no subscription to a topic has such a name: the broker makes one up.
    """

    __slots__ = ()
    is_client: ClassVar[bool] = False
    of_queues: ClassVar[bool] = False

    @property
    @abstractmethod
    def broker(self) -> str: ...  # noqa: D102  # the class says it

    @property
    @abstractmethod
    def dialect(self) -> str: ...  # noqa: D102  # the class says it

    @property
    def prefetch(self) -> PrefetchPolicy | None:  # noqa: D102  # the class says it
        return None

    @property
    def non_blocking(self) -> bool | None:  # noqa: D102  # the class says it
        return None

    @property
    def returning(self) -> bool:  # noqa: D102  # the class says it
        return False

    def address_of(self, destination: Destination) -> str | None:
        """Return the address that a destination has; None where a broker has none."""
        del destination
        return None

    @abstractmethod
    def rules_for(self, destination: Destination) -> DestinationRules:
        """Return what counts for one destination."""

    @abstractmethod
    def redelivery_policies(self) -> RedeliveryPolicyMap:
        """Return the policies of a client that redelivers by itself as this broker does."""

    @abstractmethod
    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        """Return the strategies of a client that dead-letters as this broker does."""

    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """List the destinations and patterns that the file names, each once."""

    def policy_for(self, destination: Destination) -> RedeliveryPolicy | None:
        """Return a client's policy for a destination; None: it redelivers nothing itself, and its broker does."""
        return self.redelivery_policies().policy_for(destination)

    def lifetime(self, key: str) -> Lifetime | None:
        """Return the times to live of a destination or pattern; None: the client's strategy says what expires."""
        del key
        return None

    def letter_queues(self, destination: Destination) -> tuple[str, ...]:
        """List the queues that get the dead letters of a destination, as far as the file says that they are there."""
        return self.rules_for(destination).dead_letter_queues

    def queues_by_host(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """List the virtual hosts with their queues, the default one first; none where a broker has none."""
        return ()

    @property
    def makes_queues(self) -> bool:  # noqa: D102  # the class says it
        return True

    def unmade(self) -> tuple[str, ...]:
        """List the targets of dead letters, and of what expires, behind which no queue stands in this file.

        Without those for which the broker makes a queue by itself.
        """
        return ()

    def selectors(self) -> tuple[tuple[str, str, Place], ...]:
        """List the queues that the file makes with a filter: name, filter and place of each."""
        return ()

    def expressions(self) -> Iterable[tuple[str, Mapping[str, object]]]:
        """List what no destination of ours stands for, such as regular expressions: a title, and values by name."""
        return ()

    def for_host(self, name: str | None) -> Self:
        """Return the rules of one virtual host, where a broker has some; None: of the default one.

        Raises:
            ConfigError: the file lists its virtual hosts, and this is none of them.
        """
        del name
        return self

    def for_clients(self) -> Self:
        """Return the rules with the names that clients write, where these are others than those of the file."""
        return self

    def of_version(self, version: str) -> Self:
        """Return the rules as a broker of this version obeys them, where the file does not say of which it is."""
        del version
        return self


class _Drawn:
    """A source that draws these numbers again and again."""

    def __init__(self, *numbers: float) -> None:
        self.random = cycle(numbers).__next__


def no_queue(target: str, unless: str = "") -> str:
    """Say that nothing takes what is sent to the target of dead letters, or of what expires."""
    return f"no queue stands behind {target}: what goes there is removed{unless}"


def at_once(_count: int, _rng: Random | None) -> float:
    """Return the delay of brokers that have none."""
    return 0.0


def listed_delays(delay: Callable[[int, Random | None], float], maximum: int | None) -> tuple[Delay, ...]:
    """List the delay before each redelivery; ``delay(n, rng)``: the seconds after the n-th failure, n = 1, 2, …"""
    number = LISTED_WITHOUT_LIMIT if maximum is None else min(maximum - 1, LISTED)
    return tuple(
        Delay(delay(n, _Drawn(0.0)), delay(n, _Drawn(*_SHORTEST)), delay(n, _Drawn(*_LONGEST)))
        for n in range(1, number + 1)
    )


def policy_at_once(maximum: int | None) -> RedeliveryPolicy:
    """Return a client's policy that gives up after so many deliveries (None: never), and waits before none of them."""
    return RedeliveryPolicy(
        maximum_redeliveries=-1 if maximum is None else maximum - 1,
        initial_redelivery_delay=0,
        redelivery_delay=0,
    )


def strategy_to(queue: str | None) -> DeadLetterStrategy:
    """Return a client's strategy that sends every dead letter to that queue; None: it discards them.

    Where the queue has a name that no destination of ours has, it is left to the broker.
    """
    if queue is not None and not is_exact(queue):
        return BrokerDeadLetterStrategy(configured=True)
    return DiscardingDeadLetterStrategy() if queue is None else SharedDeadLetterStrategy(Queue(queue))


def separately(failed: DeadLetterStrategy, expired: DeadLetterStrategy) -> DeadLetterStrategy:
    """Return a client's strategy of which one decides about what has failed, the other one about what has expired."""
    if failed == expired:
        return failed
    if expired == DiscardingDeadLetterStrategy():
        return replace(failed, process_expired=False)
    return replace(failed, for_expired=expired)


def counted(number: int, counts: Counts) -> str:
    """``7 deliveries``, ``1 delivery``."""
    singular = {"deliveries": "delivery", "failures": "failure", "give-ups": "give-up"}[counts]
    return f"{number} {singular if number == 1 else counts}"


def duration_text(delays: tuple[Delay, ...]) -> str:
    """`` over 31.5 s ± 15 %``: the sum of all delays; empty where there are none."""
    total = sum(each.seconds for each in delays)
    least, most = sum(each.least for each in delays), sum(each.most for each in delays)
    if not delays:
        return ""
    if most - least < 0.002 * len(delays):  # a millisecond each, from rounding
        return f" over {time_text(total)}"
    share = round((most - total) / total * 100)
    if share and abs((total - least) - (most - total)) <= 0.02 * (most - least):
        return f" over {time_text(total)} ± {share} %"
    return f" over {time_text(total)} ({seconds_text(least)} to {seconds_text(most)})"
