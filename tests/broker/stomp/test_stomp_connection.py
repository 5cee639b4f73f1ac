"""The STOMP server's connections: versions, users, receipts, refused requests, and the port itself."""

from __future__ import annotations

import pytest
from tests.broker.raw_stomp import Raw
from tests.broker.stomp.steps import left, send

from redelivery.broker import BrokerConfig, EmbeddedBroker
from redelivery.model.errors import ConfigError, IllegalStateError


@pytest.mark.parametrize(("accepted", "spoken"), [("1.2", "1.2"), ("1.0,1.1", "1.1"), ("1.1,1.2,2.0", "1.2")])
def test_the_highest_common_version_is_spoken(broker: EmbeddedBroker, accepted: str, spoken: str) -> None:
    with Raw(broker.stomp_url, version=spoken, accept_version=accepted) as client:
        assert client.connected.headers["version"] == spoken
        assert client.connected.headers["server"].startswith("redelivery/")


def test_a_connect_without_versions_is_stomp_1_0(broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url, connect=False, version="1.0") as client:
        client.say("CONNECT", {})
        assert client.next("CONNECTED").headers["version"] == "1.0"
        client.ok("SUBSCRIBE", destination="/queue/q", ack="client")
        send(client, b"a")
        message = client.next()
        assert message.headers["subscription"] == "/queue/q"
        client.ok("ACK", message_id=message.headers["message-id"])
        assert left(broker) == []
        assert "v1.0" in client.call("NACK", message_id="x").headers["message"]


def test_no_common_version_is_refused(broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url, connect=False) as client:
        client.say("CONNECT", {"accept-version": "9.9"})
        assert client.next("ERROR").headers["message"] == (
            "Invalid Protocol version[9.9], supported versions are: [1.2, 1.1, 1.0]"
        )
        assert client.closed()


def test_a_client_id_is_taken_once(broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url, client_id="me"), Raw(broker.stomp_url, connect=False) as second:
        second.say("CONNECT", {"accept-version": "1.2", "client-id": "me"})
        assert b"InvalidClientIDException" in second.next("ERROR").body
        assert second.closed()


def test_users_are_checked() -> None:
    with EmbeddedBroker("stomp-users", stomp_port=0, config=BrokerConfig(users={"ann": "secret"})) as broker:
        with Raw(broker.stomp_url, login="ann", passcode="secret"):
            pass
        with Raw(broker.stomp_url, connect=False) as client:
            client.say("STOMP", {"accept-version": "1.2", "login": "ann", "passcode": "not-this"})
            refusal = client.next("ERROR")
            assert b"SecurityException" in refusal.body
            assert b"not-this" not in refusal.head + refusal.body
            assert client.closed()


def test_disconnect_is_answered_then_the_connection_ends(client: Raw) -> None:
    client.ok("DISCONNECT")
    assert client.closed()


@pytest.mark.parametrize(
    ("command", "headers", "text"),
    [
        ("COMMIT", {"transaction": "nope"}, "Invalid transaction id: nope"),
        ("ABORT", {"transaction": "nope"}, "Invalid transaction id: nope"),
        ("BEGIN", {}, "Must specify the transaction"),
        ("BEGIN", {"transaction": "open"}, "already started: open"),
        ("UNSUBSCRIBE", {"id": "nope"}, "No subscription matched."),
        ("SUBSCRIBE", {"destination": "/queue/q"}, "without a subscription id"),
        ("SUBSCRIBE", {"id": "x"}, "without a Destination"),
        ("SUBSCRIBE", {"id": "s", "destination": "/queue/q"}, "already is a subscription"),
        ("SUBSCRIBE", {"id": "x", "destination": "/queue/q", "selector": "a == 1"}, "write = once     a == 1"),
        ("SUBSCRIBE", {"id": "x", "destination": "/topic/t", "browser": "true"}, "browse a queue"),
        ("SUBSCRIBE", {"id": "x", "destination": "/queue/>", "browser": "true"}, "one queue at a time"),
        ("SUBSCRIBE", {"id": "x", "destination": "/topic/t", "activemq.subscriptionName": "d"}, "durable"),
        (
            "SUBSCRIBE",
            {"id": "x", "destination": "/queue/q", "ack": "client", "activemq.prefetchSize": "many"},
            "prefetchSize:many",
        ),
        ("ACK", {}, "without a ack id"),
    ],
)
def test_what_makes_no_sense_is_an_error_and_the_connection_stays(
    client: Raw, command: str, headers: dict[str, str], text: str
) -> None:
    client.subscribe()
    client.ok("BEGIN", transaction="open")
    answer = client.call(command, **headers)
    assert answer.command == "ERROR"
    assert text in answer.headers["message"]
    assert client.is_quiet()


def test_receipts_come_in_order_of_the_requests_and_echo_what_was_given(client: Raw) -> None:
    for number in range(300):
        client.say("SEND", {"destination": "/queue/q", "receipt": f"a:{number}\n"}, b"x" * (5000 * (number % 3 == 0)))
    assert [client.next("RECEIPT").headers["receipt-id"] for _ in range(300)] == [
        f"a:{number}\n" for number in range(300)
    ]


def test_the_url_says_why_there_is_none() -> None:
    with EmbeddedBroker("no-stomp") as broker, pytest.raises(IllegalStateError, match="without stomp_port"):
        _ = broker.stomp_url
    closed = EmbeddedBroker("closed-stomp", stomp_port=0)
    with closed:
        assert closed.stomp_url.startswith("stomp://127.0.0.1:")
    with pytest.raises(IllegalStateError, match="closed"):
        _ = closed.stomp_url


def test_a_port_that_is_taken_is_named_and_the_name_stays_free(broker: EmbeddedBroker) -> None:
    port = int(broker.stomp_url.rpartition(":")[2])
    with pytest.raises(ConfigError, match=f"stomp_port={port}"):
        EmbeddedBroker("second", stomp_port=port).start()
    EmbeddedBroker("second", stomp_port=0).start().close()
