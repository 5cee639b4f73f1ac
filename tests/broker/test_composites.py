"""Composite destinations at the embedded broker: ActiveMQ's spelling by each way in, and what becomes of the copies."""

from __future__ import annotations

import pytest
from tests.broker.raw_stomp import Raw

import redelivery
from redelivery import InvalidDestinationError, JMSError, RedeliveryPolicy, ResourceAllocationError, UnsupportedError
from redelivery.broker import BrokerConfig, EmbeddedBroker


@pytest.mark.parametrize("spelling", ["/queue/a,/queue/b", "/queue/a,b", "a,b", "/queue/a, /queue/b"])
def test_as_stomp_clients_of_classic_spell_it(redelivery_broker: EmbeddedBroker, spelling: str) -> None:
    with Raw(redelivery_broker.stomp_url) as client:
        client.ok("SEND", b"x", destination=spelling)
        client.subscribe("/topic/t", "auto")
        client.ok("SEND", b"y", destination=f"{spelling},/topic/t")
        assert (client.next().headers["destination"], client.is_quiet()) == ("/topic/t", True)
    for name in ("a", "b"):
        assert [message.body for message in redelivery_broker.messages(name)] == ["x", "y"]


def test_a_topic_with_other_topics(redelivery_broker: EmbeddedBroker) -> None:
    with redelivery.connect(redelivery_broker.vm_url) as connection, connection.session() as session:
        consumers = [session.consumer(f"topic://{name}") for name in "ab"]
        session.producer("topic://a,b,queue://c").send("news")
        assert [consumer.receive_body(str, timeout=5) for consumer in consumers] == ["news", "news"]
    assert redelivery_broker.queue_depth("c") == 1


def test_each_copy_fails_for_itself(redelivery_broker: EmbeddedBroker) -> None:
    policy = RedeliveryPolicy(maximum_redeliveries=0)
    sent = redelivery_broker.send("a,b", "x")
    with redelivery.connect(redelivery_broker.vm_url, redelivery_policy=policy) as connection:
        for name in "ab":
            with connection.session("transacted") as session:
                message = session.consumer(name).receive(timeout=5)
                assert message is not None
                assert message.message_id == sent.message_id
                session.rollback()
    letters = [message.dead_letter for message in redelivery_broker.messages("ActiveMQ.DLQ")]
    assert [str(letter.origin) for letter in letters if letter is not None] == ["queue://a", "queue://b"]


def test_all_or_none() -> None:
    with EmbeddedBroker("small", config=BrokerConfig(memory_limit=1500)) as broker:
        with pytest.raises(ResourceAllocationError):
            broker.send("a,b", "x" * 1000)
        assert (broker.queue_depth("a"), broker.queue_depth("b")) == (0, 0)
        with pytest.raises(InvalidDestinationError):
            broker.send("a,b.>", "x")
        assert broker.queue_depth("a") == 0


@pytest.mark.parametrize("protocol", ["vm", "stomp", "amqp"])
@pytest.mark.parametrize("several", ["a,b", "topic://a,b", "a,topic://b"])
def test_a_consumer_or_browser_of_several_is_refused(
    redelivery_broker: EmbeddedBroker, protocol: str, several: str
) -> None:
    """A queue of that name would never get a message."""
    url = getattr(redelivery_broker, f"{protocol}_url")
    refusal = JMSError if protocol == "stomp" else UnsupportedError  # an ERROR of STOMP has no kinds
    with redelivery.connect(url) as connection, connection.session() as session:
        with pytest.raises(refusal, match="composite"):
            session.consumer(several)
        if several == "a,b":
            with pytest.raises(refusal, match="composite"):
                list(session.browser(several))
        assert session.consumer("a").receive(timeout=0) is None, "the session goes on"
