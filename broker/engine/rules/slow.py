"""The rule by which a broker ends slow consumers, and its checks. Times are milliseconds."""

from __future__ import annotations

import heapq
import logging
from dataclasses import dataclass, field
from typing import Final

from redelivery.broker.engine.queues import QueueState
from redelivery.broker.engine.subscriptions import Ending, Subscription
from redelivery.policies.brokers.classic.slow import SlowConsumers

log = logging.getLogger(__name__)
_AT_ONCE: Final = 0  # a check that only begins


class _Watched:
    """A consumer as the checks see it: ``slow`` since some of them (``marks``), found so ``times`` times.

    ``ended``: it has to end, which its server does next.
    """

    __slots__ = ("consumer", "ended", "marks", "slow", "times")

    def __init__(self, consumer: Subscription) -> None:
        self.consumer = consumer
        self.ended = False
        self.clear()

    def clear(self) -> None:
        """Note that it is not slow any more."""
        self.slow = False
        self.marks = self.times = 0


class SlowRule:
    """ActiveMQ's ``abortSlowConsumerStrategy`` or ``abortSlowAckConsumerStrategy``. ``period``: between two checks."""

    def __init__(self, rules: SlowConsumers) -> None:
        self._rules = rules
        self.period = max(1, round(rules.check_period * 1000))
        self.ending = Ending(f"Consumer was slow: {rules}", rules.abort_connection)

    def arrived(self, queue: QueueState, watched: _Watched) -> None:
        """A message comes: a topic's subscriber is slow for which more than its prefetch waits."""
        consumer, waiting = watched.consumer, len(queue.pending)
        if self._rules.by_acks or queue.binding is None:
            return
        if consumer.room and not waiting:
            watched.slow = False
        elif 1 < consumer.prefetch < waiting or (queue.binding.durable and consumer.prefetch and not consumer.room):
            watched.times += not watched.slow
            watched.slow = True

    def ends(self, each: _Watched, now: int) -> bool:
        """Check a consumer, which ends now if it was slow for long enough, or often enough."""
        rules, consumer = self._rules, each.consumer
        if rules.by_acks:
            idle = rules.ignore_idle_consumers and not consumer.in_flight
            each.slow = not idle and now - consumer.settled_at > round(rules.max_time_since_last_ack * 1000)
            each.times += each.slow
        if not each.slow:
            each.clear()
            return False
        each.marks += 1
        most = round(rules.max_slow_duration * 1000)
        return 0 < most <= each.marks * self.period or 0 < rules.max_slow_count <= each.times


@dataclass(slots=True, eq=False, repr=False)
class _Queue:
    queue: QueueState
    rule: SlowRule
    _consumers: dict[Subscription, _Watched] = field(default_factory=dict)

    def watched(self) -> list[_Watched]:
        """The consumers of now."""
        before = self._consumers
        self._consumers = {each: before.get(each) or _Watched(each) for each in self.queue.consumers}
        return list(self._consumers.values())


@dataclass(slots=True, eq=False, repr=False)
class SlowChecks:
    """The checks of one broker. ``ended``: who has to end, for the servers. ``queues``: what is checked, by name."""

    _due: list[tuple[int, int, _Queue]] = field(default_factory=list)
    _number: int = 0
    queues: dict[str, _Queue] = field(default_factory=dict)
    ended: list[tuple[Subscription, Ending]] = field(default_factory=list)

    def next(self) -> int | None:
        """The time of the next check, None for never."""
        return self._due[0][0] if self._due else None

    def watch(self, queue: QueueState, rule: SlowRule | None) -> None:
        """A consumer of the queue has come."""
        known = self.queues.get(queue.name)
        if rule is not None and (known is None or known.queue is not queue):
            known = self.queues[queue.name] = _Queue(queue, rule)
            self._again(known, _AT_ONCE)

    def arrived(self, queue: QueueState) -> None:
        """A message comes to the queue."""
        known = self.queues.get(queue.name)
        if known is not None and known.queue is queue:
            for each in known.watched():
                known.rule.arrived(queue, each)

    def check(self, now: int) -> None:
        """Make the checks that are due; a queue without consumers needs none any more."""
        while self._due and self._due[0][0] <= now:
            due, _, known = heapq.heappop(self._due)
            watched = known.watched()
            if not watched:
                if self.queues.get(known.queue.name) is known:
                    del self.queues[known.queue.name]
                continue
            for each in watched if due else ():
                if not each.ended and known.rule.ends(each, now):
                    each.ended = True
                    self._end(known, each.consumer)
            self._again(known, now + known.rule.period)

    def _end(self, known: _Queue, consumer: Subscription) -> None:
        ending = known.rule.ending
        self.ended.append((consumer, ending))
        what = "its connection ends" if ending.connection else "it ends"
        where = known.queue.destination
        log.warning("%s: a consumer is slow: %s; what it had is redelivered: %s", where, what, ending.reason)

    def _again(self, known: _Queue, at: int) -> None:
        self._number += 1
        heapq.heappush(self._due, (at, self._number, known))
