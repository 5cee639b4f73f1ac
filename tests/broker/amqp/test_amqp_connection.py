"""Logging in, opening, idle times and closing."""

from __future__ import annotations

import threading

import proton
import pytest
from tests.broker.amqp.amqp_client import Peer, Refused

import redelivery
from redelivery.broker import BrokerConfig, EmbeddedBroker
from redelivery.model.errors import ConfigError, IllegalStateError
from redelivery.transports.wire.clock import monotonic


def test_the_broker_says_who_it_is(client: Peer) -> None:
    properties = client.connection.remote_properties
    assert properties["product"] == "redelivery"
    assert properties["version"]
    assert list(client.connection.remote_offered_capabilities) == ["ANONYMOUS-RELAY", "DELAYED_DELIVERY", "SHARED-SUBS"]
    assert client.connection.remote_container == "redelivery-amqp-server"


@pytest.mark.parametrize("sasl", ["ANONYMOUS", "PLAIN", None])
def test_everybody_may_come_in_by_any_way(broker: EmbeddedBroker, sasl: str | None) -> None:
    with Peer(broker.amqp_url, sasl=sasl, user="anybody", password="anything") as client:  # noqa: S106  # a test's
        client.send(client.sender("q"), "m")
    assert broker.queue_depth("q") == 1


def test_only_known_users_come_in_where_there_are_any() -> None:
    config = BrokerConfig(users={"ada": "pässword"})
    with EmbeddedBroker("users", amqp_port=0, config=config) as broker:
        with Peer(broker.amqp_url, sasl="PLAIN", user="ada", password="pässword") as client:  # noqa: S106  # a test's
            client.send(client.sender("q"), "m")
        for sasl, user, password in (
            ("PLAIN", "ada", "wrong"),
            ("PLAIN", "eve", "pässword"),
            ("ANONYMOUS", None, None),
            (None, None, None),
        ):
            with Peer(broker.amqp_url, connect=False, sasl=sasl, user=user, password=password) as client:
                while not client.eof and client.transport.condition is None:  # it may not know the mechanisms
                    assert client.step()
                assert not client.connection.state & proton.Endpoint.REMOTE_ACTIVE
        with pytest.raises(redelivery.SecurityError):
            redelivery.connect(broker.amqp_url, username="ada", password="wrong")  # noqa: S106  # a test's
        assert broker.core.connections == 0


def test_one_client_id_is_one_connection_where_the_client_wants_it_so(broker: EmbeddedBroker) -> None:
    sole = ["sole-connection-for-container"]
    with Peer(broker.amqp_url, container="me", desired=sole) as first:
        assert sole[0] in list(first.connection.remote_offered_capabilities)
        with Peer(broker.amqp_url, container="me", desired=sole, connect=False) as second:
            with pytest.raises(Refused, match=r"amqp:invalid-field.*'me' is already connected") as refused:
                second.until(lambda: False)
            assert refused.value.info == {"invalid-field": "container-id"}
            assert second.connection.remote_properties["amqp:connection-establishment-failed"] is True
        with Peer(broker.amqp_url, container="me"):
            pass
        first.bye()
    with Peer(broker.amqp_url, container="me", desired=sole):
        pass


def test_a_goodbye_is_answered_and_gives_everything_back(broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url) as client:
        client.send(client.sender("q"), "m")
        client.receiver("q")
        client.one()
        client.bye()
        assert client.connection.state & proton.Endpoint.REMOTE_CLOSED
        assert client.connection.remote_condition is None
    with Peer(broker.amqp_url) as other:
        other.receiver("q")
        other.one()


def test_a_client_that_wants_signs_of_life_gets_them(broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url, idle=0.4) as client:
        end = monotonic() + 1.5
        while monotonic() < end:
            client.step(0.1)
        assert client.quiet()
        assert client.transport.frames_input > 3


def test_after_a_sign_of_life_the_client_is_still_read(broker: EmbeddedBroker) -> None:
    with Peer(broker.amqp_url, idle=0.4) as client:
        client.send(client.sender("q"), "m")
        client.receiver("q")  # a delivery, of whose sending the broker's proton makes a note
        client.one()
        before, end = client.transport.frames_input, monotonic() + 10
        while client.transport.frames_input < before + 2 and monotonic() < end:
            client.step(0.1)
        client.send(client.sender("other"), "n")
    assert broker.queue_depth("other") == 1


def test_a_silent_client_is_closed_and_loses_nothing() -> None:
    config = BrokerConfig(amqp_idle_timeout=0.3)
    with EmbeddedBroker("impatient", amqp_port=0, config=config) as broker, Peer(broker.amqp_url) as client:
        assert client.transport.remote_idle_timeout > 0
        client.send(client.sender("q"), "m")
        client.receiver("q")
        client.one()
        client.socket.settimeout(20)
        while client.socket.recv(1 << 16):  # proton would say something in time
            pass
        with Peer(broker.amqp_url) as other:
            other.receiver("q")
            assert other.one()[1].delivery_count == 1


@pytest.mark.parametrize("idle", [-1, True, "1", float("nan")])
def test_a_bad_idle_time_is_refused(idle: object) -> None:
    with pytest.raises(ConfigError, match="amqp_idle_timeout="):
        BrokerConfig(amqp_idle_timeout=idle)  # type: ignore[arg-type]  # that is the test


def test_messages_larger_than_a_frame_pass(broker: EmbeddedBroker) -> None:
    body = bytes(range(256)) * 12_000
    with Peer(broker.amqp_url, max_frame=4096) as client:
        assert 512 <= client.transport.remote_max_frame_size <= 1 << 20
        client.send(client.sender("q"), {"body": body, "inferred": True})
        client.receiver("q")
        assert client.one()[1].body == body


def test_the_end_of_the_broker_ends_its_clients_and_threads() -> None:
    before = set(threading.enumerate())
    broker = EmbeddedBroker("short", amqp_port=0).start()
    url = broker.amqp_url
    with Peer(url) as client:
        client.receiver("q")
        client.send(client.sender("q"), "m")
        broker.close()
        assert client.closed()
    assert set(threading.enumerate()) - before == set()
    with pytest.raises(OSError, match="refused"):
        Peer(url)
    with pytest.raises(IllegalStateError, match="it is closed"):
        _ = broker.amqp_url


def test_a_broker_without_amqp_says_how_to_get_it() -> None:
    with EmbeddedBroker("no-amqp") as broker, pytest.raises(IllegalStateError, match="without amqp_port"):
        _ = broker.amqp_url


def test_a_port_that_is_taken_is_named_and_leaves_nothing_open(broker: EmbeddedBroker) -> None:
    port = int(broker.amqp_url.rpartition(":")[2])
    second = EmbeddedBroker("second", stomp_port=0, amqp_port=port)
    before = set(threading.enumerate())
    with pytest.raises(ConfigError, match=f"amqp_port={port}: cannot listen"):
        second.start()
    assert set(threading.enumerate()) == before
    with EmbeddedBroker("second"):
        pass


@pytest.mark.parametrize("port", [-1, 65536, True, "5672"])
def test_what_is_no_port_is_refused(port: object) -> None:
    with pytest.raises(ConfigError, match="amqp_port="):
        EmbeddedBroker("bad", amqp_port=port)  # type: ignore[arg-type]  # that is the test
