"""ACK, NACK and the window of the STOMP server, as ActiveMQ Classic was found to treat them."""

from __future__ import annotations

import pytest
from tests.broker.raw_stomp import Raw
from tests.broker.stomp.steps import left, send

from redelivery.broker import EmbeddedBroker


def test_ack_by_ack_id(client: Raw, broker: EmbeddedBroker) -> None:
    send(client, b"a", b"b", b"c")
    client.subscribe()
    middle = client.messages(3)[1]
    client.ok("ACK", id=middle.headers["ack"])
    assert left(broker) == ["a", "c"]


def test_client_mode_acknowledges_all_before(client: Raw, broker: EmbeddedBroker) -> None:
    send(client, b"a", b"b", b"c")
    client.subscribe(ack="client")
    frames = client.messages(3)
    client.ok("ACK", id=frames[1].headers["ack"])
    assert left(broker) == ["c"]
    assert "Unexpected ACK" in client.call("ACK", id=frames[0].headers["ack"]).headers["message"]


def test_stomp_1_1_names_subscription_and_message(broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url, version="1.1") as client:
        send(client, b"a", b"b")
        client.subscribe()
        first, _ = client.messages(2)
        assert "ack" not in first.headers
        client.ok("ACK", subscription="s", message_id=first.headers["message-id"])
        assert left(broker) == ["b"]


def test_auto_needs_no_ack(client: Raw, broker: EmbeddedBroker) -> None:
    send(client, *(b"%d" % number for number in range(50)))
    client.subscribe(ack="auto")
    frames = client.messages(50)
    assert "ack" not in frames[0].headers
    assert client.is_quiet()
    assert left(broker) == []


@pytest.mark.parametrize("ack", ["nope", "", "ID:stomp-server-1-2:1:1:1"])
def test_an_unknown_ack_id_is_an_error_and_the_connection_stays(client: Raw, ack: str) -> None:
    client.subscribe()
    for command in ("ACK", "NACK"):
        answer = client.call(command, id=ack)
        assert answer.command == "ERROR"
        assert f"Unexpected {command} received for message-id [{ack}]" == answer.headers["message"] or not ack
    assert client.is_quiet()


def test_a_second_or_stale_ack_is_an_error(client: Raw, broker: EmbeddedBroker) -> None:
    send(client, b"a", b"b")
    client.subscribe()
    first, second = client.messages(2)
    client.ok("ACK", id=first.headers["ack"])
    assert client.call("ACK", id=first.headers["ack"]).command == "ERROR"
    client.drop()
    with Raw(broker.stomp_url) as again:
        again.subscribe()
        again.next()
        assert again.call("ACK", id=second.headers["ack"]).command == "ERROR"
    assert left(broker) == ["b"]


def test_an_ack_after_unsubscribe_has_no_effect_and_is_no_error(client: Raw, broker: EmbeddedBroker) -> None:
    send(client, b"a")
    client.subscribe()
    message = client.next()
    client.ok("UNSUBSCRIBE", id="s")
    client.ok("ACK", id=message.headers["ack"])
    assert left(broker) == ["a"]


def test_nack_is_poison(client: Raw, broker: EmbeddedBroker) -> None:
    send(client, b"a", b"b", x="1")
    client.subscribe(ack="client")
    client.ok("NACK", id=client.messages(2)[1].headers["ack"])
    assert left(broker) == ["a"]
    client.subscribe("/queue/ActiveMQ.DLQ", id="dlq")
    headers = client.next().headers
    assert (headers["original-destination"], headers["originalExpiration"], headers["x"]) == ("/queue/q", "0", "1")
    assert "dlqDeliveryFailureCause" not in headers
    assert "redelivered" not in headers


def test_nack_of_a_non_persistent_message_drops_it(client: Raw, broker: EmbeddedBroker) -> None:
    client.subscribe()
    client.ok("SEND", b"a", destination="/queue/q")
    client.ok("NACK", id=client.next().headers["ack"])
    assert left(broker) == left(broker, "ActiveMQ.DLQ") == []


def test_the_window(client: Raw) -> None:
    send(client, b"a", b"b", b"c")
    client.subscribe(**{"activemq.prefetchSize": "2"})
    first, _ = client.messages(2)
    assert client.is_quiet()
    client.ok("ACK", id=first.headers["ack"])
    assert client.next().body == b"c"


def test_a_window_of_zero_never_delivers(client: Raw) -> None:
    send(client, b"a")
    client.subscribe(**{"activemq.prefetchSize": "0"})
    assert client.is_quiet()


@pytest.mark.parametrize("how", ["drop", "DISCONNECT", "UNSUBSCRIBE"])
def test_what_was_delivered_comes_back_as_redelivered_in_order(broker: EmbeddedBroker, how: str) -> None:
    with Raw(broker.stomp_url) as client:
        send(client, b"a", b"b", b"c")
        client.subscribe()
        frames = client.messages(3)
        assert all("redelivered" not in frame.headers for frame in frames)
        client.ok("ACK", id=frames[0].headers["ack"])
        if how != "drop":
            client.ok(how, id="s")
    with Raw(broker.stomp_url) as again:
        again.subscribe()
        assert [(frame.body, frame.headers["redelivered"]) for frame in again.messages(2)] == [
            (b"b", "true"),
            (b"c", "true"),
        ]


def test_a_subscription_is_confirmed_before_its_first_message(client: Raw) -> None:
    send(client, b"a")
    client.say("SUBSCRIBE", {"destination": "/queue/q", "id": "s", "ack": "client", "receipt": "r"})
    assert [client.take().command, client.take().command] == ["RECEIPT", "MESSAGE"]  # type: ignore[union-attr]  # or it fails
