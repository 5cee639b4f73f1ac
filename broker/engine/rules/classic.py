"""ActiveMQ Classic's rules: only a client gives up; dead letters are those of RegionBroker.sendToDeadLetterQueue.

With a ``redeliveryPlugin`` what a client gives up is sent again later (org.apache.activemq.broker.util).
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.entries import Entry
from redelivery.broker.engine.rules.rules import (
    COUNTED,
    UNCOUNTED,
    EngineRules,
    Failure,
    Manner,
    Origin,
    ReturnDecision,
)
from redelivery.broker.engine.rules.slow import SlowRule
from redelivery.broker.engine.stored import StoredMessage, size_of
from redelivery.model.content.dead_letters import FAILURE_CAUSE, ORIGINAL_DELIVERY_MODE, ORIGINAL_EXPIRATION
from redelivery.model.destinations import Destination, Topic
from redelivery.model.values import Long, Value
from redelivery.policies.brokers.classic.arrivals import Eviction, PendingLimit, TimeStamping
from redelivery.policies.brokers.classic.rules import (
    DEFAULT_DEAD_LETTERS,
    ClassicRules,
    DiscardingPlugin,
    RedeliveryPlugin,
)
from redelivery.policies.dead_letters import CopyTo, DeadLetterStrategy, Discard, IndividualDeadLetterStrategy

log = logging.getLogger(__name__)
AUDIT_DEPTH: Final = 2048 * 64  # ids remembered per strategy, ActiveMQ's maxAuditDepth for maxProducersToAudit
REDELIVERY_DELAY: Final = "redeliveryDelay"  # what RedeliveryPlugin writes on what it sends again
SCHEDULED_JOB: Final = "scheduledJobId"  # what its scheduler writes on it
_THROWABLE: Final = "java.lang.Throwable: "  # before the cause that the broker itself gives
_GIVES_UP: Final = (Manner.REJECTED, Manner.NACKED, Manner.UNDELIVERABLE)


class ClassicBroker(EngineRules):
    """See `redelivery.broker.engine.rules.rules.EngineRules`."""

    def __init__(self, config: BrokerConfig) -> None:
        super().__init__()
        self._config = config
        self._rules = config.rules if isinstance(config.rules, ClassicRules) else None
        self.expired_of_volatile = self._rules is not None
        self.origin = Origin.PROPERTIES if self._rules is None else Origin.NOWHERE
        self._slow: dict[Destination, tuple[PendingLimit, Eviction] | None] = {}
        self._discarded = 0
        self._audits: dict[object, OrderedDict[str, None]] = {}

    def arriving(self, message: StoredMessage, now: int, *, is_letter: bool) -> StoredMessage:
        """Obey timeStampingBrokerPlugin, but for dead letters, and forcePersistencyModeBrokerPlugin."""
        if self._rules is None or not self._rules.arrivals:
            return message
        for each in self._rules.arrivals:
            if isinstance(each, TimeStamping):
                if not is_letter:
                    at, until = each.stamp(message.timestamp, message.expiration, now)
                    message = replace(message, timestamp=at, expiration=until)
            elif message.persistent != each.persistence_flag:
                message = replace(message, persistent=each.persistence_flag)
        return message

    def slow_subscribers_of(self, topic: Destination) -> tuple[PendingLimit, Eviction] | None:
        """Obey ``pendingMessageLimitStrategy`` and ``messageEvictionStrategy``."""
        if self._rules is None:
            return None
        if topic not in self._slow:
            self._slow[topic] = self._rules.slow_subscribers_of(topic)
        return self._slow[topic]

    def slow_rule(self, destination: Destination) -> SlowRule | None:
        """Obey ``slowConsumerStrategy``: by size only subscribers of a topic are slow."""
        found = None if self._rules is None else self._rules.slow_consumers_of(destination)
        if found is None or not found.ends_some or not (found.by_acks or isinstance(destination, Topic)):
            return None
        return SlowRule(found)

    def returned(self, entry: Entry, manner: Manner, *, seen: bool) -> ReturnDecision:  # noqa: ARG002  # others ask it
        """Count what a client has had; only a client gives up."""
        if manner in _GIVES_UP:
            return ReturnDecision(counted=seen, failed=True)
        return COUNTED if seen else UNCOUNTED

    def letters(self, failure: Failure) -> Sequence[StoredMessage]:
        """The dead letter, once for each message id and strategy; or the message itself, to be sent again."""
        message = failure.message
        if self._rules is not None and not failure.expired:
            again, drops = self._resent(self._rules, failure)
            if again is not None:
                return (again,)
            if drops:
                return ()
        strategy = self._strategy(message.destination)
        decision = strategy.decide(
            message.destination, persistent=message.persistent, expired=failure.expired, native_available=False
        )
        if isinstance(decision, Discard) and decision.discarded:
            self._report(decision.report_interval)
        if not isinstance(decision, CopyTo):
            return ()
        decision = self._of_subscriber(failure, decision)
        if not self._audited(strategy, message):
            return ()
        return (_letter(failure, decision, as_classic=self._rules is not None),)

    def _report(self, interval: int) -> None:
        """A line of the log for so many discarded messages (``reportInterval``)."""
        self._discarded += 1
        if interval and self._discarded % interval == 0:
            log.warning("%d messages dropped so far by discardingDLQBrokerPlugin", self._discarded)

    def _of_subscriber(self, failure: Failure, decision: CopyTo) -> CopyTo:
        """Give each durable subscription a destination of its own, with ``destinationPerDurableSubscriber``."""
        if self._rules is None or failure.subscriber is None:
            return decision
        rules = self._rules.dead_letters_for(failure.message.destination)
        if not rules.destination_per_durable_subscriber or not isinstance(rules.strategy, IndividualDeadLetterStrategy):
            return decision
        target, suffix = decision.destination, rules.strategy.topic_suffix
        client, name = failure.subscriber
        name = f"{target.name.removesuffix(suffix)}.{client or ''}:{name}{suffix}"
        return replace(decision, destination=type(target)(name))

    def _strategy(self, destination: Destination) -> DeadLetterStrategy:
        if self._rules is not None:
            return self._rules.strategy_for(destination)
        return self._config.strategy_for(destination)

    def _resent(self, rules: ClassicRules, failure: Failure) -> tuple[StoredMessage | None, bool]:
        """The message to be sent again; else whether it is removed without a dead letter."""
        plugin = rules.redelivery
        if plugin is None or self._discarded_before(rules, plugin, failure.message):
            return None, False
        entry = plugin.policy_for(failure.message.destination)
        if entry is None:
            return None, not plugin.fallback_to_dead_letter
        count = failure.message.resends + 1
        if entry.policy.exceeded(count):
            return None, not plugin.send_to_dlq_if_max_retries_exceeded
        delay = round(entry.policy.delay(count) * 1000)
        written: dict[str, Value] = {REDELIVERY_DELAY: Long(delay), SCHEDULED_JOB: failure.message.message_id}
        properties = MappingProxyType({**failure.message.properties, **written})
        again = replace(
            failure.message, properties=properties, delivery_time=failure.now + max(delay, 1), resends=count
        )
        return again, False

    def _discarded_before(self, rules: ClassicRules, plugin: RedeliveryPlugin, message: StoredMessage) -> bool:
        """Check whether a discarding plug-in stands behind that one in the file, so is asked first, and drops it."""
        later = rules.plugins[rules.plugins.index(plugin) + 1 :]
        strategies = [
            each.applied_to(DEFAULT_DEAD_LETTERS.strategy, message.destination)
            for each in later
            if isinstance(each, DiscardingPlugin)
        ]
        return any(
            not isinstance(
                each.decide(message.destination, persistent=True, expired=False, native_available=False), CopyTo
            )
            for each in strategies
        )

    def _audited(self, strategy: DeadLetterStrategy, message: StoredMessage) -> bool:
        """Note a dead letter's id, and check that it is the first of its id."""
        depth = AUDIT_DEPTH
        if self._rules is not None:
            rules = self._rules.dead_letters_for(message.destination)
            if not rules.enable_audit:
                return True
            depth = rules.max_audit_depth * rules.max_producers_to_audit
            strategy = rules.strategy
        audit: object = message.destination if isinstance(strategy, IndividualDeadLetterStrategy) else id(strategy)
        ids = self._audits.setdefault(audit, OrderedDict())
        identity = message.identity or message.message_id
        if identity in ids:
            return False
        ids[identity] = None
        if len(ids) > depth:
            ids.popitem(last=False)
        return True


def _letter(failure: Failure, decision: CopyTo, *, as_classic: bool) -> StoredMessage:
    message = failure.message
    properties: dict[str, Value] = dict(message.properties)
    if failure.cause is not None:
        own = failure.expired and as_classic  # a client's own cause is written as it came
        properties[FAILURE_CAUSE] = _THROWABLE + failure.cause if own else failure.cause
    if not message.persistent:
        properties[ORIGINAL_DELIVERY_MODE] = "NON_PERSISTENT"
    expiration = 0
    if decision.expiration:
        expiration = failure.now + round(decision.expiration * 1000)
    else:
        properties[ORIGINAL_EXPIRATION] = str(message.expiration)
    return replace(
        message,
        destination=decision.destination,
        original_destination=message.destination,
        properties=MappingProxyType(properties),
        expiration=expiration,
        delivery_time=0,
        persistent=True,
        size=size_of(message.body, properties),
        resends=0,
    )
