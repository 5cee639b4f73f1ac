"""Transactions of the STOMP server, as ActiveMQ Classic was found to treat them."""

from __future__ import annotations

import pytest
from tests.broker.raw_stomp import Raw
from tests.broker.stomp.steps import left, send

from redelivery.broker import EmbeddedBroker


@pytest.mark.parametrize(("end", "q", "other"), [("COMMIT", [], ["out"]), ("ABORT", ["in"], [])])
def test_sends_and_acks_are_one_unit(client: Raw, broker: EmbeddedBroker, end: str, q: object, other: object) -> None:
    send(client, b"in")
    client.subscribe()
    ack = client.next().headers["ack"]
    client.ok("BEGIN", transaction="t")
    send(client, b"out", to="/queue/other", transaction="t")
    client.ok("ACK", id=ack, transaction="t")
    assert (left(broker), left(broker, "other")) == (["in"], [])
    client.ok(end, transaction="t")
    assert (left(broker), left(broker, "other")) == (q, other)
    assert client.is_quiet(), "ABORT redelivers nothing"


@pytest.mark.parametrize("mode", ["client-individual", "client"])
def test_after_abort_the_ids_are_valid_again(client: Raw, broker: EmbeddedBroker, mode: str) -> None:
    send(client, b"a", b"b")
    client.subscribe(ack=mode)
    acks = [frame.headers["ack"] for frame in client.messages(2)]
    for attempt in ("1", "2"):
        client.ok("BEGIN", transaction=attempt)
        for ack in acks:
            client.ok("ACK", id=ack, transaction=attempt)
        assert "Unexpected ACK" in client.call("ACK", id=acks[0]).headers["message"]
        client.ok("ABORT", transaction=attempt)
    client.ok("NACK", id=acks[0])
    client.ok("ACK", id=acks[1])
    assert (left(broker), left(broker, "ActiveMQ.DLQ")) == ([], ["a"])


def test_an_ack_in_a_transaction_widens_the_window(client: Raw) -> None:
    send(client, *(b"%d" % number for number in range(6)))
    client.subscribe(**{"activemq.prefetchSize": "2"})
    client.ok("BEGIN", transaction="t")
    for frame in client.messages(2):
        client.ok("ACK", id=frame.headers["ack"], transaction="t")
    client.messages(2)
    client.ok("ABORT", transaction="t")
    assert client.is_quiet()


def test_a_transacted_nack_is_refused_and_leaves_everything_usable(client: Raw, broker: EmbeddedBroker) -> None:
    send(client, b"a")
    client.subscribe()
    ack = client.next().headers["ack"]
    client.ok("BEGIN", transaction="t")
    assert "Poison ack cannot be transacted" in client.call("NACK", id=ack, transaction="t").headers["message"]
    client.ok("ACK", id=ack, transaction="t")
    client.ok("COMMIT", transaction="t")
    assert left(broker) == []


def test_acks_enlisted_before_unsubscribe_are_committed(client: Raw, broker: EmbeddedBroker) -> None:
    send(client, b"a")
    client.subscribe()
    client.ok("BEGIN", transaction="t")
    client.ok("ACK", id=client.next().headers["ack"], transaction="t")
    client.ok("UNSUBSCRIBE", id="s")
    client.ok("COMMIT", transaction="t")
    assert left(broker) == []


def test_two_transactions_at_once(client: Raw, broker: EmbeddedBroker) -> None:
    send(client, b"a", b"b")
    client.subscribe()
    for name, frame in zip("xy", client.messages(2), strict=True):
        client.ok("BEGIN", transaction=name)
        client.ok("ACK", id=frame.headers["ack"], transaction=name)
    client.ok("COMMIT", transaction="y")
    client.ok("ABORT", transaction="x")
    assert left(broker) == ["a"]


@pytest.mark.parametrize("end", ["drop", "DISCONNECT"])
def test_an_open_transaction_is_rolled_back_with_its_connection(broker: EmbeddedBroker, end: str) -> None:
    with Raw(broker.stomp_url) as client:
        send(client, b"a")
        client.subscribe()
        client.ok("BEGIN", transaction="t")
        send(client, b"never", to="/queue/other", transaction="t")
        client.ok("ACK", id=client.next().headers["ack"], transaction="t")
        if end == "DISCONNECT":
            client.ok(end)
    with Raw(broker.stomp_url) as again:
        again.subscribe()
        assert again.next().headers["redelivered"] == "true"
    assert left(broker, "other") == []
