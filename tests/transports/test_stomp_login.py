"""From nothing to CONNECTED: every way in which it can fail is an error that says so, in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.transports.scripted import BrokerEnd, Client, ScriptedBroker

from redelivery.model.errors import (
    ConfigError,
    ConnectError,
    InvalidClientIDError,
    JMSError,
    ProtocolError,
    SecurityError,
)

LOGIN: dict[str, Any] = {"username": "ann", "password": "s3cr3tpw"}


def test_the_peer_is_named_and_the_login_sent() -> None:
    with ScriptedBroker(BrokerEnd.greet) as broker:
        with Client(broker.port, client_id="c1", **{**LOGIN, "password": "s3:cr\\et"}) as client:
            peer = client.transport.peer
            headers = broker.ends[0].taken[0].headers
        assert (peer.provider_name, peer.provider_version, peer.protocol) == ("ActiveMQ", "5.18.3", "STOMP 1.2")
        assert peer.dialect == "activemq"
        assert peer.capabilities.native_poison
        assert headers["accept-version"] == "1.2,1.1"
        assert (headers["login"], headers["passcode"], headers["client-id"]) == ("ann", "s3:cr\\et", "c1")
        assert headers["host"] == "127.0.0.1"


def test_the_virtual_host_can_be_named() -> None:
    with ScriptedBroker(BrokerEnd.greet) as broker, Client(broker.port, params={"wireFormat.host": "/prod"}):
        assert broker.ends[0].taken[0].headers["host"] == "/prod"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"scheme": "amqp"}, "amqp:// is not STOMP"),
        ({"params": {"wireFormat.maxDataLength": "-1"}}, "wireFormat.maxDataLength='-1'"),
        ({"params": {"wireFormat.maxDataLength": "9" * 5000}}, "wireFormat.maxDataLength="),
        ({"params": {"trace": "true"}}, "unknown option 'trace' of stomp://"),
        ({"username": "ann\nevil:1"}, "'login'"),
        ({"password": "s3cret\r"}, "'passcode'"),
        ({"client_id": "a\0"}, "'client-id'"),
    ],
)
def test_options_that_cannot_be_are_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named) as caught:
        Client(1, **options)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("message", "body", "error"),
    [
        ("User name [ann] or password is invalid.", "java.lang.SecurityException: …", SecurityError),
        ("Security Error occurred", "AMQ229031: Unable to validate user", ConnectError),
        ("Bad CONNECT", "Access refused for user 'ann'\n", SecurityError),
        (
            "Broker: b - Client: c1 already connected from tcp://1",
            "javax.jms.InvalidClientIDException: …",
            InvalidClientIDError,
        ),
        ("too many connections", "", ConnectError),
    ],
)
def test_a_refused_login_says_why(message: str, body: str, error: type[JMSError]) -> None:
    def script(end: BrokerEnd) -> None:
        end.take("CONNECT")
        end.send("ERROR", body.encode(), message=message)

    with ScriptedBroker(script) as broker, pytest.raises(error) as caught:
        Client(broker.port, **LOGIN)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("first_bytes", "named"),
    [
        (b"\x00\x00\x01\x3c\x01ActiveMQ\x00\x00\x00\x0c", "OpenWire"),
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x16", "TLS"),
        (b"AMQP\x00\x01\x00\x00", "AMQP"),
        (b"MESSAGE\n\n\0", "answers CONNECT with MESSAGE"),
        (b"CONNECTED\nversion:1.0\n\n\0", "speaks STOMP 1.0 only"),
        (b"CONNECTED\n\n\0", "speaks STOMP 1.0 only"),
        (b"CONNECTED\nversion:1.2\nheart-beat:x\n\n\0", "heart-beat 'x'"),
        (b"CONNECTED\nversion:1.2\nheart-beat:" + b"9" * 5000 + b",1\n\n\0", "heart-beat"),
    ],
)
def test_another_protocol_on_the_port_is_named(first_bytes: bytes, named: str) -> None:
    def script(end: BrokerEnd) -> None:
        end.write(first_bytes)
        end.goodbye()

    with ScriptedBroker(script) as broker, pytest.raises(ProtocolError, match=named):
        Client(broker.port)


def test_a_peer_that_hangs_up_is_an_error_that_says_so() -> None:
    def script(end: BrokerEnd) -> None:
        end.take("CONNECT")

    with ScriptedBroker(script) as broker, pytest.raises(ConnectError, match="instead of answering CONNECT"):
        Client(broker.port)


def test_version_1_1_is_spoken_where_there_is_no_more() -> None:
    acks: list[bytes] = []

    def script(end: BrokerEnd) -> None:
        end.log_in(version="1.1")
        subscription = end.subscribed()
        end.write(b"MESSAGE\nsubscription:%b\nmessage-id:ID\\c7\n\nx\0" % subscription.encode())
        acks.append(end.take("ACK").head)
        end.goodbye()

    with ScriptedBroker(script) as broker, Client(broker.port) as client:
        session = client.session()
        link = session.attach()
        delivery = session.receive()
        session.channel.accept([delivery], batched=False)
        assert client.transport.peer.protocol == "STOMP 1.1"
        assert delivery.header("message_id") == "ID:7"
    assert acks == [b"ACK\nsubscription:%b\nmessage-id:ID\\c7\n" % link.id.encode()]


def strict(*, hosted: str | None, versions: tuple[str, ...]) -> Callable[[BrokerEnd], None]:
    """A broker that takes a CONNECT with that virtual host only (None: without any), and speaks these versions."""

    def script(end: BrokerEnd) -> None:
        connect = end.take("CONNECT")
        offered = connect.headers["accept-version"].split(",")
        if connect.headers.get("host") != hosted:
            end.send("ERROR", message="Virtual hosting is not supported or host is unknown")
        elif not set(offered) <= set(versions):
            end.send("ERROR", message='"host" header is required')  # as CoilMQ 1.1.0 says, for STOMP 1.2 alone
        else:
            end.send("CONNECTED", version=offered[0], server="coilmq/1.1.0")
            end.goodbye()

    return script


@pytest.mark.parametrize(("versions", "tries"), [(("1.2", "1.1"), 2), (("1.1",), 3)])
def test_a_broker_that_has_no_virtual_hosts_gets_none_named(versions: tuple[str, ...], tries: int) -> None:
    with ScriptedBroker(strict(hosted=None, versions=versions)) as broker, Client(broker.port, **LOGIN) as client:
        assert client.transport.peer.protocol == f"STOMP {versions[0]}"
        asked = [end.taken[0].headers for end in broker.ends]
        assert [each.get("host") for each in asked] == ["127.0.0.1"] + [None] * (tries - 1)
        assert {each["login"] for each in asked} == {"ann"}


@pytest.mark.parametrize("named", [{"vhost": "prod"}, {"params": {"wireFormat.host": "prod"}}])
def test_a_virtual_host_that_was_named_is_not_left_out(named: dict[str, Any]) -> None:
    with (
        ScriptedBroker(strict(hosted=None, versions=("1.2", "1.1"))) as broker,
        pytest.raises(ConnectError, match="Virtual hosting is not supported"),
        Client(broker.port, **named),
    ):
        pass
    assert [each.taken[0].headers["host"] for each in broker.ends] == ["prod"]


def test_a_broker_that_refuses_that_too_is_an_error_of_its_own_words() -> None:
    with (
        ScriptedBroker(strict(hosted="another", versions=("1.2", "1.1"))) as broker,
        pytest.raises(ConnectError, match="Virtual hosting is not supported"),
        Client(broker.port),
    ):
        pass
    assert len(broker.ends) == 3
