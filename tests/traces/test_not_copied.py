"""Faults of the Java client that we do not copy, one test each, at the embedded broker and at ActiveMQ Classic.

The rule behind all of them: order kept, nothing lost, nothing acknowledged that the application did not acknowledge,
time-outs kept. The numbers are those of docs/traces.md.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest
from tests.traces.clients import SOON, Client, Heard, cuttable, delayed, drained, expect, failing, numbers

import redelivery
from redelivery import (
    AckMode,
    ConfigError,
    ConnectionLostError,
    Message,
    RedeliveryPolicy,
    RedeliveryPolicyMap,
)
from redelivery.broker import EmbeddedBroker


@pytest.fixture(params=["vm", "stomp"])
def client(request: pytest.FixtureRequest) -> Iterator[Client]:
    if request.param == "stomp":
        made = Client(request.getfixturevalue("activemq").stomp_url)
        yield made
    else:
        with EmbeddedBroker(f"not-copied-{next(numbers)}") as broker:
            made = Client(broker.vm_url, broker)
            yield made
    for connection in made.connections:
        connection.close()


# 1. start() breaks the wait: a later message overtakes the delayed one, and the commit of both fails.


def test_1_stop_and_start_do_not_shorten_the_wait(client: Client) -> None:
    client.send("m1", "m2")
    connection = client.connect(delayed(0.4))
    session = connection.session(AckMode.TRANSACTED)
    consumer = session.consumer(client.queue)
    expect(consumer, ("m1", 1))
    session.rollback()
    began = time.monotonic()
    connection.stop()
    connection.start()

    expect(consumer, ("m1", 2), ("m2", 1))

    assert time.monotonic() - began >= 0.39
    session.commit()
    assert client.left() == []


def test_1_a_rollback_while_stopped_waits_its_delay_too(client: Client) -> None:
    client.send("m1", "m2")
    connection = client.connect(delayed(0.3))
    session = connection.session(AckMode.CLIENT)
    consumer = session.consumer(client.queue)
    expect(consumer, ("m1", 1))
    connection.stop()
    session.recover()
    began = time.monotonic()
    connection.start()

    messages = expect(consumer, ("m1", 2), ("m2", 1))

    assert time.monotonic() - began >= 0.29
    messages[0].acknowledge()
    assert client.left() == []


# 2. Setting a listener breaks the wait.


def test_2_a_listener_set_during_the_delay_does_not_shorten_it(client: Client) -> None:
    client.send("m1", "m2")
    session = client.connect(delayed(0.3)).session(AckMode.TRANSACTED)
    consumer = session.consumer(client.queue)
    expect(consumer, ("m1", 1))
    session.rollback()
    began = time.monotonic()
    heard = Heard(2, lambda _: session.commit())
    consumer.listen(heard)

    assert heard.wait() == [("m1", 2), ("m2", 1)]
    assert heard.first_at - began >= 0.29
    assert client.left() == []


# 3. Ranged acknowledgements assume the broker's order: another order loses acks, and dead-letters the innocent.


def test_3_acknowledge_works_when_a_redelivered_message_came_behind_a_newer_one(client: Client) -> None:
    client.send("m1", "m2")
    session = client.connect(delayed(0.1), non_blocking=True).session(AckMode.CLIENT)
    consumer = session.consumer(client.queue)
    expect(consumer, ("m1", 1))
    session.recover()

    messages = expect(consumer, ("m2", 1), ("m1", 2))
    messages[-1].acknowledge()

    assert client.left() == []


def test_3_only_the_exhausted_message_of_a_batch_is_dead_lettered(client: Client) -> None:
    client.send("m1", "m2")
    session = client.connect(delayed(0.1, maximum=1), non_blocking=True).session(AckMode.TRANSACTED)
    consumer = session.consumer(client.queue)
    expect(consumer, ("m1", 1))
    session.rollback()
    expect(consumer, ("m2", 1), ("m1", 2))
    session.rollback()

    expect(consumer, ("m2", 2))
    session.commit()

    assert client.left() == []
    assert client.left(client.dead_letters) == ["m1"]


# 4. optimizeAcknowledge and a listener that raises: earlier messages come back, the failing one vanishes.


def test_4_earlier_messages_stay_acknowledged_when_a_listener_raises_twice(client: Client) -> None:
    client.send("m1", "m2", "m3", "m4")
    session = client.connect(delayed(0.05)).session(AckMode.DUPS_OK)
    heard = Heard(6, failing("m3", 2))
    session.consumer(client.queue).listen(heard)

    assert heard.wait() == [("m1", 1), ("m2", 1), ("m3", 1), ("m3", 2), ("m3", 3), ("m4", 1)]
    assert client.left() == []


def test_4_the_option_is_refused_by_its_name(client: Client) -> None:
    with pytest.raises(ConfigError, match=r"jms\.optimizeAcknowledge"):
        redelivery.connect(f"{client.url}?jms.optimizeAcknowledge=true")


# 5. Prefetch 0: receive(timeout) blocks for the whole redelivery delay.


def test_5_receive_keeps_its_timeout_with_prefetch_0(client: Client) -> None:
    client.send("m1")
    session = client.connect(delayed(2)).session(AckMode.TRANSACTED)
    consumer = session.consumer(client.queue, prefetch=0)
    expect(consumer, ("m1", 1))
    session.rollback()

    began = time.monotonic()
    assert consumer.receive(timeout=0.1) is None
    assert consumer.receive_nowait() is None
    assert time.monotonic() - began < 1.5

    expect(consumer, ("m1", 2))
    session.commit()
    assert client.left() == []


# 6. A connection lost during a delay delivers twice: the broker does, and the timer that still runs.


def test_6_a_lost_connection_ends_its_delays(client: Client) -> None:
    client.send("m1")
    with cuttable(client) as (url, cut):
        connection = client.connect(delayed(0.3), url=url)
        session = connection.session(AckMode.TRANSACTED)
        consumer = session.consumer(client.queue)
        expect(consumer, ("m1", 1))
        session.rollback()
        cut(connection)

        other = client.connect(delayed(0.3)).session(AckMode.TRANSACTED)
        expect(other.consumer(client.queue), ("m1", 2))
        with pytest.raises(ConnectionLostError):
            consumer.receive(timeout=0.5)
        other.commit()
    assert client.left() == []


# 7. connection.close() counts the deliveries of one consumer only.


def test_7_what_two_sessions_were_given_comes_back_as_redelivered(client: Client) -> None:
    connection = client.connect(delayed(0.05))
    sessions = [connection.session(AckMode.TRANSACTED) for _ in range(2)]
    consumers = [session.consumer(client.queue, prefetch=1) for session in sessions]
    client.send("m1", "m2")
    received = [consumer.receive(timeout=SOON) for consumer in consumers]
    assert {message.body for message in received if message is not None} == {"m1", "m2"}
    connection.close()

    session = client.connect(delayed(0.05)).session(AckMode.TRANSACTED)
    messages = [*drained(session.consumer(client.queue))]

    assert {message.body: message.redelivered for message in messages} == {"m1": True, "m2": True}


# 8. maximumRedeliveries -2: no message is ever delivered, all are dead-lettered.


def test_8_a_limit_below_minus_one_is_refused(client: Client) -> None:
    with pytest.raises(ConfigError, match="maximumRedeliveries"):
        redelivery.connect(f"{client.url}?jms.redeliveryPolicy.maximumRedeliveries=-2")
    with pytest.raises(ConfigError, match="maximum_redeliveries"):
        RedeliveryPolicy(maximum_redeliveries=-2)


def test_8_negative_delays_of_a_url_mean_at_once(client: Client) -> None:
    client.send("m1")
    delays = "jms.redeliveryPolicy.initialRedeliveryDelay=-5&jms.redeliveryPolicy.redeliveryDelay=-5"
    with redelivery.connect(f"{client.url}?{delays}") as connection:
        session = connection.session(AckMode.TRANSACTED)
        consumer = session.consumer(client.queue)
        expect(consumer, ("m1", 1))
        for count in (2, 3):
            session.rollback()
            message = consumer.receive_nowait()
            assert message is not None
            assert message.delivery_count == count
        session.commit()


# 9. A lost connection and a limit of 0: messages that nobody has seen are dead-lettered.


def test_9_messages_that_nobody_saw_survive_a_lost_connection(client: Client) -> None:
    client.send("m1", "m2", "m3")
    with cuttable(client) as (url, cut):
        connection = client.connect(delayed(0.0, maximum=0), url=url)
        session = connection.session(AckMode.TRANSACTED)
        expect(session.consumer(client.queue), ("m1", 1))
        cut(connection)

    session = client.connect(delayed(0.0, maximum=0)).session(AckMode.TRANSACTED)
    bodies = [message.body for message in drained(session.consumer(client.queue))]
    session.commit()

    assert {"m2", "m3"} <= set(bodies)
    assert set(bodies) | set(client.left(client.dead_letters)) == {"m1", "m2", "m3"}


# 10. Prefetch 1: how far a transaction reaches is a race.


def test_10_a_transaction_goes_beyond_the_prefetch(client: Client) -> None:
    bodies = [f"m{number}" for number in range(1, 8)]
    client.send(*bodies)
    session = client.connect(delayed(0.05)).session(AckMode.TRANSACTED)
    consumer = session.consumer(client.queue, prefetch=1)
    expect(consumer, *((body, 1) for body in bodies[:3]))
    session.rollback()

    expect(consumer, *((body, 2) for body in bodies[:3]), *((body, 1) for body in bodies[3:]))

    session.commit()
    assert client.left() == []


# 11. A listener that throws an Error, or closes its consumer and then throws: the message is acknowledged unhandled.


def test_11_a_message_is_not_acknowledged_when_its_listener_raises_an_error(client: Client) -> None:
    client.send("m1", "m2")
    session = client.connect(delayed(0.05)).session(AckMode.AUTO)
    heard = Heard(3, failing("m1", 1, MemoryError))
    session.consumer(client.queue).listen(heard)

    assert heard.wait() == [("m1", 1), ("m1", 2), ("m2", 1)]
    assert client.left() == []


@pytest.mark.parametrize("raised", [KeyboardInterrupt, SystemExit])
def test_11_a_message_is_not_acknowledged_when_its_listener_ends_the_application(
    client: Client, raised: type[BaseException]
) -> None:
    client.send("m1", "m2")
    heard = Heard(1, failing("m1", 1, raised))
    client.connect(delayed(0.05)).session(AckMode.AUTO).consumer(client.queue).listen(heard)

    assert heard.wait() == [("m1", 1)]
    assert client.left() == ["m1", "m2"]


def test_11_a_listener_that_closes_its_consumer_and_raises_does_not_lose_the_message(client: Client) -> None:
    client.send("m1", "m2")
    consumer = client.connect(delayed(0.05)).session(AckMode.AUTO).consumer(client.queue)

    def close_and_raise(_: Message) -> None:
        consumer.close()
        raise ValueError("not handled")

    heard = Heard(1, close_and_raise)
    consumer.listen(heard)
    heard.wait()

    assert client.left() == ["m1", "m2"]


# 12. acknowledge() on the object from before recover(): removed at the broker, yet redelivered.


@pytest.mark.parametrize("mode", [AckMode.CLIENT, AckMode.INDIVIDUAL])
def test_12_an_object_from_before_recover_acknowledges_nothing(client: Client, mode: AckMode) -> None:
    client.send("m1")
    session = client.connect(delayed(0.1)).session(mode)
    consumer = session.consumer(client.queue)
    (stale,) = expect(consumer, ("m1", 1))
    session.recover()
    stale.acknowledge()

    expect(consumer, ("m1", 2))

    assert client.left() == ["m1"]


# 13. map.put(pattern, policy) is a lottery.


def test_13_the_most_specific_entry_wins_in_whatever_order_they_were_given() -> None:
    entries = {
        name: RedeliveryPolicy(maximum_redeliveries=limit)
        for limit, name in enumerate(("orders.new", "orders.*", "orders.>", "*.new", ">"), start=1)
    }

    for order in itertools.permutations(entries):
        policies = RedeliveryPolicyMap({name: entries[name] for name in order})
        assert policies.policy_for("queue://orders.new").maximum_redeliveries == 1
        assert policies.policy_for("queue://orders.old").maximum_redeliveries == 2
        assert policies.policy_for("queue://orders.eu.old").maximum_redeliveries == 3
        assert policies.policy_for("queue://other.new").maximum_redeliveries == 4
