"""Connections that come back: lists of brokers, answers that are missing, and how they end."""

from __future__ import annotations

import gc
import os
import threading
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from tests.client.gated import QUICK, Site
from tests.client.shell import SOON, eventually, receive
from tests.conformance.blocking import Shell

import redelivery
from redelivery import (
    AckMode,
    ConfigError,
    ConnectError,
    ConnectionLostError,
    InDoubtError,
    MessageFormatError,
    Queue,
    ReconnectPolicy,
    RedeliveryPolicy,
    SecurityError,
)
from redelivery.broker.engine.config import BrokerConfig
from redelivery.events import ConnectionLost, Event, InDoubt, Reconnected, ReconnectFailed


def has(events: list[Event], number: int) -> bool:
    return count(events, Reconnected) == number


def count(events: list[Event], kind: type) -> int:
    return sum(isinstance(each, kind) for each in events)


def test_the_next_broker_of_the_list_takes_over(protocol: str, opened: ExitStack) -> None:
    first, second = Site(protocol, opened), Site(protocol, opened)
    url = f"failover:({first.url},{second.url})?randomize=false&initialReconnectDelay=10"
    connection = opened.enter_context(redelivery.connect(url))
    consumer = connection.session().consumer("orders")
    first.broker.send("orders", "of the first")
    assert receive(consumer).body == "of the first"
    first.broker.wait_for("orders", depth=0)
    first.gate.shut()
    second.broker.send("orders", "of the second")
    assert receive(consumer).body == "of the second"
    second.broker.wait_for("orders", depth=0)
    first.gate.open()
    second.gate.shut()
    first.broker.send("orders", "of the first again")
    assert receive(consumer).body == "of the first again"
    assert connection.url == f"failover:({first.url},{second.url})?randomize=false&initialReconnectDelay=10"


def test_a_list_may_have_both_protocols_and_each_epoch_its_own_capabilities(opened: ExitStack) -> None:
    pytest.importorskip("proton")
    stomp, amqp = Site("stomp", opened), Site("amqp", opened)
    url = f"failover:({stomp.url},{amqp.url})?randomize=false"
    connection = opened.enter_context(redelivery.connect(url))
    session = connection.session("transacted")
    consumer, producer = session.consumer("orders"), session.producer("streams")
    assert connection.metadata.protocol.startswith("STOMP")
    assert "stream" not in connection.metadata.capabilities.body_kinds
    with pytest.raises(MessageFormatError, match="stream"):
        producer.send(["a", 1])
    stomp.gate.shut()
    amqp.broker.send("orders", "by AMQP")
    assert receive(consumer).body == "by AMQP"
    producer.send(["a", 1])
    session.commit()
    assert [message.body for message in amqp.broker.messages("streams")] == [["a", 1]]
    assert connection.metadata.protocol.startswith("AMQP")
    assert "stream" in connection.metadata.capabilities.body_kinds


def test_the_first_connect_waits_for_a_broker_as_often_as_it_may(site: Site, opened: ExitStack) -> None:
    site.gate.shut(0.2)
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK))
    assert connection.connected
    site.gate.shut()
    events: list[Event] = []
    with pytest.raises(ConnectError):
        redelivery.connect(site.url, reconnect=ReconnectPolicy(startup_maximum_attempts=3), observer=events.append)
    assert count(events, ReconnectFailed) == 3


def test_it_is_over_when_it_has_been_away_for_its_maximum_time(site: Site, opened: ExitStack) -> None:
    policy = ReconnectPolicy(maximum_delay=0.02, maximum_time=0.2)
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=policy))
    consumer = connection.session().consumer("orders")
    site.gate.shut(0.05)
    site.broker.send("orders", "in time")
    assert receive(consumer).body == "in time"
    assert connection.epoch == 2
    site.gate.shut()
    with pytest.raises(ConnectionLostError):
        consumer.receive(timeout=SOON)
    with pytest.raises(ConnectError):
        redelivery.connect(site.url, reconnect=policy)


def test_a_refused_login_is_not_tried_again(protocol: str, opened: ExitStack) -> None:
    site = Site(protocol, opened, config=BrokerConfig(users={"ann": "s3cret"}))
    events: list[Event] = []
    with pytest.raises(SecurityError):
        redelivery.connect(site.url, username="ann", password="wrong", reconnect=QUICK, observer=events.append)  # noqa: S106  # of this broker
    assert not events


def test_vm_does_not_come_back() -> None:
    with pytest.raises(ConfigError, match="vm:// does not come back"):
        redelivery.connect("vm://x", reconnect=QUICK)


def test_a_commit_without_an_answer_is_in_doubt_and_the_session_goes_on(site: Site, opened: ExitStack) -> None:
    events: list[Event] = []
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK, observer=events.append))
    session = connection.session(AckMode.TRANSACTED)
    producer = session.producer("orders")
    producer.send("once")
    site.broker.faults.drop_after("COMMIT")
    with pytest.raises(InDoubtError) as raised:
        session.commit()
    assert [each.body for each in raised.value.sent] == ["once"]
    producer.send("next")
    session.commit()
    assert [each.body for each in site.broker.messages("orders")] == ["once", "next"]
    assert count(events, InDoubt) == 1


def test_futures_of_what_is_in_doubt_and_of_what_was_not_sent(site: Site, opened: ExitStack) -> None:
    events: list[Event] = []
    policy = ReconnectPolicy(timeout=0.2)
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=policy, observer=events.append))
    producer = connection.session().producer("orders")
    site.broker.faults.drop_after("SEND")
    with pytest.raises(InDoubtError):
        producer.send_async("first").result(SOON)
    eventually(lambda: count(events, Reconnected))
    site.gate.shut()
    eventually(lambda: count(events, ConnectionLost) == 2)
    futures = [producer.send_async(each) for each in ("second", "third")]
    assert [type(each.exception(SOON)) for each in futures] == [ConnectionLostError] * 2
    site.gate.open()
    eventually(lambda: count(events, Reconnected) == 2)
    assert producer.send_async("fourth").result(SOON).body == "fourth"
    assert [each.body for each in site.broker.messages("orders")] == ["first", "fourth"]


def test_a_queue_that_the_other_broker_refuses_ends_its_consumer_alone(protocol: str, opened: ExitStack) -> None:
    first, second = Site(protocol, opened), Site(protocol, opened)
    url = f"failover:({first.url},{second.url})?randomize=false"
    connection = opened.enter_context(redelivery.connect(url))
    session = connection.session()
    refused, served = session.consumer("orders"), session.consumer("invoices")
    second.broker.faults.error("SUBSCRIBE", "no such queue")
    first.gate.shut()
    second.broker.send("invoices", "one")
    assert receive(served).body == "one"
    with pytest.raises(redelivery.JMSError, match="no such queue"):
        refused.receive(timeout=SOON)


@pytest.mark.filterwarnings("ignore:.*was dropped without close:ResourceWarning")  # by whichever thread had it last
def test_one_that_is_dropped_while_it_is_away_ends_its_thread(site: Site) -> None:
    def use() -> None:
        events: list[Event] = []
        connection = redelivery.connect(site.url, reconnect=ReconnectPolicy(), observer=events.append)
        connection.session().consumer(Queue("orders"))
        site.gate.shut()
        eventually(lambda: count(events, ConnectionLost))

    def ended() -> bool:
        gc.collect()  # again: a thread may have had it for a moment
        return not [each for each in threading.enumerate() if each.name == "redelivery-reconnect"]

    use()
    eventually(ended)


def test_a_hundred_losses_in_a_row_leave_nothing_behind(site: Site, opened: ExitStack) -> None:
    events: list[Event] = []
    policy = RedeliveryPolicy(maximum_redeliveries=-1)
    connection = opened.enter_context(
        redelivery.connect(site.url, reconnect=QUICK, observer=events.append, redelivery_policy=policy)
    )
    consumer = connection.session("client").consumer("orders")
    site.broker.send("orders", "one")
    before = threading.active_count()
    for number in range(1, 101):
        message = receive(consumer)
        assert message.body == "one"
        site.gate.shut(0.0)
        eventually(partial(has, events, number))
    receive(consumer).acknowledge()
    site.broker.wait_for("orders", depth=0)
    eventually(lambda: threading.active_count() <= before + 5)  # the gate's own end a moment later


def test_a_connection_that_is_lost_while_its_session_comes_back_comes_back_again(site: Site, shell: Shell) -> None:
    """What attaches the consumers again is what dials, and does not keep the session from its application."""
    events: list[Event] = []
    quick = ReconnectPolicy(initial_delay=0.001, maximum_delay=0.01)
    connection = shell.connect(site.url, reconnect=quick, observer=events.append)
    consumer = connection.session().consumer("orders")
    for number in range(1, 61):
        site.gate.shut()
        eventually(partial(lambda number: count(events, ConnectionLost) == number, number))
        assert not shell.tasks or consumer.receive(timeout=0.001) is None
        site.gate.open()
        eventually(partial(has, events, number))  # and at once the next one
    site.broker.send("orders", "after all that")
    assert receive(consumer).body == "after all that"


@pytest.mark.parametrize("protocol", ["stomp"], indirect=True)
def test_a_session_that_gets_no_socket_of_its_own_at_once_gets_one_later(site: Site, opened: ExitStack) -> None:
    """As to Classic; the loss of that socket says nothing of the broker's will."""
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK, dialect="activemq"))
    sessions = [connection.session() for _ in range(2)]
    consumers = [each.consumer("orders") for each in sessions]
    site.broker.faults.drop("CONNECT", nth=2)
    site.gate.shut(0.0)
    eventually(lambda: connection.epoch == 2)
    producers = [each.producer("orders") for each in sessions]
    for producer in producers:
        producer.send("after")
    for consumer in consumers:
        assert receive(consumer).body == "after"


@pytest.mark.parametrize("away", [False, True], ids=["there", "away"])
def test_in_a_child_after_fork_it_does_not_come_back_and_the_parents_does(
    site: Site, opened: ExitStack, away: bool
) -> None:
    events: list[Event] = []
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK, observer=events.append))
    session = connection.session()
    consumer, producer = session.consumer("orders"), session.producer("orders")
    if away:
        site.gate.shut()
        eventually(lambda: count(events, ConnectionLost))
    child = os.fork()
    if not child:  # no test's code may go on here
        raised = 0
        for call in (consumer.receive, lambda: producer.send("x"), connection.session, lambda: session.consumer("y")):
            try:
                call()
            except ConnectionLostError:
                raised += 1
        os._exit(raised)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 4
    site.gate.open()
    producer.send("of the parent")
    assert receive(consumer).body == "of the parent"


def test_a_consumer_with_a_prefetch_of_0_receives_and_listens_again(site: Site, opened: ExitStack) -> None:
    events: list[Event] = []
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK, observer=events.append))
    pulling = connection.session().consumer("orders", prefetch=0)
    listening = connection.session().consumer("invoices", prefetch=0)
    assert pulling.receive_nowait() is None
    heard: list[Any] = []
    listening.listen(lambda message: heard.append(message.body))
    site.gate.shut(0.0)
    eventually(lambda: count(events, Reconnected))
    site.broker.send("orders", "pulled")
    site.broker.send("invoices", "heard")
    assert receive(pulling).body == "pulled"
    eventually(lambda: heard == ["heard"])
