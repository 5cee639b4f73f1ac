"""What a ledger needs to be alone with: deliveries from nowhere, consumers, and clocks that stand still until told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from random import Random
from types import MappingProxyType
from typing import Any

from redelivery.client.ledger import ConsumerState, Detach, Ledger, Order, Park, Poison, Received, Release, Unpark
from redelivery.model.destinations import Queue
from redelivery.model.modes import AckMode
from redelivery.model.values import Body, Value
from redelivery.policies.redelivery import RedeliveryPolicy
from redelivery.transports.seam import Delivery, Link, LinkSpec

AT_ONCE = RedeliveryPolicy(initial_redelivery_delay=0, redelivery_delay=0)
"""The default limit of 6, without a wait."""

JUST = 0.001
"""Just before and just after, in seconds: the resolution of every policy."""


def policy(limit: int = 6, delay: float = 1.0, **options: Any) -> RedeliveryPolicy:
    """A policy with one delay for all redeliveries, unless told otherwise."""
    options = {"initial_redelivery_delay": delay, "redelivery_delay": delay, **options}
    return RedeliveryPolicy(maximum_redeliveries=limit, **options)


class FakeDelivery(Delivery[ConsumerState]):
    """A message as a broker might have handed it to a link; everything about it can be set."""

    __slots__ = ("count", "expires", "given", "name", "queue", "text")

    def __init__(
        self,
        link: Link[ConsumerState],
        name: str,
        *,
        wire_count: int = 1,
        expires: int = 0,
        body: Body = None,
        properties: Mapping[str, Value] | None = None,
        queue: str | None = None,
    ) -> None:
        super().__init__(link)
        self.name = name
        self.count = wire_count
        self.expires = expires
        self.text = name if body is None else body
        self.given = MappingProxyType(dict(properties or {}))
        self.queue = link.destination.name if queue is None else queue

    def wire_count(self) -> int:
        return self.count

    def expires_at(self) -> int:
        return self.expires

    def body(self) -> Body:
        return self.text

    def properties(self) -> Mapping[str, Value]:
        return self.given

    def header(self, name: str) -> Any:
        return {"destination": Queue(self.queue), "message_id": self.name, "persistent": True}.get(name)

    def __repr__(self) -> str:
        return self.name


class Rig:
    """A session's inside without the session: facts go in by name of the message, orders are kept in ``done``."""

    def __init__(
        self,
        mode: AckMode = AckMode.TRANSACTED,
        *,
        non_blocking: bool = False,
        max_delayed: int = 1000,
        rng: Random | None = None,
    ) -> None:
        self.mode = mode
        self.now = 1000.0
        self.wall = 1_700_000_000_000
        self.ledger = Ledger(
            mode, wall_ms=lambda: self.wall, rng=rng, non_blocking=non_blocking, max_delayed=max_delayed
        )
        self.done: list[Order] = []
        self.messages: dict[str, FakeDelivery] = {}
        self.dead_letter_queue_is_down = False
        self.acknowledged: list[str] = []

    def consumer(
        self,
        policy: RedeliveryPolicy | Callable[[Received], RedeliveryPolicy] = AT_ONCE,
        *,
        queue: str = "orders",
        check_limit: bool = False,
    ) -> ConsumerState:
        answer = policy if callable(policy) else lambda _: policy
        name = f"consumer {len(self.ledger.consumers) + 1} of queue://{queue}"
        consumer = ConsumerState(Link(LinkSpec(Queue(queue))), answer, name=name, check_limit=check_limit)
        self.ledger.attach(consumer)
        return consumer

    def deliver(self, consumer: ConsumerState, *names: str, **facts: Any) -> None:
        """The broker sends the named messages; ``facts`` are FakeDelivery's."""
        fresh: list[Received] = [FakeDelivery(consumer.link, name, **facts) for name in names]
        self.messages.update((str(each), each) for each in fresh if isinstance(each, FakeDelivery))
        self.ledger.arrived(fresh)

    def receive(self, consumer: ConsumerState) -> str | None:
        """The application asks for one message, and holds it from now on."""
        self.ledger.tick(self.now)
        delivery = self.ledger.dispatch(consumer, self.now)
        self.carry_out()
        return None if delivery is None else str(delivery)

    def receive_all(self, *consumers: ConsumerState) -> list[str]:
        found = []
        for consumer in consumers:
            while (name := self.receive(consumer)) is not None:
                found.append(name)
        return found

    def commit(self) -> list[str]:
        """A commit that the broker accepts, or an acknowledge in CLIENT mode; the names that it covered."""
        covered = self.ledger.covered()
        self.acknowledged += map(str, covered)
        self.ledger.settled(covered)
        self.carry_out()
        return [str(each) for each in covered]

    def consumed(self, name: str) -> bool:
        """The listener returned normally (AUTO, DUPS_OK)."""
        return self._acknowledged(name, self.ledger.consumed(self.messages[name]))

    def acknowledge(self, name: str, redeliveries: int | None = None) -> bool:
        """INDIVIDUAL; ``redeliveries`` of the object that the application has, by default of the latest."""
        message = self.messages[name]
        count = message.redeliveries if redeliveries is None else redeliveries
        return self._acknowledged(name, self.ledger.acknowledge(message, count))

    def rollback(self, cause: BaseException | None = None) -> None:
        """Or recover, which is the same in the modes without transactions."""
        self.ledger.rollback(self.now, cause)
        self.carry_out()

    def listener_failed(self, consumer: ConsumerState, cause: BaseException | None = None) -> None:
        self.ledger.listener_failed(consumer, self.now, cause or ValueError("bad order"))
        self.carry_out()

    def put_back(self, name: str) -> None:
        self.ledger.put_back(self.messages[name])
        self.carry_out()

    def close_consumer(self, consumer: ConsumerState) -> None:
        self.ledger.close_consumer(consumer)
        self.carry_out()

    def close(self) -> None:
        self.ledger.close(self.now)
        self.carry_out()

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.wall += round(seconds * 1000)

    def carry_out(self) -> None:
        """What a session does with orders."""
        for order in self.ledger.take_orders():
            self.done.append(order)
            if isinstance(order, Poison) and self.dead_letter_queue_is_down:
                self.ledger.poison_failed(order, self.now)

    def redeliveries(self, *names: str) -> list[int]:
        return [self.messages[name].redeliveries for name in names]

    @property
    def poisoned(self) -> list[str]:
        return [str(order.delivery) for order in self.done if isinstance(order, Poison)]

    @property
    def causes(self) -> list[str]:
        return [order.cause for order in self.done if isinstance(order, Poison)]

    @property
    def released(self) -> list[str]:
        return _names(order.deliveries for order in self.done if isinstance(order, Release))

    @property
    def parked(self) -> list[str]:
        return _names(order.deliveries for order in self.done if isinstance(order, Park))

    @property
    def unparked(self) -> list[str]:
        return _names(order.deliveries for order in self.done if isinstance(order, Unpark))

    def detached(self, consumer: ConsumerState) -> bool:
        return any(isinstance(order, Detach) and order.link is consumer.link for order in self.done)

    def _acknowledged(self, name: str, done: bool) -> bool:
        if done:
            self.acknowledged.append(name)
        self.carry_out()
        return done


def _names(groups: Iterable[tuple[Delivery, ...]]) -> list[str]:
    return [str(delivery) for group in groups for delivery in group]
