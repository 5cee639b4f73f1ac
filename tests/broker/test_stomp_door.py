"""The embedded broker's STOMP door: what ActiveMQ Classic was found to do, frame by frame."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from tests.broker.raw_stomp import Raw

from redelivery.broker import BrokerConfig, EmbeddedBroker
from redelivery.model.errors import ConfigError, IllegalStateError
from redelivery.policies.dead_letters import IndividualDeadLetterStrategy
from redelivery.transports.stomp.frames import Frame


@pytest.fixture(scope="module")
def running() -> Iterator[EmbeddedBroker]:
    config = BrokerConfig(
        dead_letter_strategies={"individual.>": IndividualDeadLetterStrategy(queue_prefix="DLQ.")},
        memory_limit=64 << 20,
    )
    with EmbeddedBroker("stomp-door", stomp_port=0, config=config) as broker:
        yield broker


@pytest.fixture
def broker(running: EmbeddedBroker) -> Iterator[EmbeddedBroker]:
    """The broker, empty."""
    yield running
    with Raw(running.stomp_url) as client:
        for queue in ("q", "other", "ActiveMQ.DLQ"):
            depth = running.queue_depth(queue)
            client.subscribe(f"/queue/{queue}", "auto", id=queue)
            client.messages(depth)
            client.ok("UNSUBSCRIBE", id=queue)


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[Raw]:
    with Raw(broker.stomp_url) as client:
        yield client


def send(client: Raw, *bodies: bytes, to: str = "/queue/q", **headers: str) -> None:
    for body in bodies:
        client.ok("SEND", body, **{"destination": to, "persistent": "true", **headers})


def bodies(frames: list[Frame]) -> list[bytes]:
    return [frame.body for frame in frames]


def left(broker: EmbeddedBroker, queue: str = "q") -> list[object]:
    return [message.body for message in broker.messages(queue)]


# Connecting


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


# Sending and receiving


def test_the_headers_of_a_message(client: Raw, broker: EmbeddedBroker) -> None:
    send(
        client, b"text", **{"correlation-id": "c", "reply-to": "/topic/r", "type": "t", "priority": "7", "x": "a:b\n\\"}
    )
    client.subscribe()
    headers = client.next().headers
    assert headers.pop("message-id").startswith("ID:stomp-door-")
    assert headers.pop("ack").startswith("ID:stomp-door-")
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
        ({"destination": "/temp-queue/a"}, "temporary"),
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


# Acknowledging


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


@pytest.mark.parametrize("ack", ["nope", "", "ID:stomp-door-1-2:1:1:1"])
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


# Transactions


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
        ("SUBSCRIBE", {"id": "x", "destination": "/queue/q", "selector": "a = 1"}, "selector"),
        ("SUBSCRIBE", {"id": "x", "destination": "/queue/q", "browser": "true"}, "browsing"),
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


def test_a_subscription_is_confirmed_before_its_first_message(client: Raw) -> None:
    send(client, b"a")
    client.say("SUBSCRIBE", {"destination": "/queue/q", "id": "s", "ack": "client", "receipt": "r"})
    assert [client.take().command, client.take().command] == ["RECEIPT", "MESSAGE"]  # type: ignore[union-attr]


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
