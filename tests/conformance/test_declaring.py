"""Queues that an application declares and deletes, where the broker lets it; elsewhere the error says what to do."""

from __future__ import annotations

import pytest
from tests.conformance.own_queues import Own
from tests.conformance.stage import SOON, bodies, receive, receive_all

from redelivery import (
    AckMode,
    BrokerDeadLetterStrategy,
    ConfigError,
    IllegalStateError,
    InvalidDestinationError,
    JMSError,
    Message,
    Queue,
    RedeliveryPolicy,
    Session,
    SharedDeadLetterStrategy,
    Topic,
    UnsupportedError,
)

pytestmark = pytest.mark.needs("declaring queues", refused=UnsupportedError)
ONE_MORE = {"rabbitmq4": {"x-max-length": 7}, "artemis": {"max-consumers": 7}, "qpid": {"maximumMessageTtl": 70_000}}
ANOTHER = {"rabbitmq4": {"x-max-length": 8}, "artemis": {"max-consumers": 8}, "qpid": {"maximumMessageTtl": 80_000}}
KINDS = {"rabbitmq4": ("quorum", "classic"), "artemis": ("anycast", "multicast"), "qpid": ("priority", "standard")}
AT_ONCE = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=0.01, redelivery_delay=0.01)


def refused(session: Session, queue: Queue, **how: object) -> str:
    """What the broker says; it has nothing half done."""
    with pytest.raises(InvalidDestinationError) as caught:
        session.declare(queue, **how)  # type: ignore[arg-type]  # of every kind
    return str(caught.value)


def test_a_declared_queue_is_there_and_empty_and_goes_with_what_it_holds(own: Own) -> None:
    session = own.session
    session.declare(own.queue)
    session.declare(own.queue)
    producer = session.producer(own.queue)
    for body in ("one", "two", "three"):
        producer.send(body)
    with session.consumer(own.queue) as consumer:
        assert receive(consumer).body == "one"
    assert session.delete(str(own.queue)) in (2, 3)  # RabbitMQ may count what was acknowledged a moment ago
    session.declare(own.queue)
    assert session.consumer(own.queue).receive(timeout=0.3) is None
    assert session.delete(own.queue) == 0


def test_deleting_what_is_not_there_is_an_error(own: Own) -> None:
    with pytest.raises(InvalidDestinationError, match="there is no such queue"):
        own.session.delete(own.queue)
    own.session.declare(own.queue)
    own.session.delete(own.queue)
    with pytest.raises(InvalidDestinationError, match="there is no such queue"):
        own.session.delete(own.queue)


def test_kind_and_arguments_are_the_brokers_own_words(own: Own) -> None:
    session, (kind, other) = own.session, KINDS.get(own.broker, ("", ""))
    session.declare(own.queue, type=kind or None, arguments=ONE_MORE.get(own.broker, {}))
    session.declare(own.queue, type=kind, arguments=ONE_MORE[own.broker])
    assert str(other).lower() in refused(session, own.queue, type=other, arguments=ONE_MORE[own.broker]).lower()
    (value,) = map(str, ONE_MORE[own.broker].values())
    assert value in refused(session, own.queue, type=kind, arguments=ANOTHER[own.broker])
    session.declare(own.queue, type=kind, arguments=ONE_MORE[own.broker])  # as it was
    session.delete(own.queue)


def test_what_the_broker_does_not_know_is_refused_and_makes_nothing(own: Own) -> None:
    session = own.session
    session.declare(own.queue)
    session.delete(own.queue)
    assert "nonsense" in refused(session, own.queue, type="nonsense").lower()
    (name,) = ONE_MORE[own.broker]
    assert "many" in refused(session, own.queue, arguments={name: "many"}) or own.broker == "rabbitmq4"
    with pytest.raises(ConfigError, match="nonsense"):
        session.declare(own.queue, arguments={"nonsense": 1})
    with pytest.raises(InvalidDestinationError, match="there is no such queue"):
        session.delete(own.queue)


def test_a_refusal_leaves_the_session_its_consumer_and_its_transaction(own: Own) -> None:
    connection = own.stage.connect()
    mode = AckMode.TRANSACTED if own.pair.can("transactions") else AckMode.CLIENT
    with connection.session(mode) as session:
        session.declare(own.queue)
        own.stage.send("first", "second")
        consumer, producer = session.consumer(own.queue), session.producer(own.queue)
        received = [receive(consumer).body]
        producer.send("third")
        assert refused(session, own.queue, type="nonsense")
        with pytest.raises(InvalidDestinationError):
            session.delete(own.dead)
        received.append(receive(consumer).body)
        if session.transacted:
            session.commit()
        received.append(receive(consumer).body)
        assert received == ["first", "second", "third"]
        session.commit() if session.transacted else session.acknowledge()
    assert own.stage.left() == []


def test_only_a_queue_by_its_name_is_declared_and_deleted(own: Own) -> None:
    session = own.session
    session.declare(own.queue)  # or the broker cannot
    session.delete(own.queue)
    wrong = (Topic("news"), "topic://news", "orders.>", "orders,bills", "orders?consumer.prefetchSize=1")
    for each in (*wrong, session.temporary_queue()):
        for call in (session.declare, session.delete):
            with pytest.raises(InvalidDestinationError):
                call(each)
        with pytest.raises(InvalidDestinationError, match="dead_letters"):
            session.declare(own.queue, dead_letters=each)


def test_a_name_that_is_not_ascii_is_one(own: Own) -> None:
    session, queue = own.session, Queue(f"{own.queue.name}.ü")
    session.declare(queue, type=own.counts)
    session.declare(queue, type=own.counts)
    session.producer(queue).send("x")
    assert receive(session.consumer(queue)).body == "x"
    session.delete(queue)


def test_a_consumer_of_a_deleted_queue_ends_and_says_so(own: Own) -> None:
    session = own.session
    session.declare(own.queue)
    consumer = own.stage.session(AckMode.AUTO).consumer(own.queue)
    session.delete(own.queue)
    with pytest.raises(JMSError, match="ended the consumer"):
        consumer.receive(timeout=SOON)


def test_a_closed_session_declares_nothing(own: Own) -> None:
    own.session.declare(own.queue)
    own.session.close()
    for call in (own.session.declare, own.session.delete):
        with pytest.raises(IllegalStateError):
            call(own.queue)


def test_what_fails_for_good_comes_to_the_declared_dead_letter_queue(own: Own) -> None:
    how = {"type": own.counts, "dead_letters": own.dead, "maximum_redeliveries": 3}
    own.session.declare(own.queue, **how)  # type: ignore[arg-type]  # of every kind
    own.session.declare(own.queue, **how)  # type: ignore[arg-type]  # of every kind
    by_the_broker = own.broker != "qpid"  # where `rejected` counts, and is no end: a copy
    strategy = BrokerDeadLetterStrategy(configured=True) if by_the_broker else SharedDeadLetterStrategy(own.dead.name)
    session, consumer = own.stage.consuming(AckMode.CLIENT, redelivery_policy=AT_ONCE, dead_letter_strategy=strategy)
    own.stage.send("bad", "good")
    for _ in range(2):
        assert receive(consumer).body == "bad"
        session.recover(cause=ValueError("bad order"))
    assert receive(consumer).body == "good"
    session.acknowledge()
    letter = receive(own.session.consumer(own.dead))
    assert letter.body == "bad"
    assert letter.dead_letter is not None
    assert letter.dead_letter.origin == own.queue


def test_what_the_broker_gives_up_comes_to_the_declared_dead_letter_queue(own: Own) -> None:
    """After two redeliveries: its sessions end without acknowledging it."""
    own.session.declare(own.queue, type=own.counts, dead_letters=own.dead, maximum_redeliveries=2)
    own.stage.send("bad")
    for count in (1, 2, 3):
        session, consumer = own.stage.consuming(AckMode.CLIENT)
        message = receive(consumer)
        assert message.delivery_count == count
        session.close()
    letter: Message = receive(own.session.consumer(own.dead))
    assert letter.body == "bad"
    if own.broker == "qpid":  # which moves it, and says nothing of it
        assert letter.dead_letter is None
    else:
        assert letter.dead_letter is not None
        assert letter.dead_letter.origin == own.queue


def test_other_dead_letters_of_a_queue_that_is_there_are_refused(own: Own) -> None:
    own.session.declare(own.queue, type=own.counts, dead_letters=own.dead, maximum_redeliveries=2)
    other = Queue(f"{own.queue.name}.other")
    for letters, most in ((other, 2), (own.dead, 4)):
        said = refused(own.session, own.queue, type=own.counts, dead_letters=letters, maximum_redeliveries=most)
        assert str(own.queue) in said
    with pytest.raises(InvalidDestinationError, match="there is no such queue"):  # nothing was made for it
        own.session.delete(other)


def test_a_refused_queue_leaves_no_dead_letter_queue(own: Own) -> None:
    own.session.declare(own.queue)
    own.session.delete(own.queue)
    (name,) = ONE_MORE[own.broker]
    refused(own.session, own.queue, arguments={name: "many"}, dead_letters=own.dead)
    for each in (own.queue, own.dead):
        with pytest.raises(InvalidDestinationError, match="there is no such queue"):
            own.session.delete(each)


def test_a_dead_letter_queue_that_is_there_is_taken_as_it_is(own: Own) -> None:
    own.session.declare(own.dead, arguments=ONE_MORE.get(own.broker))
    own.session.declare(own.queue, type=own.counts, dead_letters=own.dead, maximum_redeliveries=2)
    own.session.declare(own.dead, arguments=ONE_MORE[own.broker])


def test_declared_messages_come_in_their_order(own: Own) -> None:
    own.session.declare(own.queue, type=own.counts)
    own.stage.send(*"abc")
    assert bodies(receive_all(own.session.consumer(own.queue), 3)) == ["a", "b", "c"]
