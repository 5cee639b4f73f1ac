"""``vm://`` through the seam itself, as a session uses it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from redelivery.broker import BrokerConfig, EmbeddedBroker
from redelivery.broker.vm import VmTransport
from redelivery.model.destinations import destination
from redelivery.model.errors import (
    ConfigError,
    ConnectError,
    ConnectionLostError,
    IllegalStateError,
    InDoubtError,
    InvalidClientIDError,
    InvalidDestinationError,
    JMSError,
    ResourceAllocationError,
    SecurityError,
    TransactionRolledBackError,
    UnsupportedError,
)
from redelivery.model.messages import Message
from redelivery.model.modes import AckMode
from redelivery.transports.base import Channel, Delivery, Flow, Link, Pending, TransportOptions, Waiter

T = TypeVar("T")


def now(flow: Flow[T]) -> T:
    """Drive a flow that must not wait."""
    try:
        next(flow)
    except StopIteration as done:
        value: T = done.value
        return value
    raise AssertionError("a flow of vm:// waited")


class Events:
    """A session and a connection, as far as the transport sees them."""

    def __init__(self) -> None:
        self.inbox: deque[Delivery] = deque()
        self.waiter: Waiter = None  # type: ignore[assignment]  # made by the transport
        self.lost: list[JMSError] = []

    def on_deliveries(self, deliveries: Sequence[Delivery]) -> None:
        self.inbox.extend(deliveries)

    def on_link_closed(self, link: Link, error: JMSError) -> None:
        raise AssertionError(link) from error

    def on_lost(self, error: JMSError) -> None:
        self.lost.append(error)

    def on_error(self, error: JMSError) -> None:
        raise AssertionError("not expected") from error


class Client:
    """One connection with one session."""

    def __init__(self, name: str = "vmtest", **options: Any) -> None:
        self.events = Events()
        self.transport = VmTransport(TransportOptions("vm", name, **options), self.events)
        self.transport.open()
        self.events.waiter = self.transport.new_waiter()
        self.channel: Channel = self.transport.channel(AckMode.TRANSACTED, self.events)

    def consume(self, name: str = "q", **options: Any) -> Link:
        link = Link(destination(name), **options)
        now(self.channel.attach(link))
        return link

    def send(self, *bodies: object, to: str = "q", transacted: bool = False, **stamp: object) -> list[Message]:
        sent = []
        for body in bodies:
            message = Message(body)
            message.stamp(destination=destination(to), **stamp)
            pending = None if transacted else Pending()
            self.channel.send(message, transacted=transacted, pending=pending)
            if pending is not None:
                assert pending.done
                if pending.error is not None:
                    raise pending.error
            sent.append(message)
        return sent

    def take(self) -> list[Delivery]:
        """Everything that has come, handed out."""
        taken = []
        while self.events.inbox:
            taken.append(self.events.inbox.popleft())
            self.channel.handed_out(taken[-1])
        return taken

    def bodies(self) -> list[object]:
        return [delivery.body() for delivery in self.take()]


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("vmtest", config=BrokerConfig(memory_limit=100_000)) as running:
        yield running


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[Client]:
    client = Client(broker.name)
    yield client
    client.transport.close()


@pytest.mark.parametrize(
    "body", ["text", "", b"\0bytes", None, {"a": 1, "b": b"x", "c": None}, [1, "two", 3.0, True]], ids=repr
)
def test_every_kind_of_body_arrives_as_it_was_sent(client: Client, body: object) -> None:
    client.consume()
    client.send(body)
    (delivery,) = client.take()
    assert delivery.body() == body
    assert type(delivery.body()) is type(body)


def test_headers_and_properties_arrive(client: Client) -> None:
    client.consume()
    message = Message(
        "m", properties={"n": 1, "s": "x"}, correlation_id="c", reply_to="topic://r", type="t", group_id="g"
    )
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    message.stamp(destination=destination("q"), priority=7, persistent=False, expiration=later)
    client.channel.send(message, transacted=False, pending=None)
    received = Message.received(client.take()[0], 0, None)
    assert dict(received.properties) == {"n": 1, "s": "x"}
    assert received.message_id == message.message_id
    assert (received.correlation_id, str(received.reply_to), received.type) == ("c", "topic://r", "t")
    assert (received.group_id, received.priority, received.persistent) == ("g", 7, False)
    assert received.expiration == later
    assert received.timestamp is not None
    assert received.timestamp == message.timestamp
    assert str(received.destination) == "queue://q"


def test_the_sender_and_receivers_cannot_change_each_others_message(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    body = {"a": 1}
    (message,) = client.send(body)
    message.body["a"] = 2
    (delivery,) = client.take()
    received = delivery.body()
    assert received == {"a": 1}
    received["a"] = 3
    assert delivery.body() == {"a": 1}
    assert broker.messages("q")[0].body == {"a": 1}


def test_messages_of_one_broker_have_different_ids(client: Client) -> None:
    ids = {message.message_id for message in client.send(*"abcdef")}
    assert len(ids) == 6
    assert None not in ids


def test_a_delivery_is_counted_by_what_the_application_saw(client: Client) -> None:
    link = client.consume()
    client.send("a", "b")
    first = client.events.inbox.popleft()
    client.channel.handed_out(first)
    assert first.wire_count() == 1
    now(client.channel.detach(link))
    client.events.inbox.clear()
    client.consume()
    assert [(delivery.body(), delivery.wire_count()) for delivery in client.take()] == [("a", 2), ("b", 1)]


@pytest.mark.parametrize("end", ["close", "abort"])
def test_a_connection_that_ends_gives_everything_back(broker: EmbeddedBroker, end: str) -> None:
    one = Client(broker.name)
    one.consume()
    one.send("a", "b")
    one.send("never", to="other", transacted=True)
    one.channel.handed_out(one.events.inbox[0])
    getattr(one.transport, end)()
    getattr(one.transport, end)()
    two = Client(broker.name)
    two.consume()
    assert [(delivery.body(), delivery.wire_count()) for delivery in two.take()] == [("a", 2), ("b", 1)]
    assert broker.queue_depth("other") == 0
    assert one.events.lost == []
    two.transport.close()


def test_a_commit_is_one_unit(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    client.send("a", "b")
    held = client.take()
    client.send("x", to="other", transacted=True)
    assert broker.queue_depth("other") == 0
    now(client.channel.commit(held))
    assert (broker.queue_depth("q"), broker.queue_depth("other")) == (0, 1)


def test_a_rollback_drops_the_sends_and_leaves_the_deliveries(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    client.send("a")
    held = client.take()
    client.send("x", to="other", transacted=True)
    now(client.channel.rollback())
    now(client.channel.commit(held))
    assert (broker.queue_depth("q"), broker.queue_depth("other")) == (0, 0)
    assert client.take() == []


def test_a_refused_commit_leaves_the_deliveries_ours(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    client.send("a")
    held = client.take()
    client.send("x" * 100_000, to="other", transacted=True)
    with pytest.raises(TransactionRolledBackError, match="memory limit"):
        now(client.channel.commit(held))
    assert (broker.queue_depth("q"), broker.queue_depth("other")) == (1, 0)
    now(client.channel.commit(held))
    assert broker.queue_depth("q") == 0


@pytest.mark.parametrize("prefetch", [None, 1, 0, 5])
def test_a_batch_larger_than_the_prefetch_does_not_stall(client: Client, prefetch: int | None) -> None:
    client.send(*(str(number) for number in range(250)))
    client.consume(prefetch=prefetch)
    held: list[Delivery] = []
    while taken := client.take():
        held += taken
    assert [delivery.body() for delivery in held] == [str(number) for number in range(250)]
    now(client.channel.commit(held))


def test_the_default_window_is_a_hundred(client: Client) -> None:
    client.send(*(str(number) for number in range(150)))
    link = client.consume()
    assert link.prefetch == 100
    assert len(client.events.inbox) == 100


def test_released_messages_go_to_others_and_do_not_come_straight_back(client: Client, broker: EmbeddedBroker) -> None:
    client.send("a", "b", "c")
    client.consume(prefetch=2)
    unseen = list(client.events.inbox)
    client.events.inbox.clear()
    client.channel.release(unseen)
    assert not client.events.inbox
    other = Client(broker.name)
    other.consume()
    assert [(delivery.body(), delivery.wire_count()) for delivery in other.take()] == [("a", 1), ("b", 1), ("c", 1)]
    other.transport.close()


def test_poison_goes_to_the_dead_letter_queue_with_its_cause(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    client.send("a", "b")
    bad, good = client.take()
    now(client.channel.poison(bad, "Delivery[7] exceeds", None))
    client.channel.accept([good], lazy=True)
    (letter,) = broker.messages("ActiveMQ.DLQ")
    assert letter.body == "a"
    assert letter.properties["dlqDeliveryFailureCause"] == "Delivery[7] exceeds"
    assert letter.properties["originalDestination"] == "queue://q"
    assert letter.properties["originalExpiration"] == "0"
    assert letter.delivery_count == 1
    assert broker.queue_depth("q") == 0


def test_poison_as_a_copy_is_one_unit(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    client.send("a")
    (bad,) = client.take()
    copy = Message("copy of a")
    copy.stamp(destination=destination("my.dlq"))
    now(client.channel.poison(bad, "cause", copy))
    assert [message.body for message in broker.messages("my.dlq")] == ["copy of a"]
    assert broker.queue_depth("q") == 0
    assert broker.queue_depth("ActiveMQ.DLQ") == 0


def test_the_waiter_is_woken_by_a_message_from_another_connection(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    other = Client(broker.name)
    threading.Timer(0.05, lambda: other.send("a")).start()
    while not client.events.inbox:
        client.transport.wait(client.events.waiter, 30)
    assert client.bodies() == ["a"]
    other.transport.close()


def test_a_delayed_message_comes_by_itself_and_the_timer_thread_goes(client: Client) -> None:
    client.consume()
    client.send("late", delivery_time=datetime.now(UTC) + timedelta(milliseconds=80))
    assert not client.events.inbox
    timer = next(thread for thread in threading.enumerate() if thread.name == "redelivery-broker-vmtest-timer")
    while not client.events.inbox:
        client.transport.wait(client.events.waiter, 30)
    timer.join(30)
    assert not timer.is_alive()
    assert client.bodies() == ["late"]


def test_refusals_are_clear(client: Client) -> None:
    with pytest.raises(UnsupportedError, match="selector"):
        client.consume(selector="a = 1")
    with pytest.raises(InvalidDestinationError, match=r"orders\.>"):
        client.send("a", to="orders.>")
    with pytest.raises(ResourceAllocationError, match="memory limit of 100000 bytes"):
        client.send("x" * 100_000)
    with pytest.raises(ConfigError, match="'persistent'"):
        Client(params={"persistent": "false"})
    with pytest.raises(ConfigError, match="create='yes'"):
        Client(params={"create": "yes"})


# The life of a broker


def test_vm_starts_a_broker_that_ends_with_its_last_connection() -> None:
    one, two = Client("auto"), Client("auto")
    one.send("a")
    one.transport.close()
    two.consume()
    assert two.bodies() == ["a"]
    with pytest.raises(IllegalStateError, match=r"'auto' already runs .* first connection to vm://auto"):
        EmbeddedBroker("auto").start()
    two.transport.close()
    three = Client("auto")
    three.consume()
    assert three.bodies() == []
    three.transport.close()


def test_create_false_needs_a_broker() -> None:
    with pytest.raises(ConnectError, match="no embedded broker of that name"):
        Client("nobody", params={"create": "false"})


def test_two_brokers_of_one_name_are_refused(broker: EmbeddedBroker) -> None:
    with pytest.raises(IllegalStateError, match=r"'vmtest' already runs .* by EmbeddedBroker"):
        EmbeddedBroker(broker.name).start()


def test_a_broker_that_was_started_by_name_outlives_its_connections(broker: EmbeddedBroker) -> None:
    one = Client(broker.name)
    one.send("a")
    one.transport.close()
    assert broker.queue_depth("q") == 1


def test_close_ends_every_connection_and_is_harmless_twice() -> None:
    broker = EmbeddedBroker("closing").start()
    client = Client("closing")
    client.consume()
    broker.close()
    broker.close()
    assert [type(error) for error in client.events.lost] == [ConnectionLostError]
    with pytest.raises(ConnectionLostError, match="close"):
        client.send("a")
    with pytest.raises(ConnectionLostError):
        client.transport.wait(client.events.waiter, 30)
    now(client.channel.close())
    client.transport.close()
    with pytest.raises(IllegalStateError, match="closed"):
        broker.queue_depth("q")
    with pytest.raises(IllegalStateError, match="closed"):
        broker.start()


def test_a_client_id_is_taken_once(broker: EmbeddedBroker) -> None:
    one = Client(broker.name, client_id="me")
    with pytest.raises(InvalidClientIDError, match="'me'"):
        Client(broker.name, client_id="me")
    one.transport.close()
    Client(broker.name, client_id="me").transport.close()


def test_users_are_checked() -> None:
    right, wrong = "secret", "wrong-one"
    with EmbeddedBroker("guarded", config=BrokerConfig(users={"ann": right})):
        with pytest.raises(SecurityError, match="'ann'") as caught:
            Client("guarded", username="ann", password=wrong)
        assert wrong not in str(caught.value)
        Client("guarded", username="ann", password=right).transport.close()


@pytest.mark.parametrize(("name", "port"), [("", None), ("a/b", None), ("x", -1), ("x", 70000), ("x", True)])
def test_a_bad_name_or_port_is_a_config_error(name: str, port: int | None) -> None:
    with pytest.raises(ConfigError):
        EmbeddedBroker(name, stomp_port=port)


def test_messages_and_depth_are_for_queues(broker: EmbeddedBroker, client: Client) -> None:
    client.send("a", "b")
    assert [message.body for message in broker.messages("queue://q")] == ["a", "b"]
    assert broker.queue_depth("unknown") == 0
    with pytest.raises(InvalidDestinationError, match="topic"):
        broker.messages("topic://q")


# Faults


def test_a_planned_error_is_raised_and_nothing_done(client: Client, broker: EmbeddedBroker) -> None:
    fault = broker.faults.error("SEND", "no room today", nth=2)
    client.send("a")
    with pytest.raises(JMSError, match="no room today"):
        client.send("b")
    client.send("c")
    assert [message.body for message in broker.messages("q")] == ["a", "c"]
    assert fault.hits == 1


def test_a_commit_that_is_refused_on_purpose(client: Client, broker: EmbeddedBroker) -> None:
    client.consume()
    client.send("a")
    held = client.take()
    broker.faults.error("COMMIT", "not now")
    with pytest.raises(TransactionRolledBackError, match="not now"):
        now(client.channel.commit(held))
    now(client.channel.commit(held))
    assert broker.queue_depth("q") == 0


@pytest.mark.parametrize(("how", "left"), [("drop", 1), ("drop_after", 0)])
def test_a_commit_whose_answer_is_lost_is_in_doubt(broker: EmbeddedBroker, how: str, left: int) -> None:
    client = Client(broker.name)
    client.consume()
    client.send("a")
    held = client.take()
    fault = getattr(broker.faults, how)("COMMIT")
    with pytest.raises(InDoubtError):
        now(client.channel.commit(held))
    assert fault.wait(0)
    assert len(client.events.lost) == 1
    assert broker.queue_depth("q") == left
    with pytest.raises(ConnectionLostError):
        client.channel.accept(held, lazy=False)


def test_a_connect_can_be_refused(broker: EmbeddedBroker) -> None:
    broker.faults.drop("CONNECT")
    with pytest.raises(ConnectError):
        Client(broker.name)
    Client(broker.name).transport.close()


def test_faults_check_their_arguments_and_can_be_cleared(client: Client, broker: EmbeddedBroker) -> None:
    for arguments in ({"command": "PUBLISH"}, {"command": "SEND", "nth": 0}, {"command": "SEND", "times": True}):
        with pytest.raises(ConfigError):
            broker.faults.drop(**arguments)
    with pytest.raises(ConfigError, match="seconds"):
        broker.faults.delay("SEND", -1)
    broker.faults.error("SEND", "never", times=None)
    broker.faults.clear()
    client.send("a")


def test_four_threads_send_and_one_receives_all_in_each_senders_order(broker: EmbeddedBroker) -> None:
    receiver = Client(broker.name)
    receiver.consume(prefetch=7)
    senders = [Client(broker.name) for _ in range(4)]

    def send(number: int) -> None:
        for at in range(50):
            senders[number].send(f"{number}:{at}")

    threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    seen: list[str] = []
    while len(seen) < 200:
        taken = receiver.take()
        if not taken:
            receiver.transport.wait(receiver.events.waiter, 30)
        seen += [str(delivery.body()) for delivery in taken]
        if taken:
            receiver.channel.accept(taken, lazy=False)
    for thread in threads:
        thread.join()
    for number in range(4):
        assert [body for body in seen if body.startswith(f"{number}:")] == [f"{number}:{at}" for at in range(50)]
    for each in (*senders, receiver):
        each.transport.close()
