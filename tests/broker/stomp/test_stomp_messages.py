"""Sending and receiving through the STOMP server: what ActiveMQ Classic was found to do, frame by frame."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.broker.raw_stomp import Raw
from tests.broker.stomp.steps import bodies, left, send

from redelivery.broker import EmbeddedBroker


def test_the_headers_of_a_message(client: Raw, broker: EmbeddedBroker) -> None:
    send(
        client, b"text", **{"correlation-id": "c", "reply-to": "/topic/r", "type": "t", "priority": "7", "x": "a:b\n\\"}
    )
    client.subscribe()
    headers = client.next().headers
    assert headers.pop("message-id").startswith("ID:stomp-server-")
    assert headers.pop("ack").startswith("ID:stomp-server-")
    assert abs(int(headers.pop("timestamp")) / 1000 - datetime.now(UTC).timestamp()) < 60
    assert headers == {
        "destination": "/queue/q",
        "subscription": "s",
        "expires": "0",
        "priority": "7",
        "persistent": "true",
        "correlation-id": "c",
        "reply-to": "/topic/r",
        "type": "t",
        "x": "a:b\n\\",
    }
    assert broker.messages("q")[0].correlation_id == "c"


def test_content_length_makes_bytes(client: Raw, broker: EmbeddedBroker) -> None:
    send(client, b"text \xc3\xa9")
    send(client, b"\0\xff\0", **{"content-length": "3"})
    assert left(broker) == ["text é", b"\0\xff\0"]
    client.subscribe()
    text, data = client.messages(2)
    assert "content-length" not in text.headers
    assert (data.body, data.headers["content-length"]) == (b"\0\xff\0", "3")


def test_without_persistent_a_message_is_not(client: Raw, broker: EmbeddedBroker) -> None:
    client.ok("SEND", b"x", destination="/queue/q")
    assert not broker.messages("q")[0].persistent
    client.subscribe()
    assert "persistent" not in client.next().headers


def test_what_a_producer_may_not_forge(client: Raw) -> None:
    forged = {"message-id": "mine", "redelivered": "true", "subscription": "evil", "ack": "evil", "JMSXUserID": "root"}
    send(client, b"x", **forged)
    client.subscribe()
    headers = client.next().headers
    assert headers["subscription"] == "s"
    assert headers["ack"] != "evil"
    assert headers["message-id"] != "mine"
    assert not {"redelivered", "JMSXUserID"} & headers.keys()
    client.ok("ACK", id=headers["ack"])


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ({}, "without a Destination"),
        ({"destination": "/queue/a.>"}, "pattern"),
        ({"destination": "/nowhere/a"}, "Illegal destination name"),
        ({"destination": "/remote-temp-queue/a"}, "does not exist"),
        ({"destination": "/queue/q", "transaction": "unknown"}, "Invalid transaction id: unknown"),
        ({"destination": "/queue/q", "expires": "soon"}, "expires:soon"),
        ({"destination": "/queue/q", "AMQ_SCHEDULED_REPEAT": "3"}, "AMQ_SCHEDULED_REPEAT"),
    ],
)
def test_a_refused_send_is_an_error_and_the_connection_stays(client: Raw, headers: dict[str, str], text: str) -> None:
    answer = client.call("SEND", b"x", **headers)
    assert answer.command == "ERROR"
    assert text in answer.headers["message"]
    assert "receipt-id" in answer.headers
    assert client.is_quiet()


def test_a_full_broker_says_so(client: Raw) -> None:
    answer = client.call("SEND", b"x" * (65 << 20), destination="/queue/q")
    assert b"ResourceAllocationException" in answer.body
    assert client.is_quiet()


def test_a_delayed_message_comes_later(client: Raw, broker: EmbeddedBroker) -> None:
    client.subscribe()
    send(client, b"late", AMQ_SCHEDULED_DELAY="150")
    assert broker.queue_depth("q") == 0
    send(client, b"now")
    assert bodies(client.messages(2)) == [b"now", b"late"]


def test_an_expired_message_becomes_a_dead_letter(client: Raw, broker: EmbeddedBroker) -> None:
    past = round((datetime.now(UTC) - timedelta(seconds=1)).timestamp() * 1000)
    client.subscribe()
    send(client, b"old", expires=str(past))
    send(client, b"new")
    assert client.next().body == b"new"
    (letter,) = broker.messages("ActiveMQ.DLQ")
    assert letter.properties["dlqDeliveryFailureCause"] == f"Message Expired. Expiration:{past}"


def test_topics_reach_everybody_and_no_local_not_oneself(client: Raw, broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url) as other:
        client.subscribe("/topic/news", "auto", **{"activemq.noLocal": "true"})
        other.subscribe("/topic/>", "auto")
        send(client, b"mine", to="/topic/news")
        assert other.next().headers["destination"] == "/topic/news"
        send(other, b"theirs", to="/topic/news")
        assert client.next().body == b"theirs"


def test_map_bodies_travel_as_json_to_who_asks_for_it(client: Raw, broker: EmbeddedBroker) -> None:
    json = b'{"map":{"entry":[{"string":["k","v"]},{"string":"n","int":5}]}}'
    send(client, json, transformation="jms-map-json")
    assert left(broker) == [{"k": "v", "n": 5}]
    client.subscribe(transformation="jms-map-json")
    message = client.next()
    assert message.body == json
    assert message.headers["transformation"] == "jms-map-json"
    client.ok("UNSUBSCRIBE", id="s")
    client.subscribe()
    assert client.next().body == b""


def test_a_map_that_is_none_stays_text_with_an_error(client: Raw, broker: EmbeddedBroker) -> None:
    send(client, b"{}", transformation="jms-map-json")
    (message,) = broker.messages("q")
    assert message.body == "{}"
    assert "transformation-error" in message.properties
