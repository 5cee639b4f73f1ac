"""Facts of brokers over AMQP that no rule of the conformance suite would miss; see test_dialect_fields.py."""

from __future__ import annotations

import threading
from uuid import uuid4

import pytest
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.amqp_sessions import Client
from tests.transports.scripted import TIMEOUT, text

import redelivery
from redelivery import AckMode, BrokerDeadLetterStrategy, RedeliveryPolicy
from redelivery.model.destinations import Topic
from redelivery.testing.brokers.real import RealBroker
from redelivery.transports.amqp.codec.names import to_address
from redelivery.transports.dialects import activemq, embedded


@pytest.mark.parametrize("broker", ["activemq", "artemis", "qpid", "rabbitmq", "rabbitmq4"])
def test_any_words_of_a_topic(request: pytest.FixtureRequest, broker: str) -> None:
    real: RealBroker = request.getfixturevalue(broker)
    stem = f"dialect.{uuid4().hex}"
    with redelivery.connect(real.amqp_url) as connection, connection.session() as session:
        consumer = session.consumer(f"topic://{stem}.>")
        session.producer(f"topic://{stem}.a.b").send("far", persistent=False)
        message = consumer.receive(timeout=5)
        assert message is not None
        assert message.body == "far"


@pytest.mark.parametrize(
    ("kind", "named"), [("temporary_queue", "TemporaryQueue"), ("temporary_topic", "TemporaryTopic")]
)
def test_rabbitmq_is_not_asked_for_what_it_cannot_make(rabbitmq: RealBroker, kind: str, named: str) -> None:
    """Its own refusal would end the session."""
    with redelivery.connect(rabbitmq.amqp_url) as connection:
        make = getattr(connection.session(), kind)
        with pytest.raises(redelivery.UnsupportedError, match=f"this broker makes no {named} over AMQP"):
            make()


def test_a_topic_s_consumer_on_classic_is_there_when_its_credit_is() -> None:
    """What is published before is not for it: a session that is opened for nothing is answered after the credit."""
    frames: list[str] = []

    def script(end: PeerEnd) -> None:
        end.log_in("ActiveMQ")
        end.begun(end.take("begin"))
        end.attached()
        frames.extend((end.take("flow").name, end.take("begin").name))
        end.begun(end.taken[-1])
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        client.session().attach(Topic("news"))
    assert frames == ["flow", "begin"]


def test_rabbitmq_rejects_poison_where_it_is_set_up_for_it(rabbitmq: RealBroker) -> None:
    """There is no dead-letter exchange here, so that the message is gone."""
    queue = f"dialect.{uuid4().hex}"
    errors: list[redelivery.JMSError] = []
    once = RedeliveryPolicy(maximum_redeliveries=0)
    broker = BrokerDeadLetterStrategy(configured=True)
    with redelivery.connect(
        rabbitmq.amqp_url, redelivery_policy=once, dead_letter_strategy=broker, exception_listener=errors.append
    ) as connection:
        with connection.session("client") as session:
            session.producer(queue).send("poison")
            consumer = session.consumer(queue)
            assert consumer.receive(timeout=5) is not None
            session.recover()
            assert consumer.receive(timeout=0.3) is None
        with connection.session() as session:
            assert session.consumer(queue).receive(timeout=0.3) is None
    assert errors == []


def test_rabbitmq_is_never_sent_modified() -> None:
    """It would end the session."""
    outcomes: list[str] = []
    ended = threading.Event()

    def script(end: PeerEnd) -> None:
        end.log_in("RabbitMQ")
        link = end.attached()
        end.message(link, 1)
        assert seen.wait(TIMEOUT)
        end.detach(link, "amqp:resource-deleted", "queue deleted")
        outcomes.append(end.take("disposition").outcome)
        end.take("detach")
        ended.set()
        end.goodbye()

    seen = threading.Event()
    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session(AckMode.CLIENT)
        session.attach()
        session.channel.dispatched(session.receive())
        seen.set()
        session.until(ended.is_set)
    assert outcomes == ["released"]


@pytest.mark.parametrize(("product", "durable"), [("RabbitMQ", 1), ("ActiveMQ", 0)])
def test_a_queue_that_a_link_makes_on_rabbitmq_outlives_it(product: str, durable: int) -> None:
    """The queue is gone with the broker's next start where the terminus is not durable; others know no such thing."""
    found: list[int] = []

    def script(end: PeerEnd) -> None:
        end.log_in(product)
        found.append(int(end.attached()["source"].value[1]))
        found.append(int(end.attached()["target"].value[1]))
        end.settle(end.take("transfer"))
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        session = client.session()
        session.attach()
        assert session.send(text()) is None
    assert found == [durable, durable]


def test_a_topic_of_the_embedded_broker_is_named_as_on_classic() -> None:
    ours = embedded.DIALECT.amqp
    assert ours is not None
    assert to_address(Topic("news"), ours) == to_address(Topic("news"), activemq.AMQP) == "topic://news"


def test_a_consumer_that_says_nothing_has_a_window_of_a_hundred() -> None:
    windows: list[int] = []

    def script(end: PeerEnd) -> None:
        end.log_in("ActiveMQ")
        end.attached()
        windows.append(int(end.take("flow")["link_credit"]))
        end.goodbye()

    with ScriptedPeer(script) as peer, Client(peer.port) as client:
        windows.append(client.session().attach().prefetch or 0)
    assert windows == [100, 100]
