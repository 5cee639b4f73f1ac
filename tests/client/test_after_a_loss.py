"""What a session says of work that a lost connection took with it: on the embedded broker, by each protocol."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Never

import pytest
from tests.client.gated import QUICK, Site
from tests.client.shell import SOON, Background, eventually, receive

import redelivery
from redelivery import ConnectionLostError, InDoubtError, ReconnectPolicy
from redelivery.events import ConnectionLost, Event


@pytest.mark.parametrize("mode", ["client", "individual"])
def test_a_late_acknowledgement_leaves_a_debug_line(
    site: Site, opened: ExitStack, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK))
    consumer = connection.session(mode).consumer("orders")
    site.broker.send("orders", "one")
    message = receive(consumer)
    site.gate.shut(0.0)
    eventually(lambda: connection.epoch == 2)
    with caplog.at_level(logging.DEBUG, "redelivery"):
        message.acknowledge()
    late = [line for line in caplog.messages if "acknowledged after its connection was lost" in line]
    assert late == [f"orders {message.message_id}: acknowledged after its connection was lost; it is redelivered"]
    assert receive(consumer).body == "one"


def test_a_send_of_a_transaction_waits_no_longer_than_the_time_out(site: Site, opened: ExitStack) -> None:
    events: list[Event] = []
    policy = ReconnectPolicy(maximum_delay=0.05, timeout=0.1)
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=policy, observer=events.append))
    session = connection.session("transacted")
    producer = session.producer("orders")
    site.gate.shut()
    eventually(lambda: any(isinstance(event, ConnectionLost) for event in events))
    with pytest.raises(ConnectionLostError, match=r"not there again within 0\.1 s"):
        producer.send("never")
    site.gate.open()
    eventually(lambda: connection.epoch == 2)
    producer.send("later")
    session.commit()
    assert [message.body for message in site.broker.messages("orders")] == ["later"]


def test_a_commit_that_was_lost_on_its_way_names_its_transaction(site: Site, opened: ExitStack) -> None:
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK))
    session = connection.session("transacted")
    site.broker.send("orders", "in")
    consumer = session.consumer("orders")
    assert receive(consumer).body == "in"
    session.producer("out").send("lost")
    site.broker.faults.drop("COMMIT")
    with pytest.raises(InDoubtError) as raised:
        session.commit()
    assert raised.value.transaction_id
    assert [each.body for each in raised.value.sent] == ["lost"]
    assert [each.body for each in raised.value.received] == ["in"]
    assert receive(consumer).body == "in"
    session.commit()
    assert not site.broker.messages("out")


@pytest.mark.parametrize("reconnect", [QUICK, None], ids=["comes-back", "ends"])
@pytest.mark.parametrize("mode", ["auto", "client", "individual", "transacted"])
def test_a_loss_that_was_reported_leaves_nothing_prefetched(
    background: Background, site: Site, opened: ExitStack, mode: str, reconnect: ReconnectPolicy | None
) -> None:
    reported, go_on = threading.Event(), threading.Event()

    def observer(event: Event) -> None:
        if isinstance(event, ConnectionLost):
            reported.set()
            assert go_on.wait(SOON)

    connection = opened.enter_context(redelivery.connect(site.url, reconnect=reconnect, observer=observer))
    opened.callback(go_on.set)  # before the connection closes
    background.start(connection.session().consumer("idle").receive)  # it notices the loss
    session = connection.session(mode)
    consumer, other = session.consumer("orders"), session.consumer("others")
    site.broker.send("orders", "prefetched")
    site.broker.send("others", "received")
    assert receive(other).body == "received"
    site.gate.shut(0.0)
    assert reported.wait(SOON)
    if reconnect is None:
        with pytest.raises(ConnectionLostError):
            consumer.receive_nowait()
        return
    assert consumer.receive_nowait() is None
    go_on.set()
    assert receive(consumer).body == "prefetched"


def test_a_question_that_found_no_broker_says_so_where_the_connection_itself_was_not_lost(
    site: Site, opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transport may ask on a connection of its own, which a starting or full broker refuses."""
    refused = ConnectionLostError("looking for orders: it refuses")

    def attach(*_: object) -> Iterator[Never]:
        raise refused
        yield

    monkeypatch.setattr("redelivery.client.operations.attach.attach_link", attach)
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK, close_timeout=0.05))
    with pytest.raises(ConnectionLostError, match="looking for orders: it refuses"):
        connection.session().consumer("orders")
