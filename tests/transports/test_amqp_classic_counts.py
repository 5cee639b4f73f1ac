"""ActiveMQ Classic over AMQP charges what nobody saw: what its count is taken for, and what we count ourselves."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client
from tests.transports.scripted import TIMEOUT

import redelivery
from redelivery import AckMode, RedeliveryPolicy, SharedDeadLetterStrategy
from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.amqp.links.delivery_log import DeliveryLog

BODIES = [str(at) for at in range(10)]


def counts(delivery: Any) -> tuple[int, int, int]:
    return delivery.wire_count(), delivery.charged(), delivery.proven()


@pytest.mark.parametrize(
    ("product", "expected"),
    [("ActiveMQ", [(1, 0, 0), (2, 1, 0), (2, 7, 0)]), ("redelivery", [(1, 0, 0), (2, 1, 1), (8, 7, 7)])],
)
def test_the_brokers_count_is_an_upper_bound_where_it_charges_what_nobody_saw(
    product: str, expected: list[tuple[int, int, int]]
) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(product)
        link = end.attached()
        for number, count in enumerate((0, 1, 7)):
            end.message(link, number, count=count)
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        assert [counts(each) for each in session.receive_many(3)] == expected


@pytest.mark.parametrize("way", ["close", "lost"])
def test_what_the_application_had_is_counted_when_it_goes_back(way: str) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in()
        link = end.attached()
        end.message(link, 1, count=4 if end is not peer.peers[0] else 0)
        end.message(link, 2, count=4 if end is not peer.peers[0] else 0)
        end.goodbye()

    with ScriptedPeer(script) as peer:
        for seen in (0, 1, 2):
            client = Client(peer.port)
            session = client.session(AckMode.CLIENT)
            session.attach()
            had, unseen = session.receive_many(2)
            assert counts(had) == ((1 + max(seen, 1), 4, seen) if seen else (1, 0, 0))
            assert counts(unseen) == ((2, 4, 0) if seen else (1, 0, 0))
            session.channel.dispatched(had)
            if way == "close":
                peer.peers[-1].sock.settimeout(TIMEOUT)
                client.close()
            else:
                client.transport.abort()


def test_what_was_settled_is_not_counted() -> None:
    def script(end: PeerEnd) -> None:
        end.log_in()
        link = end.attached()
        end.message(link, 1, count=3)
        end.goodbye()

    with ScriptedPeer(script) as peer:
        for _ in range(2):
            with Client(peer.port) as client:
                session = client.session()
                session.attach()
                (delivery,) = session.receive_many(1)
                assert counts(delivery) == (2, 3, 0)
                session.channel.dispatched(delivery)
                session.channel.accept([delivery], batched=False)


def test_only_so_many_are_remembered() -> None:
    seen = DeliveryLog(most=2)
    for name in ("a", "b", "a", "c"):
        seen.note("broker", name)
    assert [seen.count("broker", name) for name in ("a", "b", "c", None)] == [2, 0, 1, 0]
    assert seen.count("another", "a") == 0


@pytest.mark.parametrize("mode", [AckMode.TRANSACTED, AckMode.CLIENT, AckMode.INDIVIDUAL])
@pytest.mark.parametrize("maximum", [0, 1, 2])
def test_what_nobody_saw_has_all_its_deliveries(activemq: RealBroker, mode: AckMode, maximum: int) -> None:
    """Four sessions close with the first message in hand, each of which charges the others."""
    queue = f"transport.counts.{uuid4().hex}"
    policy = RedeliveryPolicy(maximum_redeliveries=maximum, initial_redelivery_delay=0, redelivery_delay=0)
    strategy = SharedDeadLetterStrategy(f"{queue}.dead")
    had: dict[str, int] = {}
    with redelivery.connect(activemq.amqp_url, redelivery_policy=policy, dead_letter_strategy=strategy) as connection:
        with connection.session(AckMode.TRANSACTED) as session:
            for body in BODIES:
                session.producer(queue).send(body)
            session.commit()
        gone = 0
        for _ in range(4):
            with connection.session(mode) as session:
                message = session.consumer(queue, prefetch=10).receive(timeout=TIMEOUT)
                assert message is not None
                gone = max(gone, int(message.body) + (message.delivery_count > maximum))
        with connection.session(mode) as session:
            consumer = session.consumer(queue, prefetch=10)
            for _ in range(maximum + 1):
                while (message := consumer.receive(timeout=0.3)) is not None:
                    had[message.body] = had.get(message.body, 0) + 1
                session.rollback() if mode == AckMode.TRANSACTED else session.recover()
        with connection.session() as session:
            consumer = session.consumer(f"{queue}.dead")
            dead = {consumer.receive(timeout=TIMEOUT).body for _ in BODIES}  # type: ignore[union-attr]  # all are there
    unseen = BODIES[gone + 1 :]
    assert {body: had.get(body, 0) for body in unseen} == dict.fromkeys(unseen, maximum + 1)
    assert dead == set(BODIES)
