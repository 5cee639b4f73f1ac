"""Queues that a session declares and deletes on real brokers: what no rule of the conformance suite says.

RabbitMQ 3, and RabbitMQ 4 over STOMP, do it over HTTP; RabbitMQ 4, Artemis and Broker-J over AMQP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from tests.run.rabbitmq import SITES
from tests.transports.declared import SOON, Site, gate_of, site_of

import redelivery
from redelivery import (
    BrokerDeadLetterStrategy,
    ConfigError,
    InvalidDestinationError,
    Message,
    Queue,
    RedeliveryPolicy,
    Session,
    UnsupportedError,
)

ONCE = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.01, redelivery_delay=0.01)
ARGUMENTS: dict[str, Any] = {
    "x-max-length": 1_000,
    "x-single-active-consumer": True,
    "x-overflow": "reject-publish",
    "x-max-length-bytes": 5_000_000_000,
}


@pytest.fixture(params=SITES)
def site(request: pytest.FixtureRequest) -> Iterator[Site]:
    yield from site_of(request)


def test_without_management_the_error_names_it(site: Site) -> None:
    if not site.needs_http:
        pytest.skip("it declares over AMQP")
    with redelivery.connect(site.url) as connection, connection.session() as session:
        for call in (session.declare, session.delete):
            with pytest.raises(UnsupportedError, match="management="):
                call(site.queue)
        session.producer(site.queue).send("goes on")
        assert session.consumer(site.queue).receive(timeout=SOON) is not None


def test_kind_and_arguments_are_as_they_were_given(site: Site) -> None:
    with site.connect() as connection, connection.session() as session:
        session.declare(site.queue, type="quorum", arguments=ARGUMENTS)
        session.declare(site.queue, type="quorum", arguments=ARGUMENTS)
        made = site.made(site.queue)
        assert made is not None
        assert (made["type"], made["durable"], made["auto_delete"]) == ("quorum", True, False)
        assert made["arguments"] == {"x-queue-type": "quorum", **ARGUMENTS}
        session.delete(site.queue)
        assert site.made(site.queue) is None
        with pytest.raises(InvalidDestinationError, match="there is no such queue"):
            session.delete(site.queue)


def test_what_is_there_otherwise_stays_as_it_is(site: Site) -> None:
    site.api.declare_queue(site.name, arguments={"x-max-length": 5})
    with site.connect() as connection, connection.session() as session:
        for refused in ({"type": "quorum"}, {"arguments": {"x-max-length": 6}}, {"dead_letters": site.dead}):
            with pytest.raises(InvalidDestinationError, match="inequivalent arg"):
                session.declare(site.queue, **refused)
        session.declare(site.queue, arguments={"x-max-length": 5})
    assert argued(site.made(site.queue)) == {"x-max-length": 5}
    assert site.made(site.dead) is None


def argued(made: Mapping[str, Any] | None) -> dict[str, Any]:
    """What it was declared with; RabbitMQ 4 adds its type where that was not said."""
    assert made is not None
    return {name: value for name, value in made["arguments"].items() if (name, value) != ("x-queue-type", "classic")}


def test_a_name_in_any_script(site: Site) -> None:
    if site.protocol == "amqp" and not site.is_4:
        pytest.skip("RabbitMQ 3 takes no name over AMQP that is not ASCII")
    site.queue = Queue(f"{site.name}/ü%")
    with site.connect() as connection, connection.session() as session:
        session.declare(site.queue, type="quorum")
        session.declare(site.queue, type="quorum")
        with pytest.raises(InvalidDestinationError):
            session.declare(site.queue, type="classic")
        session.producer(site.queue).send("the moon")
        assert session.consumer(site.queue).receive(timeout=SOON) is not None
        session.delete(site.queue)


def test_a_classic_queue_has_no_limit_and_nothing_is_made(site: Site) -> None:
    with site.connect() as connection, connection.session() as session:
        with pytest.raises(InvalidDestinationError, match="x-delivery-limit"):
            session.declare(site.queue, type="classic", dead_letters=site.dead, maximum_redeliveries=3)
        with pytest.raises(ConfigError, match="'x-max-length'"):
            session.declare(site.queue, arguments={"max-length": 3})
        for name in ("x-dead-letter-exchange", "x-dead-letter-routing-key", "x-delivery-limit", "x-queue-type"):
            with pytest.raises(ConfigError, match="by one of them only"):
                session.declare(
                    site.queue, type="quorum", arguments={name: 3}, dead_letters=site.dead, maximum_redeliveries=3
                )
    assert site.made(site.queue) is site.made(site.dead) is None


def test_an_address_of_the_brokers_own_is_no_name_of_a_queue(site: Site) -> None:
    with site.connect() as connection, connection.session() as session:
        for prefix in ("/queues/", "/amq/queue/", "/exchanges/"):
            for call in (session.declare, session.delete):
                with pytest.raises(InvalidDestinationError, match="write its name alone"):
                    call(Queue(prefix + site.name))
            with pytest.raises(InvalidDestinationError, match="write its name alone"):
                session.declare(site.queue, dead_letters=Queue(prefix + site.dead.name))
    assert site.made(site.queue) is None


def letter_on(session: Session, queue: Queue) -> Message:
    letter = session.consumer(queue).receive(timeout=SOON)
    assert letter is not None
    _ = letter.body, letter.dead_letter
    return letter


def test_a_dead_letter_of_the_policy_comes_to_the_declared_queue(site: Site) -> None:
    strategy = BrokerDeadLetterStrategy(configured=True)
    with site.connect(redelivery_policy=ONCE, dead_letter_strategy=strategy) as connection:
        with connection.session("client") as session:
            session.declare(site.queue, type="quorum", dead_letters=site.dead, maximum_redeliveries=10)
            session.producer(site.queue).send("the moon")
            consumer = session.consumer(site.queue)
            for _ in range(2):
                assert consumer.receive(timeout=SOON) is not None
                session.recover(cause=LookupError("no such article"))
        with connection.session() as session:
            letter = letter_on(session, site.dead)
    assert letter.body == "the moon"
    if site.protocol == "amqp" and not site.is_4:  # which shows nothing of it
        assert letter.dead_letter is None
    else:
        assert letter.dead_letter is not None
        assert letter.dead_letter.origin == site.queue


def test_a_message_whose_sessions_are_lost_comes_to_the_declared_queue(site: Site) -> None:
    with site.connect() as connection, connection.session() as session:
        session.declare(site.queue, type="quorum", dead_letters=site.dead, maximum_redeliveries=1)
        session.producer(site.queue).send("the moon")
    for _ in range(2):
        with gate_of(site.url) as gate, redelivery.connect(site.through(gate)) as connection:
            assert connection.session("client").consumer(site.queue).receive(timeout=SOON) is not None
            gate.shut()
    with site.connect() as connection, connection.session() as session:
        letter = letter_on(session, site.dead)
        assert letter.body == "the moon"
        if site.protocol == "stomp" or site.is_4:
            assert letter.dead_letter is not None
            assert letter.dead_letter.origin == site.queue
    made = site.made(site.dead)
    assert made is not None
    assert made["type"] == "quorum"
    assert made["arguments"].get("x-delivery-limit") == (-1 if site.is_4 else None)  # it is never given up itself


def test_over_asyncio(site: Site) -> None:
    async def work() -> None:
        options = {**site.options, "redelivery_policy": ONCE}
        async with await redelivery.aio.connect(site.url, **options) as connection, connection.session() as session:
            await session.declare(site.queue, type="quorum", dead_letters=site.dead, maximum_redeliveries=2)
            with pytest.raises(InvalidDestinationError, match="inequivalent arg"):
                await session.declare(site.queue, type="classic")
            producer = await session.producer(site.queue)
            await producer.send("the moon")
            consumer = await session.consumer(site.queue)
            assert await consumer.receive(timeout=SOON) is not None
            await session.delete(site.queue)
            with pytest.raises(InvalidDestinationError, match="there is no such queue"):
                await session.delete(site.queue)

    asyncio.run(work())


def test_what_was_known_of_a_deleted_queue_is_forgotten(site: Site) -> None:
    """Over STOMP, one of other arguments has a name of its own, by which one that is gone takes all and keeps none."""
    with site.connect() as connection, connection.session() as session:
        for kind in ("quorum", "classic", "quorum"):
            session.declare(site.queue, type=kind, arguments={"x-max-length": 9} if kind == "quorum" else None)
            session.producer(site.queue).send(kind)
            with session.consumer(site.queue) as consumer:
                assert getattr(consumer.receive(timeout=SOON), "body", None) == kind
            session.delete(site.queue)
        session.producer(site.queue).send("made by its use")
        assert getattr(session.consumer(site.queue).receive(timeout=SOON), "body", None) == "made by its use"
