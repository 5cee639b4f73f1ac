"""A random walk over sessions of one connection, beside a model of what must be where.

Nothing that a commit or an acknowledgement has confirmed is delivered again, by whichever session; what was not
confirmed is on its queue or dead-lettered at the end, once; what was sent and not committed is nowhere.
"""

from __future__ import annotations

import os
import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

import pytest

import redelivery
from redelivery import AckMode, Consumer, JMSError, Message, RedeliveryPolicy, Session, SharedDeadLetterStrategy
from redelivery.broker import EmbeddedBroker
from redelivery.transports.wire.clock import monotonic

WALKS = int(os.environ.get("REDELIVERY_WALKS", "6"))
STEPS = 120
MOST = 16.0  # seconds of all walks of a run; what is left out then is said
QUEUES = 2
SOON = 10.0


@dataclass
class Actor:
    """A session and what the model knows of it."""

    session: Session
    consumers: list[Consumer] = field(default_factory=list)
    held: dict[str, tuple[Message, Consumer]] = field(default_factory=dict)  # received and not settled, by body
    sent: list[str] = field(default_factory=list)  # in the open transaction


class Walk:
    """One connection; ``log`` is what a failure shows."""

    def __init__(self, url: str, seed: int, opened: ExitStack) -> None:
        self.rng = random.Random(seed)  # noqa: S311  # not for secrets
        self.url = url
        self.log: list[str] = []
        self.errors: list[JMSError] = []
        name = f"walk.{uuid.uuid4().hex}"
        self.queues = [f"{name}.{number}" for number in range(QUEUES)]
        self.dead = f"{name}.dead"
        delay = self.rng.choice((0.0, 0.15, 0.15))  # with one, deliveries are parked
        self.connection = opened.enter_context(
            redelivery.connect(
                url,
                non_blocking_redelivery=delay > 0,
                redelivery_policy=RedeliveryPolicy(
                    maximum_redeliveries=4, initial_redelivery_delay=delay, redelivery_delay=delay
                ),
                dead_letter_strategy=SharedDeadLetterStrategy(self.dead),
                exception_listener=self.errors.append,
            )
        )
        self.actors: list[Actor] = []
        self.there: set[str] = set()  # sent for good
        self.settled: set[str] = set()  # confirmed
        self.numbers = 0
        self.fill()

    # what may happen

    def fill(self) -> None:
        with redelivery.connect(self.url) as connection, connection.session(AckMode.TRANSACTED) as session:
            for queue in self.queues:
                producer = session.producer(queue)
                for body in self.bodies(self.rng.randint(20, 40)):
                    producer.send(body)
                    self.there.add(body)
            session.commit()

    def make(self) -> None:
        if len(self.actors) < 4:
            mode = self.rng.choice((*[AckMode.TRANSACTED] * 3, AckMode.CLIENT, AckMode.INDIVIDUAL))
            self.actors.append(Actor(self.connection.session(mode)))
            self.consume(self.actors[-1])

    def consume(self, actor: Actor) -> None:
        if len(actor.consumers) < 2:
            policy = RedeliveryPolicy(maximum_redeliveries=0) if self.rng.random() < 0.2 else None
            prefetch = self.rng.choice((4, 10))
            queue = self.rng.choice(self.queues)
            actor.consumers.append(actor.session.consumer(queue, prefetch=prefetch, redelivery_policy=policy))

    def receive(self, actor: Actor) -> None:
        if actor.consumers:
            consumer = self.rng.choice(actor.consumers)
            for _ in range(self.rng.randint(1, 12)):
                message = consumer.receive(timeout=0.03)
                if message is None:
                    return
                self.came(actor, message, consumer)

    def came(self, actor: Actor, message: Message, consumer: Consumer) -> None:
        body = str(message.body)
        self.log.append(f"  {body}")
        assert body in self.there, f"{body} was never committed"
        assert body not in self.settled, f"{body} was acknowledged, and was redelivered"
        assert all(body not in each.held for each in self.actors), f"{body} came while it is held"
        actor.held[body] = (message, consumer)

    def send(self, actor: Actor) -> None:
        producer = actor.session.producer(self.rng.choice(self.queues))
        for body in self.bodies(self.rng.randint(1, 12)):
            producer.send(body)
            (actor.sent.append if actor.session.transacted else self.there.add)(body)

    def settle(self, actor: Actor) -> None:
        match actor.session.ack_mode:
            case AckMode.TRANSACTED:
                actor.session.commit()
            case AckMode.CLIENT:
                actor.session.acknowledge()
            case _:
                if actor.held:
                    body = self.rng.choice(list(actor.held))
                    actor.held.pop(body)[0].acknowledge()
                    self.settled.add(body)
                return
        self.settled.update(actor.held)
        self.there.update(actor.sent)
        actor.held, actor.sent = {}, []

    def undo(self, actor: Actor) -> None:
        if actor.session.transacted:
            actor.session.rollback()
        else:
            actor.session.recover()
        actor.held, actor.sent = {}, []

    def close_consumer(self, actor: Actor) -> None:
        if actor.consumers:
            consumer = actor.consumers.pop(self.rng.randrange(len(actor.consumers)))
            consumer.close()
            if actor.session.ack_mode is AckMode.INDIVIDUAL:  # what it has delivered may have gone back to the broker
                actor.held = {body: held for body, held in actor.held.items() if held[1] is not consumer}

    def close(self, actor: Actor) -> None:
        actor.session.close()
        self.actors.remove(actor)

    # the walk

    def step(self) -> None:
        if not self.actors:
            return self.make()
        if self.rng.random() < 0.06:
            return self.make()
        actor = self.rng.choice(self.actors)
        holds, consumes = bool(actor.held or actor.sent), bool(actor.consumers)  # a step that changes nothing is wasted
        weights: dict[Callable[[Actor], None], int] = {
            self.receive: 12 * consumes, self.settle: 10 * holds, self.undo: 12 * holds, self.send: 2,
            self.consume: 1 if consumes else 9, self.close_consumer: 1 * consumes, self.close: 1,
        }  # fmt: skip
        step = self.rng.choices(list(weights), list(weights.values()))[0]
        self.log.append(f"{step.__name__} {actor.session} {self.actors.index(actor)}")
        return step(actor)

    def end(self) -> None:
        """Close, and look at what is left."""
        for actor in list(self.actors):
            self.close(actor)
        self.connection.close()
        left = [body for queue in (*self.queues, self.dead) for body in self.drain(queue)]
        assert sorted(left) == sorted(self.there - self.settled), "lost, or there twice"
        assert self.errors == []

    def drain(self, queue: str) -> Iterator[str]:
        with redelivery.connect(self.url) as connection, connection.session() as session:
            consumer = session.consumer(queue)
            while (message := consumer.receive(timeout=0.5)) is not None:
                yield str(message.body)

    def bodies(self, number: int) -> list[str]:
        self.numbers += number
        return [f"m{at}" for at in range(self.numbers - number, self.numbers)]


@pytest.fixture(params=["activemq", "embedded"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "embedded":
        with EmbeddedBroker(f"walk-{uuid.uuid4().hex}", stomp_port=0) as broker:
            yield broker.stomp_url
    else:
        yield request.getfixturevalue(request.param).stomp_url


@pytest.mark.short_form
@pytest.mark.in_turns
def test_what_was_confirmed_is_gone_and_what_was_not_is_there(url: str) -> None:
    until = monotonic() + MOST
    first = int(os.environ.get("REDELIVERY_WALK", random.randrange(1 << 30)))  # noqa: S311  # likewise
    for seed in range(first, first + WALKS):
        with ExitStack() as opened:
            walk = Walk(url, seed, opened)
            try:
                for _ in range(STEPS):
                    walk.step()
                walk.end()
            except AssertionError as error:
                error.add_note("\n".join((f"REDELIVERY_WALK={seed}", *walk.log[-400:])))
                raise
        if monotonic() > until:
            break
