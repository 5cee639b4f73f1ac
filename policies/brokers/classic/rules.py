"""ActiveMQ Classic's rules: dead-letter strategies by destination, and the plug-ins that redeliver or discard."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from redelivery.model.destinations import Destination, TemporaryQueue, TemporaryTopic, Topic, read_destination
from redelivery.policies.brokers.classic.arrivals import (
    Arrival,
    Eviction,
    ForcedPersistency,
    PendingLimit,
    notes_of_arrivals,
)
from redelivery.policies.brokers.classic.slow import SlowConsumers, notes_of_slow
from redelivery.policies.brokers.rules import Delay, DestinationRules, Matched, Rules, listed_delays
from redelivery.policies.dead_letters import (
    CopyTo,
    DeadLetterStrategy,
    Decision,
    Discard,
    DiscardingDeadLetterStrategy,
    SharedDeadLetterStrategy,
)
from redelivery.policies.destinations.map import DestinationMap
from redelivery.policies.destinations.overlaps import usable, with_overlaps
from redelivery.policies.destinations.redelivery_map import RedeliveryPolicyMap
from redelivery.policies.destinations.strategy_map import DeadLetterStrategyMap
from redelivery.policies.files.places import NOWHERE, Place, Setting
from redelivery.policies.redelivery import RedeliveryPolicy

_CLIENT: Final = (
    "the broker sets no limit: a client that gives up (poison acknowledgement) makes it a dead letter, "
    "by its own RedeliveryPolicy"
)

_TOPIC: Final = (
    "what a subscription that is not durable gives up, the broker removes: a dead letter of it is one that its client "
    "makes, as this library does"
)


@dataclass(frozen=True, slots=True)
class DeadLetterRules:
    """A ``deadLetterStrategy`` of a policy entry. ``settings``, here and below: what the file sets, as it spells it.

    ``strategy``: where dead letters go. ``enable_audit``: a message id becomes a dead letter once, of the
    ``max_audit_depth`` last ids of each of ``max_producers_to_audit`` producers.
    ``destination_per_durable_subscriber``: an individual strategy adds ``.<clientId>:<name>`` for topics.
    """

    strategy: DeadLetterStrategy = field(default_factory=lambda: SharedDeadLetterStrategy(process_non_persistent=False))
    enable_audit: bool = True
    max_producers_to_audit: int = 64
    max_audit_depth: int = 2048
    destination_per_durable_subscriber: bool = False
    place: Place = field(default=NOWHERE, compare=False)
    settings: tuple[Setting, ...] = field(default=(), compare=False)


# Of all destinations for which no other one is set, as Classic's Destination.DEFAULT_DEAD_LETTER_STRATEGY: one audit.
DEFAULT_DEAD_LETTERS: Final = DeadLetterRules()


@dataclass(frozen=True, slots=True)
class PolicyEntry:
    """A ``policyEntry``: which destinations (a key like ``queue://orders.>``), and what it says about dead letters.

    ``persist_jms_redelivered``: the flag survives a restart of the broker. ``send_duplicate_from_store_to_dlq``: a
    message that the store hands over twice is a dead letter. None: not set.
    """

    pattern: str
    dead_letters: DeadLetterRules | None = None
    persist_jms_redelivered: bool | None = None
    send_duplicate_from_store_to_dlq: bool | None = None
    pending_limit: PendingLimit | None = None
    eviction: Eviction | None = None
    slow_consumers: SlowConsumers | None = None
    place: Place = field(default=NOWHERE, compare=False)
    settings: tuple[Setting, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class RedeliveryEntry:
    """A ``redeliveryPolicy`` of the plug-in; ``pattern`` as in PolicyEntry."""

    pattern: str
    policy: RedeliveryPolicy
    place: Place = field(default=NOWHERE, compare=False)
    settings: tuple[Setting, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class RedeliveryPlugin:
    """``redeliveryPlugin``: what a client gives up is sent again after a delay, as often as its policy says.

    ``default``: for what no entry matches. ``fallback_to_dead_letter``: what has no policy at all is a dead letter;
    False removes it. ``send_to_dlq_if_max_retries_exceeded``: so is what has used up its policy.
    """

    entries: tuple[RedeliveryEntry, ...] = ()
    default: RedeliveryEntry | None = None
    fallback_to_dead_letter: bool = True
    send_to_dlq_if_max_retries_exceeded: bool = True
    place: Place = field(default=NOWHERE, compare=False)
    settings: tuple[Setting, ...] = field(default=(), compare=False)

    def policy_for(self, destination: Destination) -> RedeliveryEntry | None:
        """Return the entry that counts; None where there is none."""
        return DestinationMap({each.pattern: each for each in self.entries}).get(destination) or self.default

    def removes_because(self, entry: RedeliveryEntry | None) -> str:
        """Say why what has failed for good is removed, where this entry counts, or none; empty: it is a dead letter."""
        if entry is None:
            kept, why = self.fallback_to_dead_letter, "no redelivery policy matches, and fallbackToDeadLetter is false"
        else:
            kept, why = self.send_to_dlq_if_max_retries_exceeded, "sendToDlqIfMaxRetriesExceeded is false"
        return "" if kept else why

    def applied_to(self, strategy: DeadLetterStrategy, entry: RedeliveryEntry | None) -> DeadLetterStrategy:
        """Return the strategy that drops what this plug-in removes, where this entry counts: nothing that expired."""
        if not self.removes_because(entry):
            return strategy
        return DiscardingDeadLetterStrategy(otherwise=strategy, drop_expired=False, report_interval=0)


@dataclass(frozen=True, slots=True)
class DiscardingPlugin:
    """``discardingDLQBrokerPlugin``: dead letters are removed: all, those of temporary queues or topics, or of the
    destinations whose name one of the regular expressions of ``drop_only`` matches as a whole.

    ``report_interval``: a line of the log for so many of them; 0 for none.
    """

    drop_all: bool = True
    drop_temporary_topics: bool = True
    drop_temporary_queues: bool = True
    drop_only: tuple[str, ...] = ()
    report_interval: int = 1000
    place: Place = field(default=NOWHERE, compare=False)
    settings: tuple[Setting, ...] = field(default=(), compare=False)

    def applied_to(self, strategy: DeadLetterStrategy, original: Destination | None = None) -> DeadLetterStrategy:
        """Return the strategy that drops what this plug-in drops, and leaves the rest to another one.

        Without an ``original`` destination, those of temporary queues and topics are not dropped for being such.
        """
        temporary = (isinstance(original, TemporaryQueue) and self.drop_temporary_queues) or (
            isinstance(original, TemporaryTopic) and self.drop_temporary_topics
        )
        if self.drop_all or temporary:
            return DiscardingDeadLetterStrategy(report_interval=self.report_interval)
        if not self.drop_only:
            return strategy
        return DiscardingDeadLetterStrategy(
            drop_only=self.drop_only, otherwise=strategy, report_interval=self.report_interval
        )


Plugin: TypeAlias = RedeliveryPlugin | DiscardingPlugin


@dataclass(frozen=True, slots=True)
class ClassicRules(Rules):
    """The contents of an ``activemq.xml``.

    ``entries``: ``policyEntries``, in the order of the file; ``default_entry``: for what no entry matches (its pattern
    is ``>``). ``plugins``: in the order of the file; the broker asks the last one first. ``scheduler_support``: None
    where the file does not say, which is False. ``arrivals``: the plug-ins that change what is sent.
    """

    entries: tuple[PolicyEntry, ...] = ()
    default_entry: PolicyEntry | None = None
    plugins: tuple[Plugin, ...] = ()
    scheduler_support: bool | None = None
    arrivals: tuple[Arrival, ...] = ()

    broker = "ActiveMQ Classic"
    dialect = "activemq"

    @property
    def redelivery(self) -> RedeliveryPlugin | None:
        """The plug-in that redelivers; None without one."""
        return next((each for each in reversed(self.plugins) if isinstance(each, RedeliveryPlugin)), None)

    @property
    def discarding(self) -> DiscardingPlugin | None:
        """The plug-in that discards; None without one."""
        return next((each for each in reversed(self.plugins) if isinstance(each, DiscardingPlugin)), None)

    def entries_for(self, destination: Destination) -> tuple[PolicyEntry, ...]:
        """Return the entries that match, the one that counts first: one counts as a whole, nothing is merged."""
        found = [each.value for each in DestinationMap({e.pattern: e for e in self.entries}).candidates(destination)]
        return (*found, *([self.default_entry] if self.default_entry else []))

    def slow_subscribers_of(self, topic: Destination) -> tuple[PendingLimit, Eviction] | None:
        """Return what counts for subscribers of a topic that are not durable; None: any number may wait for one."""
        entry = next(iter(self.entries_for(topic)), None)
        if entry is None or entry.pending_limit is None:
            return None
        return entry.pending_limit, entry.eviction or Eviction()

    def slow_consumers_of(self, destination: Destination) -> SlowConsumers | None:
        """Return the strategy that ends slow consumers; None: it ends none."""
        entry = next(iter(self.entries_for(destination)), None)
        return None if entry is None else entry.slow_consumers

    @property
    def persistency(self) -> bool | None:
        """The persistence that forcePersistencyModeBrokerPlugin gives each message; None: it is as it was sent."""
        forced = (each.persistence_flag for each in self.arrivals if isinstance(each, ForcedPersistency))
        return next(forced, None)

    def dead_letters_for(self, destination: Destination) -> DeadLetterRules:
        """Return the dead-letter rules of a destination; those of the shared strategy where none is set."""
        matched = self.entries_for(destination)
        return (matched[0].dead_letters if matched else None) or DEFAULT_DEAD_LETTERS

    def strategy_for(self, destination: Destination) -> DeadLetterStrategy:
        """Return the same as a strategy that also drops what the discarding plug-in drops."""
        strategy = self.dead_letters_for(destination).strategy
        return self.discarding.applied_to(strategy, destination) if self.discarding else strategy

    def rules_for(self, destination: Destination) -> DestinationRules:
        """Return what counts for one destination."""
        entries = self.entries_for(destination)
        plugin = self.redelivery
        entry = plugin.policy_for(destination) if plugin else None
        discarded_first = bool(self.plugins) and isinstance(self.plugins[-1], DiscardingPlugin)
        decision = self.strategy_for(destination).decide(
            destination, persistent=self.persistency is not False, expired=False, native_available=False
        )
        target = _target(decision)
        reason = decision.reason if isinstance(decision, Discard) else ""
        maximum: int | None = 1
        delays: tuple[Delay, ...] = ()
        if plugin and not (discarded_first and isinstance(decision, Discard) and decision.discarded):
            if entry is not None:
                maximum, delays = self._resends(entry.policy)
            if removal := plugin.removes_because(entry):
                target, reason = None, removal
        return DestinationRules(
            broker=self.broker,
            destination=destination,
            counts="give-ups",
            maximum=maximum,
            delays=delays,
            dead_letter=target,
            removed_because=reason,
            expired=_target(
                self._with_plugins(self.dead_letters_for(destination).strategy, entry, destination).decide(
                    destination, persistent=self.persistency is not False, expired=True, native_available=False
                )
            ),
            matched=tuple(self._matched(entries, entry)),
            settings=tuple(self._shown(entries, entry)),
            notes=(
                *self._notes(entry),
                *(self._notes_of_topic(destination, target) if target else ()),
                *notes_of_slow(self, destination),
                *notes_of_arrivals(self.arrivals),
            ),
        )

    def redelivery_policies(self) -> RedeliveryPolicyMap:
        """Return the policies of the redelivery plug-in, else a client's defaults: the broker itself has none.

        A client that takes them over and talks to that broker makes its dead letters itself, by the strategies of
        `dead_letter_strategies`. One that leaves them to the broker calls upon the plug-in: the two multiply.
        """
        plugin = self.redelivery
        if plugin is None:
            return RedeliveryPolicyMap({})  # without a default: it is the client's own
        entries = {each.pattern: each.policy for each in plugin.entries}
        return RedeliveryPolicyMap(usable(entries), default=plugin.default.policy if plugin.default else None)

    def dead_letter_strategies(self) -> DeadLetterStrategyMap:
        """Return the strategy of each pattern of an entry, with what the plug-ins drop; the shared one for the rest."""
        default = (self.default_entry.dead_letters if self.default_entry else None) or DEFAULT_DEAD_LETTERS
        resent = self.redelivery

        def strategy_of(pattern: str) -> DeadLetterStrategy:
            place = read_destination(pattern)
            entry = resent.policy_for(place) if resent else None
            return self._with_plugins(self.dead_letters_for(place).strategy, entry)

        strategies = {pattern: strategy_of(pattern) for pattern in usable(dict.fromkeys(self.names()))}
        for_others = self._with_plugins(default.strategy, resent.default if resent else None)
        return DeadLetterStrategyMap(with_overlaps(usable(strategies), strategy_of), default=for_others)

    def names(self) -> tuple[str, ...]:
        """List the patterns of all entries."""
        plugin = self.redelivery
        resent = [each.pattern for each in plugin.entries] if plugin else []
        return tuple(dict.fromkeys([*(each.pattern for each in self.entries), *resent]))

    def _with_plugins(
        self, strategy: DeadLetterStrategy, entry: RedeliveryEntry | None, original: Destination | None = None
    ) -> DeadLetterStrategy:
        strategy = self.redelivery.applied_to(strategy, entry) if self.redelivery else strategy
        return self.discarding.applied_to(strategy, original) if self.discarding else strategy

    @staticmethod
    def _resends(policy: RedeliveryPolicy) -> tuple[int | None, tuple[Delay, ...]]:
        maximum = policy.maximum_redeliveries + 1 if policy.maximum_redeliveries >= 0 else None
        return maximum, listed_delays(policy.delay, maximum)

    def _matched(self, entries: tuple[PolicyEntry, ...], resent: RedeliveryEntry | None) -> Iterator[Matched]:
        for plugin in reversed(self.plugins):  # each is asked before those that stand before it
            if isinstance(plugin, DiscardingPlugin):
                yield Matched("discardingDLQBrokerPlugin", plugin.place)
            elif plugin is self.redelivery and resent is not None:
                pattern = "(default)" if resent is plugin.default else repr(resent.pattern)
                yield Matched(f"redeliveryPolicy {pattern} of redeliveryPlugin", resent.place)
        for each in entries:
            pattern = "(default)" if each is self.default_entry else repr(each.pattern)
            yield Matched(f"policyEntry {pattern}", each.place)

    def _shown(self, entries: tuple[PolicyEntry, ...], resent: RedeliveryEntry | None) -> Iterator[Setting]:
        for entry in entries[:1]:
            yield from entry.settings
            yield from entry.dead_letters.settings if entry.dead_letters else ()
        if resent is not None:
            yield from resent.settings
        for plugin in (*self.plugins, *self.arrivals):
            yield from plugin.settings

    def _notes_of_topic(self, destination: Destination, target: str) -> Iterator[str]:
        if isinstance(destination, Topic):
            yield _TOPIC
            rules = self.dead_letters_for(destination)
            suffix = getattr(rules.strategy, "topic_suffix", None)
            if rules.destination_per_durable_subscriber and suffix is not None:
                own = f"{target.removesuffix(suffix)}.<clientId>:<name>{suffix}"
                yield f"of a durable subscription the broker's own go to {own}, and copies of a client to {target}"

    def _notes(self, resent: RedeliveryEntry | None) -> Iterator[str]:
        if resent is None:
            yield _CLIENT
            return
        yield "each time that a client gives up, the broker sends the message again: a client's redeliveries multiply"
        if not self.scheduler_support:
            yield "schedulerSupport is not true: this broker does not start with redeliveryPlugin"


def _target(decision: Decision) -> str | None:
    return str(decision.destination).removeprefix("queue://") if isinstance(decision, CopyTo) else None
