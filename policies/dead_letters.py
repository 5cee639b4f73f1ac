"""ActiveMQ's dead-letter strategies as pure decisions: where a poisoned or expired message goes."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from redelivery.model.destinations import Destination, Queue, Topic, destination
from redelivery.model.errors import ConfigError, InvalidDestinationError
from redelivery.policies.checks import Seconds, check_flag, check_seconds, check_whole, expression

DEFAULT_DEAD_LETTER_QUEUE: Final = "ActiveMQ.DLQ"


@dataclass(frozen=True, slots=True)
class Native:
    """The broker dead-letters it in its own way."""


@dataclass(frozen=True, slots=True)
class CopyTo:
    """A copy goes to ``destination``, then the original is acknowledged.

    ``expiration``: seconds until the copy expires, None for never. ``or_native``: where no copy can be made, the broker
    is known to keep it in its own dead-letter queue.
    """

    destination: Destination
    expiration: float | None = None
    or_native: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Discard:
    """The message is acknowledged and nothing else.

    ``discarded``: a DiscardingDeadLetterStrategy said so, which counts its drops and reports every
    ``report_interval`` of them (0: never).
    """

    reason: str
    discarded: bool = False
    report_interval: int = 0


Decision: TypeAlias = Native | CopyTo | Discard


@dataclass(frozen=True, slots=True)
class Facts:
    """The arguments of `DeadLetterStrategy.decide`, for the strategies themselves."""

    original: Destination
    persistent: bool
    expired: bool
    native_available: bool
    native_possible: bool
    address: str
    apart: bool
    broker: str | None

    @property
    def name(self) -> str:
        """The name by which a destination has a dead-letter queue of its own: ``orders`` of ``orders::ordersQueue``."""
        return self.original.name.partition("::")[0] if self.apart else self.original.name

    def is_own(self, target: Destination) -> bool:
        """Check whether it was consumed from there: by its name, or from a queue of another name at that address."""
        at_its_address = self.apart and target.name == self.address and isinstance(self.original, Queue)
        return target == self.original or (at_its_address and isinstance(target, Queue))


@dataclass(frozen=True, slots=True)
class DeadLetterStrategy(ABC):
    """The part that all strategies share.

    ``process_expired``: expired messages become dead letters too; False drops them.
    ``process_non_persistent``: non-persistent messages as well; False drops them where we make the copy (a broker
    that dead-letters natively follows its own rule). True where a copying strategy is named: other clients send
    non-persistently without a word.
    ``expiration``: seconds (or timedelta) until a copy expires; None, or 0 as in ActiveMQ, for never.
    ``for_expired``: the strategy that decides about expired messages instead of this one, as with Artemis'
    expiry-address; None: this one does.

    Raises:
        ConfigError: a value of a wrong type or out of its range; the text names it.
    """

    process_expired: bool = field(default=True, kw_only=True)
    process_non_persistent: bool = field(default=False, kw_only=True)
    expiration: Seconds | None = field(default=None, kw_only=True)
    for_expired: DeadLetterStrategy | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_flag("process_expired", self.process_expired)
        check_flag("process_non_persistent", self.process_non_persistent)
        if self.expiration is not None:
            object.__setattr__(self, "expiration", check_seconds("expiration", self.expiration) or None)
        if self.for_expired is not None and not isinstance(self.for_expired, DeadLetterStrategy):
            raise ConfigError(f"for_expired={self.for_expired!r}: use a dead-letter strategy, or None")

    def decide(
        self,
        original: Destination,
        *,
        persistent: bool,
        expired: bool,
        native_available: bool,
        native_possible: bool = True,
        address: str | None = None,
        broker: str | None = None,
    ) -> Decision:
        """Decide what happens to a message that came from ``original``.

        ``native_available``: the broker is known to have a dead-letter queue (`Capabilities.native_poison`).
        ``native_possible``: it can be asked to dead-letter at all (`Capabilities.poison_by_broker`).
        ``address``: what the message was sent to, where an address may have queues of other names; None: ``original``.
        ``broker``: the connection's dialect.
        """
        sent_to = (address or original.name).partition("::")[0]
        apart = address is not None
        facts = Facts(original, persistent, expired, native_available, native_possible, sent_to, apart, broker)
        return self._decide(facts)

    def _decide(self, facts: Facts) -> Decision:
        if facts.expired and not self.process_expired:
            return Discard("it has expired, and process_expired is False")
        return self.for_expired._decide(facts) if facts.expired and self.for_expired else self._place(facts)

    @abstractmethod
    def _place(self, facts: Facts) -> Decision:
        """Decide where it goes, unless it has expired and is not wanted."""

    def _copy(self, facts: Facts, target: Destination) -> Decision:
        if not facts.persistent and not self.process_non_persistent:
            return Discard("it is not persistent, and process_non_persistent is False")
        if facts.is_own(target):
            return Discard(f"it was consumed from its own dead-letter destination {target}")
        expiration = None if self.expiration is None else check_seconds("expiration", self.expiration)
        # the safest guess of what the broker does with those that are not persistent: it drops them
        return CopyTo(target, expiration, or_native=facts.native_available and facts.persistent)


@dataclass(frozen=True, slots=True)
class SharedDeadLetterStrategy(DeadLetterStrategy):
    """One dead-letter queue (or topic) for all: a copy goes there.

    ``dead_letter_queue``: a name, as ``orders.DLQ`` or ``topic://dead``, or a destination.
    """

    process_non_persistent: bool = field(default=True, kw_only=True)
    dead_letter_queue: Destination | str = DEFAULT_DEAD_LETTER_QUEUE

    def __post_init__(self) -> None:
        DeadLetterStrategy.__post_init__(self)
        _target("dead_letter_queue", self.dead_letter_queue)

    def _place(self, facts: Facts) -> Decision:
        return self._copy(facts, destination(self.dead_letter_queue))


@dataclass(frozen=True, slots=True)
class IndividualDeadLetterStrategy(DeadLetterStrategy):
    """One dead-letter destination per destination: prefix, name and suffix.

    ``queue_prefix``, ``queue_suffix``: what stands before and behind the name of a queue.
    ``topic_prefix``, ``topic_suffix``: the same of a topic.
    ``use_queue_for_queue_messages``, ``use_queue_for_topic_messages``: it is a queue; False makes it a topic.
    ``on_address``: it is a queue of that address, which the broker makes with its own first dead letter (Artemis'
    auto-create-dead-letter-resources): a copy goes to one that is there, and where it is not the message stays
    unacknowledged. Its name is that of the address to which the message was sent, between prefix and suffix.
    """

    process_non_persistent: bool = field(default=True, kw_only=True)
    queue_prefix: str = "ActiveMQ.DLQ.Queue."
    topic_prefix: str = "ActiveMQ.DLQ.Topic."
    queue_suffix: str = ""
    topic_suffix: str = ""
    use_queue_for_queue_messages: bool = True
    use_queue_for_topic_messages: bool = True
    on_address: str = ""

    def __post_init__(self) -> None:
        DeadLetterStrategy.__post_init__(self)
        for name in ("queue_prefix", "topic_prefix", "queue_suffix", "topic_suffix", "on_address"):
            text = getattr(self, name)
            if not isinstance(text, str):
                raise ConfigError(f"{name}={text!r}: use a str")
        _target("queue_prefix and queue_suffix", f"{self.queue_prefix}x{self.queue_suffix}")
        _target("topic_prefix and topic_suffix", f"{self.topic_prefix}x{self.topic_suffix}")
        check_flag("use_queue_for_queue_messages", self.use_queue_for_queue_messages)
        check_flag("use_queue_for_topic_messages", self.use_queue_for_topic_messages)

    def _place(self, facts: Facts) -> Decision:
        if self.on_address:
            is_topic = isinstance(facts.original, Topic)
            prefix, suffix = (
                (self.topic_prefix, self.topic_suffix) if is_topic else (self.queue_prefix, self.queue_suffix)
            )
            return self._copy(facts, Queue(f"{self.on_address}::{prefix}{facts.address}{suffix}", declare=False))
        if isinstance(facts.original, Topic):
            name = f"{self.topic_prefix}{facts.name}{self.topic_suffix}"
            as_queue = self.use_queue_for_topic_messages
        else:
            name = f"{self.queue_prefix}{facts.name}{self.queue_suffix}"
            as_queue = self.use_queue_for_queue_messages
        return self._copy(facts, Queue(name) if as_queue else Topic(name))


@dataclass(frozen=True, slots=True)
class BrokerDeadLetterStrategy(DeadLetterStrategy):
    """The broker dead-letters where it is known to have a dead-letter queue, otherwise as SharedDeadLetterStrategy().

    ``configured``: True: this broker is set up to dead-letter, so leave it to it wherever its protocol has a word for
    poison (Artemis and HornetQ over STOMP, and Broker-J, have none: a copy there); False: never; None: only where
    the dialect is sure of it, and the broker can do what ``expiration`` and ``process_non_persistent`` ask for.
    ``broker``: the one that is so, as in ``dialect=``; another one is not asked. None: whichever it is.
    ``otherwise``: decides where it is not left to the broker; None: as SharedDeadLetterStrategy().
    """

    configured: bool | None = None
    broker: str | None = None
    otherwise: DeadLetterStrategy | None = None

    def __post_init__(self) -> None:
        DeadLetterStrategy.__post_init__(self)
        if self.configured is not None:
            check_flag("configured", self.configured)
        if self.otherwise is not None and not isinstance(self.otherwise, DeadLetterStrategy):
            raise ConfigError(f"otherwise={self.otherwise!r}: use a dead-letter strategy, or None")

    def _place(self, facts: Facts) -> Decision:
        if self.configured is None:
            # A broker gives its dead letters no expiration of ours, and Classic drops non-persistent ones.
            able = self.expiration is None and (facts.persistent or not self.process_non_persistent)
            native = facts.native_available and able
        else:
            native = self.configured and facts.native_possible and self.broker in (None, facts.broker)
        if not native and self.otherwise is not None:
            return self.otherwise._decide(facts)
        return Native() if native else self._copy(facts, Queue(DEFAULT_DEAD_LETTER_QUEUE))


@dataclass(frozen=True, slots=True)
class DiscardingDeadLetterStrategy(DeadLetterStrategy):
    """ActiveMQ's discarding plug-in: everything is dropped, or only what came from certain destinations.

    ``drop_only``: regular expressions, one of which must match the whole name of the original destination; a single
    text is split at spaces, as in ActiveMQ. None given: everything is dropped.
    ``otherwise``: decides about the rest, by its own options; a ``process_expired=False`` here counts for all.
    ``report_interval``: a log line every so many drops, 0 for never.
    ``drop_expired``: False: what has expired goes to ``otherwise``, as with ActiveMQ's broker redelivery.
    """

    drop_only: Iterable[str] = ()
    otherwise: DeadLetterStrategy = field(default_factory=BrokerDeadLetterStrategy)
    report_interval: int = 1000
    drop_expired: bool = field(default=True, kw_only=True)
    _expressions: tuple[re.Pattern[str], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        DeadLetterStrategy.__post_init__(self)
        given = self.drop_only.split() if isinstance(self.drop_only, str) else self.drop_only
        if not isinstance(given, Iterable):
            raise ConfigError(f"drop_only={given!r}: use regular expressions")
        given = tuple(given)
        object.__setattr__(self, "drop_only", given)
        object.__setattr__(self, "_expressions", tuple(_expression(each) for each in given))
        if not isinstance(self.otherwise, DeadLetterStrategy):
            raise ConfigError(f"otherwise={self.otherwise!r}: use a dead-letter strategy")
        check_whole("report_interval", self.report_interval, 0)
        check_flag("drop_expired", self.drop_expired)

    def _place(self, facts: Facts) -> Decision:
        original = facts.original
        named = not self._expressions or any(each.fullmatch(original.name) for each in self._expressions)
        if named and (self.drop_expired or not facts.expired):
            return Discard(f"messages of {original} are discarded", True, self.report_interval)
        return self.otherwise._decide(facts)


def _target(name: str, value: object) -> None:
    try:
        usable = isinstance(value, (str, Destination)) and not destination(value).is_pattern
    except InvalidDestinationError as error:
        raise ConfigError(f"{name}={value!r}: use the name of one queue or topic: {error}") from error
    if not usable:
        raise ConfigError(f"{name}={value!r}: use the name of one queue or topic")


def _expression(text: object) -> re.Pattern[str]:
    if not isinstance(text, str):
        raise ConfigError(f"drop_only: {text!r} is not a regular expression; use a str")
    try:
        return expression(text)
    except ConfigError as error:
        raise ConfigError(f"drop_only: {error}") from error
