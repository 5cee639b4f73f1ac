"""priorityBackup: a connection to another broker of the list is moved to a priority one when that answers."""

from __future__ import annotations

import gc
import logging
import socket
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from tests.client.gated import Site
from tests.client.shell import Background, eventually, receive
from tests.conformance import blocking

import redelivery
from redelivery import ConfigError, JMSError, ReconnectPolicy, TransactionRolledBackError
from redelivery.client.connection import priority
from redelivery.events import ConnectionLost, Event, Reconnected

OPTIONS = "randomize=false&priorityBackup=true&maxReconnectDelay=20"


class Pair:
    """A priority broker and another one, and connections of one shell to them."""

    def __init__(self, protocol: str, shell: str, opened: ExitStack) -> None:
        self.first, self.second = Site(protocol, opened), Site(protocol, opened)
        self.url = f"failover:({self.first.url},{self.second.url})"
        self.events: list[Event] = []
        self.errors: list[JMSError] = []
        self._opened, self._shell = opened, shell

    def connect(self, options: str = OPTIONS, **more: Any) -> Any:
        more = {"observer": self.events.append, "exception_listener": self.errors.append, **more}
        url = f"{self.url}?{options}"
        if self._shell == "threads":
            return self._opened.enter_context(redelivery.connect(url, **more))
        loop = blocking.Loop()
        self._opened.callback(loop.end)
        return self._opened.enter_context(blocking.connect(loop, url, **more))

    def moves(self) -> int:
        lost = [each for each in self.events if isinstance(each, ConnectionLost) and each.planned]
        return min(len(lost), sum(isinstance(each, Reconnected) for each in self.events))

    def bodies(self) -> list[Any]:
        return [each.body for site in (self.first, self.second) for each in site.broker.messages("orders")]


@pytest.fixture(params=["threads", "asyncio"])
def pair(request: pytest.FixtureRequest, protocol: str, opened: ExitStack) -> Pair:
    made = Pair(protocol, request.param, opened)
    made.first.gate.shut()
    return made


def looking() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "redelivery-priority"]


def test_it_is_moved_when_a_priority_broker_is_there(pair: Pair) -> None:
    connection = pair.connect()
    consumer = connection.session().consumer("orders")
    pair.second.broker.send("orders", "of the other")
    assert receive(consumer).body == "of the other"
    pair.first.broker.send("orders", "of the priority broker")
    pair.first.gate.open()
    assert receive(consumer).body == "of the priority broker"
    assert pair.moves() == 1
    assert [type(each) for each in pair.events if isinstance(each, ConnectionLost | Reconnected)] == [
        ConnectionLost,
        Reconnected,
    ]
    assert not pair.errors  # it is no trouble
    eventually(lambda: not looking())
    assert not pair.second.broker.messages("orders")


def test_an_open_transaction_is_waited_for(pair: Pair) -> None:
    session = pair.connect().session("transacted")
    consumer, producer = session.consumer("orders"), session.producer("invoices")
    pair.second.broker.send("orders", "one")
    assert receive(consumer).body == "one"
    pair.first.gate.open()
    for number in range(10):
        producer.send(str(number))
        time.sleep(0.01)  # in which it would be moved
    session.commit()
    eventually(lambda: pair.moves() == 1)
    assert len(pair.second.broker.messages("invoices")) == 10
    assert not pair.second.broker.messages("orders")


@pytest.mark.in_turns
def test_but_not_for_ever(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priority, "_REST", 0.1)
    session = pair.connect().session("transacted")
    consumer = session.consumer("orders")
    pair.second.broker.send("orders", "one")
    assert receive(consumer).body == "one"
    pair.first.gate.open()
    eventually(lambda: pair.moves() == 1)
    with pytest.raises(TransactionRolledBackError, match="moved to its priority broker"):
        session.commit()
    pair.first.broker.send("orders", "two")
    assert receive(consumer).body == "two"
    session.commit()
    assert [each.body for each in pair.second.broker.messages("orders")] == ["one"]


def test_no_send_is_lost_doubled_or_in_doubt_because_of_it(pair: Pair, background: Background) -> None:
    def send() -> None:
        for number in range(60):
            producer.send(f"{turn}.{number}")

    for turn in range(4):
        connection = pair.connect()
        producer = connection.session().producer("orders")
        sending = background.start(send)
        pair.first.gate.open()
        sending()
        eventually(lambda turn=turn: pair.moves() == turn + 1)  # type: ignore[misc]  # bound at once
        connection.close()
        pair.first.gate.shut()
    assert sorted(pair.bodies()) == sorted(f"{turn}.{number}" for turn in range(4) for number in range(60))


def test_a_listener_goes_on_and_acknowledges_where_it_received(pair: Pair) -> None:
    heard: list[Any] = []
    connection = pair.connect()

    def listener(message: redelivery.Message) -> None:
        heard.append(message.body)
        message.acknowledge()

    connection.session("client").consumer("orders").listen(listener)
    pair.second.broker.send("orders", "one")
    eventually(lambda: heard == ["one"])
    pair.first.gate.open()
    pair.first.broker.send("orders", "two")
    eventually(lambda: heard == ["one", "two"])
    for site in (pair.first, pair.second):
        site.broker.wait_for("orders", depth=0)


@pytest.mark.in_turns
def test_a_loss_meanwhile_is_recovered_from_at_once(pair: Pair, opened: ExitStack) -> None:
    silent = opened.enter_context(socket.create_server(("127.0.0.1", 0)))  # a priority broker that says nothing
    pair.url = f"failover:(stomp://127.0.0.1:{silent.getsockname()[1]},{pair.second.url})"
    connection = pair.connect(connect_timeout=5)
    consumer = connection.session().consumer("orders")
    opened.enter_context(silent.accept()[0])
    second = opened.enter_context(silent.accept()[0])  # the search has begun, and will take its time
    silent.close()
    pair.second.gate.shut(0.0)
    pair.second.broker.send("orders", "after")
    began = time.monotonic()
    assert receive(consumer).body == "after"
    assert time.monotonic() - began < 4.5
    second.close()
    connection.close()
    eventually(lambda: not looking())


def test_one_that_is_lost_before_the_move_is_waited_for_again(pair: Pair, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, priority.log.name)
    session = pair.connect().session("client")
    consumer = session.consumer("orders")
    pair.second.broker.send("orders", "one")
    message = receive(consumer)
    pair.first.gate.open()
    time.sleep(0.1)  # it has answered by now, and is lost
    pair.first.gate.shut()
    caplog.clear()
    eventually(lambda: "has not answered" in caplog.text)
    message.acknowledge()
    pair.second.broker.wait_for("orders", depth=0)
    pair.second.broker.send("orders", "two")
    assert receive(consumer).body == "two"
    session.acknowledge()
    assert pair.moves() == 0
    pair.first.gate.open()
    eventually(lambda: pair.moves() == 1)


def test_the_search_ends_with_the_connection(pair: Pair) -> None:
    before = threading.active_count()
    pair.connect().close()
    eventually(lambda: not looking())
    eventually(lambda: threading.active_count() <= before + 2)  # the housekeeper's, a loop's


@pytest.mark.filterwarnings("ignore:.*was dropped without close:ResourceWarning")
def test_the_search_ends_with_a_connection_that_is_dropped(protocol: str, opened: ExitStack) -> None:
    pair = Pair(protocol, "threads", opened)
    pair.first.gate.shut()

    def ended(condition: Callable[[], object] = looking) -> bool:
        gc.collect()
        return not condition()

    redelivery.connect(f"{pair.url}?{OPTIONS}")
    eventually(ended)


def test_priority_uris_name_others_than_the_first(pair: Pair) -> None:
    pair.second.gate.shut()
    pair.first.gate.open()
    connection = pair.connect(f"{OPTIONS}&priorityURIs={pair.second.url}")
    consumer = connection.session().consumer("orders")
    pair.second.broker.send("orders", "of the second")
    pair.second.gate.open()
    assert receive(consumer).body == "of the second"
    pair.second.gate.shut()
    pair.first.broker.send("orders", "of the first")
    assert receive(consumer).body == "of the first"  # the priority broker was lost
    pair.second.gate.open()
    eventually(lambda: pair.moves() == 2)


def test_while_the_priority_broker_is_there_nothing_is_looked_for(pair: Pair) -> None:
    pair.first.gate.open()
    pair.connect()
    assert not looking()
    assert pair.moves() == 0


def test_with_one_broker_it_has_no_effect_and_is_refused() -> None:
    with pytest.raises(ConfigError, match="priority_backup=True has no effect with one broker"):
        redelivery.connect("stomp://x", reconnect=ReconnectPolicy(priority_backup=True))
