"""The ledger; see the package's rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, MutableSequence
from heapq import heappop
from random import Random

from redelivery.client.ledger.orders import Detach, Order, Poison, Release, Unpark
from redelivery.client.ledger.redelivery import BY_POLICY, Ruling, limit, redeliver, verdict, wait_of
from redelivery.client.ledger.stages import CLOSED, CLOSING, ENDED, OPEN
from redelivery.client.ledger.state import (
    ACCEPTED,
    CONDEMNED,
    GONE,
    HELD,
    READY,
    RETURNED,
    STALE,
    TAKEN,
    ConsumerState,
    Received,
    State,
    inherited,
)
from redelivery.client.ledger.waiting import Waiting
from redelivery.model.errors import ConfigError, JMSError
from redelivery.model.modes import AckMode
from redelivery.policies.redelivery import RedeliveryPolicy

NEVER = float("inf")


class Ledger(Waiting):
    """Facts in, orders out; `take_orders` after each fact, `next_deadline` for when to `tick` again.

    ``wall_ms``: epoch milliseconds, for messages that can expire; all other times are the caller's monotonic seconds.
    ``max_delayed`` bounds what waits at the same time for a non-blocking redelivery; beyond it a batch waits blocking.
    """

    def __init__(
        self,
        mode: AckMode,
        *,
        wall_ms: Callable[[], int],
        rng: Random | None = None,
        non_blocking: bool = False,
        max_delayed: int = 1000,
    ) -> None:
        super().__init__(max_delayed)
        self.mode = mode
        self.consumers: list[ConsumerState] = []
        self.problems: list[ConfigError] = []  # of strategies that fail, to be reported
        self.held: dict[Received, None] = {}  # in the order in which the application got them
        self.link_has_ended = False  # some consumer's, by the broker
        self.lost = False  # with the connection: nothing is ours any more
        self.non_blocking = non_blocking
        self.rng, self._wall_ms = rng, wall_ms

    def take_orders(self) -> list[Order]:
        """The orders given since the last call."""
        orders, self.orders = self.orders, []
        return orders

    def attach(self, consumer: ConsumerState) -> None:
        """A consumer begins."""
        self.consumers.append(consumer)

    def arrived(self, deliveries: MutableSequence[Received]) -> None:
        """Take in what came from the broker, in its order. Taken out of ``deliveries`` one by one, each in one step."""
        while deliveries:
            ready = deliveries[0].link.consumer.ready
            # no call from here, so that no interrupt comes between: a delivery is in one of the two
            ready += (deliveries[0],)
            del deliveries[0]

    def dispatch(self, consumer: ConsumerState, now: float, hand: list[Received] | None = None) -> Received | None:
        """The next delivery for the application, which holds it from now on; None where there is none yet."""
        return self.take(consumer, now, hand, hold=True)

    def take(
        self, consumer: ConsumerState, now: float, hand: list[Received] | None = None, *, hold: bool = False
    ) -> Received | None:
        """The same; without ``hold`` settled at once. An interrupted caller finds in ``hand`` what it must put back."""
        if consumer.not_before:
            if now < consumer.not_before:
                return None
            consumer.not_before = 0.0
        if consumer.stage is not OPEN:
            return None
        ready = consumer.ready
        hand = [] if hand is None else hand
        while ready:
            delivery = ready[0]
            # the cheap tests of what `_refused` looks into, on the path of every message
            odd = delivery.state or delivery.earlier or consumer.check_limit or delivery.expires_at()
            if odd and self._refused(delivery, consumer):
                continue
            # no call from here to the return
            del ready[0]
            if delivery.state is not ACCEPTED:
                delivery.state = HELD if hold else TAKEN
                if hold:
                    self.held[delivery], consumer.held = None, consumer.held + 1
            hand += (delivery,)
            return delivery
        return None

    def put_back(self, delivery: Received) -> None:
        """As if it had not been dispatched or taken: at the head again, uncounted (JMS receiveBody; an interrupt)."""
        consumer = inherited(delivery) if delivery.state is ACCEPTED else delivery.link.consumer
        if delivery.state is HELD:
            self._drop_from_hand(delivery, READY)
        elif delivery.state not in (TAKEN, ACCEPTED) or self.lost or consumer not in self.consumers:
            return  # it has gone back to the broker
        if delivery.state is not ACCEPTED:
            delivery.state = READY
        if consumer.stage is ENDED or consumer.stage is CLOSED:
            delivery.state = GONE
            return
        consumer.ready.appendleft(delivery)
        self._settle_close(consumer)

    def _refused(self, delivery: Received, consumer: ConsumerState) -> bool:
        """Of the first that is ready: True, and it is a Poison order, where the application must not see it."""
        poison = self._verdict(delivery, consumer)
        if poison is None:
            return False
        self.condemned.pop(delivery, None)
        # no call from here: it is ready, or an order stands for it
        del consumer.ready[0]
        delivery.state = GONE
        self.orders += (poison,)
        return True

    def _verdict(self, delivery: Received, consumer: ConsumerState) -> Poison | None:
        if delivery.state is CONDEMNED:
            return self.condemned[delivery]
        return None if delivery.state is ACCEPTED else verdict(delivery, consumer, self._wall_ms)

    def consumed(self, delivery: Received) -> bool:
        """AUTO and DUPS_OK: its listener has returned. True: acknowledge it; False after a recover in the listener."""
        if delivery.state is not HELD:
            return False
        consumer = self._drop_from_hand(delivery, GONE)
        if consumer.stage is CLOSING:
            self._settle_close(consumer)
        return True

    def accepted(self, deliveries: Iterable[Received]) -> None:
        """Note that their acknowledgement has left, or may have, outside any transaction: none gets a second one."""
        for each in deliveries:
            if each.state is HELD:
                self.consumed(each)
            each.state = ACCEPTED

    def acknowledge(self, delivery: Received, redeliveries: int) -> bool:
        """INDIVIDUAL: True: acknowledge it; False where it is not held, or ``redeliveries`` is of a stale object."""
        if delivery not in self.held or delivery.redeliveries != redeliveries:
            return False
        consumer = self._drop_from_hand(delivery, GONE)
        if consumer.stage is CLOSING:
            self._settle_close(consumer)
        return True

    def covered(self) -> tuple[Received, ...]:
        """The deliveries that a commit, or an acknowledge in CLIENT mode, covers now."""
        return tuple(self.held)

    def stranded(self) -> JMSError | None:
        """Why something that the application holds cannot be settled: the broker has ended its consumer."""
        errors = (each.link.consumer.error for each in (self.held if self.link_has_ended else ()))
        return next((error for error in errors if error is not None), None)

    def give_up_stranded(self) -> None:
        """Give up what has gone back to the broker."""
        for delivery in [each for each in self.held if each.link.consumer.error is not None]:
            self._drop_from_hand(delivery, RETURNED)

    def settled(self, deliveries: tuple[Received, ...]) -> None:
        """The commit has happened, or nobody will ever know: they are not ours any more."""
        if len(deliveries) == len(self.held):  # the usual case: a commit covers everything
            for delivery in deliveries:
                delivery.state = GONE
            for consumer in self.consumers:
                consumer.held = 0
            self.held.clear()  # last: an interrupted call can be repeated
        for delivery in deliveries if self.held else ():
            if delivery in self.held:
                self._drop_from_hand(delivery, GONE)
        for consumer in [each for each in self.consumers if each.closing]:
            self._settle_close(consumer)

    def rollback(self, now: float, cause: BaseException | None = None, ruling: Ruling = BY_POLICY) -> None:
        """Everything held failed (rollback and recover). With nothing held nothing happens, not even a delay."""
        self._failed(tuple(self.held), now, cause, ruling)

    def listener_failed(self, consumer: ConsumerState, now: float, cause: BaseException) -> None:
        """A listener raised (AUTO, DUPS_OK, INDIVIDUAL): everything that its consumer holds failed."""
        self._failed(tuple(each for each in self.held if each.link is consumer.link), now, cause)

    def callback_failed(self, delivery: Received, cause: BaseException) -> None:
        """A listener raised (TRANSACTED, CLIENT), which acknowledges nothing: the application decides."""
        delivery.cause = cause

    def poison_failed(self, poison: Poison, now: float) -> float | None:
        """Leave it unacknowledged and unseen, as it could not be dead-lettered; others of its queue go on meanwhile.

        In how many seconds it is tried again; None: never, as its consumer is closed.
        """
        delivery = poison.delivery
        policy, count = self._limit(delivery, delivery.link.consumer)
        wait = max(wait_of(policy, max(count, 1), delivery, self.rng, self.problems), 1.0)
        return wait if self.put_off(poison, now + wait) else None

    def put_off(self, poison: Poison, until: float) -> bool:
        """Do not dead-letter it before that; False where its consumer is closed."""
        delivery = poison.delivery
        consumer = delivery.link.consumer
        if consumer not in self.consumers or consumer.stage is not OPEN:
            return False
        self.condemned[delivery] = poison
        if not self.delay(consumer, (delivery,), until):
            delivery.state = CONDEMNED
            consumer.ready.appendleft(delivery)
            consumer.not_before = max(consumer.not_before, until)
        return True

    def _failed(
        self, deliveries: Iterable[Received], now: float, cause: BaseException | None, ruling: Ruling = BY_POLICY
    ) -> None:
        batches: defaultdict[ConsumerState, list[Received]] = defaultdict(list)
        for delivery in deliveries:
            batches[delivery.link.consumer].append(delivery)
        for consumer, batch in batches.items():
            self._batch_failed(consumer, batch, now, cause, ruling)

    def _batch_failed(
        self, consumer: ConsumerState, batch: list[Received], now: float, cause: BaseException | None, ruling: Ruling
    ) -> None:
        if consumer.error is not None:  # the broker has ended it: they go back to the broker
            for delivery in batch:
                self._drop_from_hand(delivery, GONE)
            return
        at = self._wall_ms()
        for delivery in batch:
            delivery.failed(cause, at)
        found = redeliver(batch, self._limit, self.rng, ruling)
        for poison in found.poisoned:
            self._drop_from_hand(poison.delivery, GONE)
        self.orders += found.poisoned
        self.problems += found.problems
        serves = consumer.stage is OPEN
        for delivery in found.again:
            self._drop_from_hand(delivery, READY if serves else GONE)
        if not serves:
            self._settle_close(consumer)
        elif found.again:
            self._wait(consumer, found.again, now, found.delay)

    def _limit(self, delivery: Received, consumer: ConsumerState) -> tuple[RedeliveryPolicy, int]:
        return limit(delivery, consumer)

    def _wait(self, consumer: ConsumerState, batch: tuple[Received, ...], now: float, delay: float) -> None:
        if self.non_blocking and delay > 0 and self.delay(consumer, batch, now + delay):
            return
        if self.non_blocking and delay <= 0:
            consumer.ready.extend(batch)
        else:
            consumer.ready.extendleft(reversed(batch))
            if delay > 0:
                consumer.not_before = max(consumer.not_before, now + delay)

    def tick(self, now: float) -> None:
        """The waits that are over by ``now`` end; a non-blocking one's batch is ready, at the tail."""
        for each in self.consumers:
            if each.not_before and each.not_before <= now:
                each.not_before = 0.0
        while self.delayed and self.delayed[0][0] <= now:
            _, _, consumer, batch = heappop(self.delayed)
            self.delayed_count -= len(batch)
            if batch[0] in self.condemned:  # alone
                batch[0].state = CONDEMNED
                consumer.ready.appendleft(batch[0])
            else:
                for delivery in batch:
                    delivery.state = READY
                consumer.ready.extend(batch)
            self.orders.append(Unpark(batch))

    def next_deadline(self, consumer: ConsumerState | None = None) -> float:
        """The time when something becomes ready by itself, for one consumer or for any; infinity where nothing does."""
        consumers = self.consumers if consumer is None else (consumer,)
        waits = [each.not_before for each in consumers if each.not_before and each.ready]
        return min(waits + [entry[0] for entry in self.delayed[:1]], default=NEVER)

    def close_consumer(self, consumer: ConsumerState) -> None:
        """The application closed a consumer: its detach waits until all that it delivered is settled.

        So that can be acknowledged (JMS 3.1, `MessageConsumer.close`); an earlier one loses that on some brokers.
        """
        consumer.step("close")
        self._settle_close(consumer)

    def reopen(self, consumer: ConsumerState) -> None:
        """A new consumer of the same destination takes over what a deferred close still has."""
        consumer.step("reopen")

    def link_ended(self, consumer: ConsumerState, error: JMSError) -> None:
        """The broker has ended a consumer: all of it goes back to the broker, what is held too (see `stranded`)."""
        consumer.step("end")
        consumer.error = consumer.error or error
        self.link_has_ended = True
        consumer.not_before = 0.0
        self.forget_waiting(consumer)
        self._forget_ready(consumer)
        if consumer in self.consumers:
            self.consumers.remove(consumer)

    def close(self, now: float) -> None:
        """JMS 3.1, `Session.close`: what a transacted one held is rolled back; else the broker counts."""
        for consumer in self.consumers:
            consumer.step("close")
        if self.mode == AckMode.TRANSACTED:
            self._failed(tuple(self.held), now, None)

    def transport_lost(self) -> None:
        """The connection is gone: everything goes back to the broker, and no order can be carried out."""
        self.lost = True
        for consumer in self.consumers:
            self._forget_ready(consumer)
            consumer.held = 0
            consumer.not_before = 0.0
            self.forget_waiting(consumer)
        for delivery in self.held:
            delivery.state = GONE
        for collection in (self.held, self.condemned, self.orders):
            collection.clear()

    def interrupted(self) -> tuple[Received, ...]:
        """`transport_lost`, where another connection will come: the consumers go on, by links to be attached.

        What was acknowledged, and an interrupt kept from the application, stays: the broker may have it no more.
        Returns what the application holds: it can be acknowledged no more, and is redelivered.
        """
        stale = self.covered()
        kept = [each for consumer in self.consumers for each in consumer.ready if each.state is ACCEPTED]
        self.transport_lost()
        self.lost = False
        for delivery in stale:
            delivery.state = STALE
        for consumer in [each for each in self.consumers if each.closing]:
            consumer.step("settle")
            self.consumers.remove(consumer)
        for consumer in self.consumers:
            consumer.renew()
        for delivery in reversed(kept):
            delivery.state = ACCEPTED
            self.put_back(delivery)
        return stale

    def _drop_from_hand(self, delivery: Received, state: State) -> ConsumerState:
        del self.held[delivery]
        consumer = delivery.link.consumer
        consumer.held -= 1
        delivery.state = state
        return consumer

    def _settle_close(self, consumer: ConsumerState) -> None:
        """Finish a deferred close as soon as the consumer holds nothing."""
        if consumer.stage is not CLOSING or consumer.held:
            return
        self.orders += [Unpark(batch) for batch in self.forget_waiting(consumer)]
        unseen = tuple(each for each in consumer.ready if not each.state and not each.redeliveries)
        self._forget_ready(consumer)
        if unseen:
            self.orders.append(Release(unseen))
        consumer.step("settle")
        self.consumers.remove(consumer)
        if consumer.attached:
            self.orders.append(Detach(consumer.link))

    def _forget_ready(self, consumer: ConsumerState) -> None:
        while consumer.ready:
            consumer.ready[0].state = GONE
            self.condemned.pop(consumer.ready.popleft(), None)
