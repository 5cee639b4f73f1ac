"""Connecting: who answers, who does not, and what the errors name."""

from __future__ import annotations

import re
from time import monotonic

import pytest
from tests.conformance.stage import Stage

import redelivery
from redelivery import ConfigError, ConnectError, ProtocolError, SecurityError
from redelivery.testing.brokers.real import RealBroker


@pytest.mark.everywhere_in_long_form
def test_connection_knows_its_url_and_state(stage: Stage) -> None:
    connection = stage.connect()
    without_password = re.sub(r":[^:@/]+@", ":****@", stage.pair.url)
    assert (connection.url, connection.connected, connection.closed) == (without_password, True, False)
    connection.close()
    assert (connection.connected, connection.closed) == (False, True)


@pytest.mark.everywhere_in_long_form
def test_factory_makes_connections_with_its_options(stage: Stage) -> None:
    factory = redelivery.ConnectionFactory(stage.pair.url, client_id="conformance")
    with factory.create_connection() as connection:
        assert connection.client_id == "conformance"


@pytest.mark.everywhere_in_long_form
def test_options_of_the_url_are_activemqs(stage: Stage) -> None:
    url = stage.pair.url + "?jms.redeliveryPolicy.maximumRedeliveries=2&jms.redeliveryPolicy.redeliveryDelay=500"
    with redelivery.connect(url) as connection, connection.session() as session:
        policy = session.consumer(stage.queue).redelivery_policy
        assert (policy.maximum_redeliveries, policy.redelivery_delay) == (2, 0.5)


@pytest.mark.parametrize("option", ["jms.redeliveryPolicy.maximumRedeliverys=2", "jms.nonsense=1", "nonsense=1"])
def test_unknown_option_of_the_url_is_named(stage: Stage, option: str) -> None:
    with pytest.raises(ConfigError, match=option.partition("=")[0].rpartition(".")[2]):
        redelivery.connect(f"{stage.pair.url}?{option}")


def test_wrong_password_is_refused_at_once_and_not_reported(activemq: RealBroker) -> None:
    began = monotonic()
    login = {"username": "admin", "password": "open sesame"}
    with pytest.raises(SecurityError) as raised:
        redelivery.connect(activemq.stomp_url, **login)  # type: ignore[arg-type]  # mypy does not look into the dict
    assert monotonic() - began < 5
    error: BaseException | None = raised.value
    while error is not None:
        assert "sesame" not in f"{error!r} {error}"
        error = error.__cause__


def test_password_in_the_url_is_masked(activemq: RealBroker) -> None:
    url = activemq.stomp_url.replace("stomp://", "stomp://admin:admin@")
    with redelivery.connect(url) as connection:
        assert ":admin@" not in f"{connection.url} {connection!r}"
        connection.session().close()


def test_port_that_speaks_openwire_is_named(activemq: RealBroker) -> None:
    """ActiveMQ closes about one such connection in seven before it has said what it speaks; then that is said."""
    texts: list[str] = []
    while not texts or ("OpenWire" not in texts[-1] and len(texts) < 20):
        with pytest.raises((ProtocolError, ConnectError)) as refusal:
            redelivery.connect(activemq.openwire_url.replace("tcp://", "stomp://"), connect_timeout=5)
        texts.append(str(refusal.value))
    assert "OpenWire" in texts[-1]
    assert all("is it a STOMP port" in text for text in texts[:-1])
