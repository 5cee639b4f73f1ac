"""Topics, named subscriptions and exclusive consumers of the engine against a model: who holds what, in which order.

The model knows for each subscription which messages it has to hold. A queue with exclusive consumers stands beside the
topic; `test_engine_machine` has queues with all else.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, MultipleResults, RuleBasedStateMachine, consumes, invariant, multiple, rule
from tests.broker.engine.clients import Consumer
from tests.run import forms

from redelivery.broker.engine.config import BrokerConfig
from redelivery.broker.engine.engine import Engine
from redelivery.broker.engine.stored import StoredMessage
from redelivery.broker.engine.subscriptions import Dispatch, Subscription
from redelivery.broker.subscriptions import named_subscriptions
from redelivery.model.destinations import Destination, Queue, SubscriptionName, Topic
from redelivery.model.errors import IllegalStateError, InvalidDestinationError
from redelivery.model.selectors.selector import Selector

TOPIC, QUEUE = Topic("news"), Queue("work")
ME, OTHER = "me", "another"  # connections, by their origin
DURABLE = {name: SubscriptionName(name, durable=True, shared=False) for name in ("d1", "d2")}
SHARED = SubscriptionName("s", durable=False, shared=True)
ODD = "odd = TRUE"


@dataclass(eq=False)
class Kept:
    """What a subscription, or the queue, has to hold: numbers, in the order in which they came."""

    selector: str | None = None
    no_local: bool = False
    consumers: list[Consumer] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)


class TopicsMachine(RuleBasedStateMachine):
    """Rules are what clients do; the invariants hold after each."""

    consumers = Bundle("consumers")

    def __init__(self) -> None:
        super().__init__()
        self.engine = Engine(BrokerConfig())
        self.number = 0
        self.work = Kept()
        self.named: dict[str, Kept] = {}  # durable ones, and the shared one while it has a consumer
        self.plain: list[Kept] = []
        self.exclusive: list[Consumer] = []  # of the queue, in the order in which they came

    @rule(origin=st.sampled_from((ME, OTHER)), odd=st.booleans())
    def publish(self, origin: str, odd: bool) -> None:
        self._send(TOPIC, origin, odd)
        for kept in (*self.named.values(), *self.plain):
            if not (kept.no_local and origin == ME) and (kept.selector is None or odd):
                kept.numbers.append(self.number)

    @rule()
    def send(self) -> None:
        self.work.numbers.append(self._send(QUEUE, OTHER, False))

    @rule(target=consumers, selector=st.sampled_from((None, ODD)), no_local=st.booleans(), prefetch=st.integers(1, 3))
    def listen(self, selector: str | None, no_local: bool, prefetch: int) -> Consumer:
        self.plain.append(Kept(selector, no_local))
        return self._consume(self.plain[-1], TOPIC, prefetch)

    @rule(
        target=consumers,
        name=st.sampled_from(list(DURABLE)),
        selector=st.sampled_from((None, None, ODD)),
        prefetch=st.integers(1, 3),
    )
    def listen_durably(self, name: str, selector: str | None, prefetch: int) -> Consumer | MultipleResults[Consumer]:
        kept = self.named.get(name)
        if kept is not None and kept.consumers:
            with pytest.raises(IllegalStateError, match=r"in use|close them first"):
                self._consume(kept, TOPIC, prefetch, named=DURABLE[name], selector=selector)
            return multiple()
        if kept is None or kept.selector != selector:
            kept = self.named[name] = Kept(selector)  # with another selector it is a new one, and holds nothing
        return self._consume(kept, TOPIC, prefetch, named=DURABLE[name])

    @rule(target=consumers, prefetch=st.integers(1, 3))
    def share(self, prefetch: int) -> Consumer:
        return self._consume(self.named.setdefault("s", Kept()), TOPIC, prefetch, named=SHARED)

    @rule(target=consumers, exclusive=st.booleans(), prefetch=st.integers(1, 3))
    def work_on(self, exclusive: bool, prefetch: int) -> Consumer:
        return self._consume(self.work, QUEUE, prefetch, exclusive=exclusive)

    @rule(consumer=consumers, data=st.data())
    def acknowledge(self, consumer: Consumer, data: st.DataObject) -> None:
        if consumer.held:
            number = data.draw(st.sampled_from(list(consumer.held)))
            self._kept_of(consumer).numbers.remove(number)
            self.engine.acknowledge([consumer.held.pop(number)], 0)

    @rule(consumer=consumers)
    def release(self, consumer: Consumer) -> None:
        dispatches = list(consumer.held.values())
        consumer.held.clear()
        self.engine.release(dispatches, 0)

    @rule(consumer=consumes(consumers))
    def leave(self, consumer: Consumer) -> None:
        kept = self._kept_of(consumer)
        kept.consumers.remove(consumer)
        if consumer in self.exclusive:
            self.exclusive.remove(consumer)
        if not kept.consumers:
            self.plain = [each for each in self.plain if each is not kept]
            if self.named.get("s") is kept:
                del self.named["s"]
        consumer.held.clear()
        self.engine.unsubscribe(consumer.subscription, 0, all_seen=False)

    @rule(name=st.sampled_from(list(DURABLE)))
    def unsubscribe(self, name: str) -> None:
        kept = self.named.get(name)
        if kept is None or kept.consumers:
            with pytest.raises(InvalidDestinationError if kept is None else IllegalStateError):
                self.engine.remove_subscription(name, ME)
        else:
            del self.named[name]
            self.engine.remove_subscription(name, ME)

    @invariant()
    def all_is_well(self) -> None:
        held = [(kept, consumer) for kept in self._all() for consumer in kept.consumers]
        for kept, consumer in held:
            new, consumer.box[:] = list(consumer.box), []
            numbers = [_number(dispatch) for dispatch in new]
            assert numbers == sorted(numbers), "given in the order in which they came"
            assert kept is not self.work or not new or not self.exclusive or consumer is self.exclusive[0]
            consumer.held.update(zip(numbers, new, strict=True))
        for kept in self._all():
            taken = [number for consumer in kept.consumers for number in consumer.held]
            assert len(taken) == len(set(taken)), "one consumer at a time"
            assert set(taken) <= set(kept.numbers)
            getting = self.exclusive[:1] if kept is self.work and self.exclusive else kept.consumers
            waits = len(kept.numbers) - len(taken)
            assert not waits or all(len(each.held) == each.prefetch for each in getting), "nobody waits in vain"
        depths = [(each.name, each.depth) for each in named_subscriptions(self.engine)]
        assert depths == sorted((name, len(kept.numbers)) for name, kept in self.named.items())
        assert self.engine.depth(QUEUE.name) == len(self.work.numbers)
        assert self.engine.memory_used == 10 * sum(len(kept.numbers) for kept in self._all())

    def _all(self) -> list[Kept]:
        return [self.work, *self.named.values(), *self.plain]

    def _kept_of(self, consumer: Consumer) -> Kept:
        (kept,) = (each for each in self._all() if consumer in each.consumers)
        return kept

    def _send(self, to: Destination, origin: str, odd: bool) -> int:
        self.number += 1
        self.engine.send(
            StoredMessage(
                message_id=f"ID:{self.number}", destination=to, origin=origin, properties={"odd": odd}, size=10
            ),
            0,
        )
        return self.number

    def _consume(
        self,
        kept: Kept,
        destination: Destination,
        prefetch: int,
        *,
        named: SubscriptionName | None = None,
        selector: str | None = None,
        exclusive: bool = False,
    ) -> Consumer:
        consumer = Consumer(destination.name, prefetch)
        consumer.subscription = Subscription(
            destination,
            consumer,
            prefetch=prefetch,
            no_local=kept.no_local,
            origin=ME,
            named=named,
            client_id=ME if named in DURABLE.values() else None,
            exclusive=exclusive,
        )
        chosen = selector or kept.selector
        self.engine.subscribe(consumer.subscription, selector=None if chosen is None else Selector(chosen))
        kept.consumers.append(consumer)
        if exclusive:
            self.exclusive.append(consumer)
        self.engine.start(consumer.subscription, 0)
        return consumer


def _number(dispatch: Dispatch) -> int:
    return int(dispatch.message.message_id.removeprefix("ID:"))


TopicsMachine.TestCase.settings = settings(max_examples=forms.examples(60), stateful_step_count=40, deadline=None)
TestTopics = pytest.mark.timeout(300)(TopicsMachine.TestCase)  # the nightly form has ten times as many examples
