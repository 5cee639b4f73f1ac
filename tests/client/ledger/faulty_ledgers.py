"""Ledgers with one fault each, to see whether the tests notice."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from redelivery.client.ledger import ConsumerState, Ledger, Poison
from redelivery.client.ledger.redelivery import Ruling
from redelivery.client.ledger.stages import ConsumerStage
from redelivery.client.ledger.state import GONE, HELD, READY, Received
from redelivery.model.modes import AckMode
from redelivery.policies.redelivery import RedeliveryPolicy

Batch = tuple[Received, ...]


class DelayTenPercentShort(Ledger):
    def _wait(self, consumer: ConsumerState, batch: Batch, now: float, delay: float) -> None:
        super()._wait(consumer, batch, now, delay * 0.9)


class JitterOnTheFirstDelay(Ledger):
    def _wait(self, consumer: ConsumerState, batch: Batch, now: float, delay: float) -> None:
        if batch[-1].redeliveries == 1:
            delay *= 1 + 0.15 * Random(7).random()  # noqa: S311 - no secret
        super()._wait(consumer, batch, now, delay)


class DelayOfTheOldest(Ledger):
    def _batch_failed(
        self, consumer: ConsumerState, batch: list[Received], now: float, cause: BaseException | None, ruling: Ruling
    ) -> None:
        super()._batch_failed(consumer, batch, now, cause, ruling)
        again = [each for each in batch if each.state is READY and each in consumer.ready]
        if again and consumer.not_before:
            policy, count = self._limit(again[0], consumer)
            consumer.not_before = now + policy.delay(count, self.rng)


class OrderBrokenAtTheHead(Ledger):
    def _wait(self, consumer: ConsumerState, batch: Batch, now: float, delay: float) -> None:
        super()._wait(consumer, batch[::-1], now, delay)


class NonBlockingBatchAtTheHead(Ledger):
    def tick(self, now: float) -> None:
        before = {consumer: list(consumer.ready) for consumer in self.consumers}
        super().tick(now)
        for consumer, ready in before.items():
            fresh = [each for each in consumer.ready if each not in ready]
            consumer.ready.clear()
            consumer.ready.extend(fresh + ready)


class BlockingAtTheTail(Ledger):
    def _wait(self, consumer: ConsumerState, batch: Batch, now: float, delay: float) -> None:
        super()._wait(consumer, batch, now, delay)
        if batch[0] in consumer.ready:
            consumer.ready.rotate(-len(batch))


class WrongConsumerStopped(Ledger):
    def _wait(self, consumer: ConsumerState, batch: Batch, now: float, delay: float) -> None:
        super()._wait(consumer, batch, now, delay)
        other = self.consumers[0]
        consumer.not_before, other.not_before = other.not_before, consumer.not_before


class MaxDelayedIgnored(Ledger):
    def _wait(self, consumer: ConsumerState, batch: Batch, now: float, delay: float) -> None:
        self.max_delayed = 1_000_000
        super()._wait(consumer, batch, now, delay)


class WaitOverwrittenByTheNext(Ledger):
    """A rollback ends the longer wait after a dead letter that could not be written."""

    def _wait(self, consumer: ConsumerState, batch: Batch, now: float, delay: float) -> None:
        consumer.not_before = 0.0
        super()._wait(consumer, batch, now, delay)


class _Shifted(RedeliveryPolicy):
    """A policy whose answer is ``by`` too late."""

    by = 1

    def exceeded(self, redelivery_count: int, elapsed: float = 0.0) -> bool:
        return super().exceeded(max(0, redelivery_count - self.by), elapsed)


class _Eager(_Shifted):
    by = -1


def _shifted(kind: type[_Shifted], policy: RedeliveryPolicy) -> RedeliveryPolicy:
    copy = replace(policy)
    shifted = object.__new__(kind)
    for name in RedeliveryPolicy.__slots__:
        object.__setattr__(shifted, name, getattr(copy, name))
    return shifted


class PoisonOneTooLate(Ledger):
    def _limit(self, delivery: Received, consumer: ConsumerState) -> tuple[RedeliveryPolicy, int]:
        policy, count = super()._limit(delivery, consumer)
        return _shifted(_Shifted, policy), count


class PoisonOneTooEarly(Ledger):
    def _limit(self, delivery: Received, consumer: ConsumerState) -> tuple[RedeliveryPolicy, int]:
        policy, count = super()._limit(delivery, consumer)
        return _shifted(_Eager, policy), count


class WholeBatchPoisoned(Ledger):
    """As Java does: by the count of the newest."""

    def _limit(self, delivery: Received, consumer: ConsumerState) -> tuple[RedeliveryPolicy, int]:
        newest = next((each for each in reversed(self.held) if each.link is consumer.link), delivery)
        policy, count = super()._limit(delivery, consumer)
        return policy, max(count, super()._limit(newest, consumer)[1]) if delivery in self.held else count


class CounterLeaked(Ledger):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.counts: dict[str, int] = {}

    def dispatch(self, consumer: ConsumerState, now: float, hand: list[Received] | None = None) -> Received | None:
        delivery = super().dispatch(consumer, now, hand)
        if delivery is not None:
            self.counts[str(delivery)] = delivery.redeliveries
        return delivery


class HeldCounterLeaked(Ledger):
    def acknowledge(self, delivery: Received, redeliveries: int) -> bool:
        done = super().acknowledge(delivery, redeliveries)
        delivery.link.consumer.held += done
        return done


class DelayedCounterLeaked(Ledger):
    def tick(self, now: float) -> None:
        before = self.delayed_count
        super().tick(now)
        self.delayed_count = before


class AcknowledgedBeforeTheCommit(Ledger):
    def dispatch(self, consumer: ConsumerState, now: float, hand: list[Received] | None = None) -> Received | None:
        return self.take(consumer, now, hand)


class CommitCoversThePrefetched(Ledger):
    def covered(self) -> Batch:
        return super().covered() + tuple(each for consumer in self.consumers for each in consumer.ready)


class AcknowledgedAfterARecover(Ledger):
    def consumed(self, delivery: Received) -> bool:
        return super().consumed(delivery) or delivery.state is READY


class StaleObjectAcknowledges(Ledger):
    def acknowledge(self, delivery: Received, redeliveries: int) -> bool:  # noqa: ARG002 - the fault
        return super().acknowledge(delivery, delivery.redeliveries)


class ListenerFailureOfAllConsumers(Ledger):
    def listener_failed(self, consumer: ConsumerState, now: float, cause: BaseException) -> None:  # noqa: ARG002 - the fault
        super().rollback(now, cause)


class ClosingConsumersAckLost(Ledger):
    def close_consumer(self, consumer: ConsumerState) -> None:
        for delivery in [each for each in self.held if each.link is consumer.link]:
            self._drop_from_hand(delivery, GONE)
        super().close_consumer(consumer)


class ClosedConsumerStillServed(Ledger):
    def take(
        self, consumer: ConsumerState, now: float, hand: list[Received] | None = None, *, hold: bool = False
    ) -> Received | None:
        stage, consumer.stage = consumer.stage, ConsumerStage.OPEN
        try:
            return super().take(consumer, now, hand, hold=hold)
        finally:
            consumer.stage = stage


class CloseNotCounted(Ledger):
    def close(self, now: float) -> None:  # noqa: ARG002 - the fault
        for consumer in self.consumers:
            consumer.step("close")


class SeenMessagesReleasedAsUnseen(Ledger):
    def _settle_close(self, consumer: ConsumerState) -> None:
        seen = {each: each.redeliveries for each in consumer.ready}
        for each in seen:
            each.redeliveries = 0
        super()._settle_close(consumer)
        for each, count in seen.items():
            each.redeliveries = count


class ExpiredShown(Ledger):
    def _verdict(self, delivery: Received, consumer: ConsumerState) -> Poison | None:
        poison = super()._verdict(delivery, consumer)
        return None if poison is not None and poison.expired else poison


class CheckedAfterLocalRedelivery(Ledger):
    def _verdict(self, delivery: Received, consumer: ConsumerState) -> Poison | None:
        count, delivery.redeliveries = delivery.redeliveries, 0
        try:
            found = super()._verdict(delivery, consumer)
        finally:
            delivery.redeliveries = count
        if found is None and consumer.check_limit and delivery.wire_count() + count > 2:
            return Poison(delivery, "over the limit")
        return found


class PutBackCounted(Ledger):
    def put_back(self, delivery: Received) -> None:
        super().put_back(delivery)
        delivery.redeliveries += 1


class VerdictForgotten(Ledger):
    def poison_failed(self, poison: Poison, now: float) -> float | None:
        cause = f"Delivery[{poison.delivery.redeliveries}] failed again"
        return super().poison_failed(replace(poison, cause=cause), now)


class ShownAfterAFailedDeadLetter(Ledger):
    def poison_failed(self, poison: Poison, now: float) -> float | None:
        wait = super().poison_failed(poison, now)
        if self.condemned.pop(poison.delivery, None):
            self.tick(now + (wait or 0.0))
        return wait


class DeadLetterTriedAtOnce(Ledger):
    def poison_failed(self, poison: Poison, now: float) -> float | None:
        wait = super().poison_failed(poison, now)
        self.tick(now + (wait or 0.0))
        return wait


class OthersWaitForAFailedDeadLetter(Ledger):
    def poison_failed(self, poison: Poison, now: float) -> float | None:
        wait = super().poison_failed(poison, now)
        if wait is not None:
            poison.delivery.link.consumer.not_before = now + wait
        return wait


class SomethingKeptAfterTheLoss(Ledger):
    def transport_lost(self) -> None:
        kept = [each for each in self.held if each.state is HELD][:1]
        super().transport_lost()
        self.held.update(dict.fromkeys(kept))


class ForgottenMessagePutBack(Ledger):
    def put_back(self, delivery: Received) -> None:
        if delivery.state is HELD:
            super().put_back(delivery)
        else:
            delivery.state = READY
            delivery.link.consumer.ready.appendleft(delivery)


class DeadlineInThePast(Ledger):
    def next_deadline(self, consumer: ConsumerState | None = None) -> float:
        return min(super().next_deadline(consumer), 1000.0)


IN_MODE: dict[type[Ledger], AckMode] = {
    HeldCounterLeaked: AckMode.INDIVIDUAL,
    StaleObjectAcknowledges: AckMode.INDIVIDUAL,
    ListenerFailureOfAllConsumers: AckMode.INDIVIDUAL,
    AcknowledgedAfterARecover: AckMode.AUTO,
    ClosingConsumersAckLost: AckMode.CLIENT,
    CommitCoversThePrefetched: AckMode.CLIENT,
}
"""Where a fault shows; TRANSACTED unless said."""

FAULTS: list[type[Ledger]] = [
    each
    for each in list(globals().values())
    if isinstance(each, type) and issubclass(each, Ledger) and each is not Ledger
]
