"""A password that would leave this machine unencrypted: said once for each host, and never shown."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from tests.transports import amqp_sessions, scripted
from tests.transports.amqp_peer import PeerEnd, ScriptedPeer
from tests.transports.scripted import BrokerEnd, ScriptedBroker

from redelivery.transports.wire import cleartext
from redelivery.transports.wire.cleartext import warn_of_cleartext

LOGIN = {"username": "ann", "password": "s3cret"}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleartext, "_warned", set())


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> None:
    """127.0.0.1 is taken for another machine."""
    monkeypatch.setattr(cleartext, "_is_loopback", lambda _: False)


def over_amqp(mechanism: str, **login: Any) -> None:
    def script(end: PeerEnd) -> None:
        end.log_in(mechanisms=[mechanism])
        end.goodbye()

    with ScriptedPeer(script) as peer:
        amqp_sessions.Client(peer.port, **login).close()


def over_stomp(**login: Any) -> None:
    with ScriptedBroker(BrokerEnd.greet) as broker:
        scripted.Client(broker.port, **login).close()


@pytest.mark.usefixtures("far")
def test_sasl_plain_without_tls_warns_once_for_a_host(caplog: pytest.LogCaptureFixture) -> None:
    over_amqp("PLAIN", **LOGIN)
    over_amqp("PLAIN", **LOGIN)
    (record,) = warnings(caplog)
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        "127.0.0.1: the password is sent unencrypted (SASL PLAIN without TLS): anybody on the way can read it; use amqps://"
    )


@pytest.mark.usefixtures("far")
def test_a_stomp_login_without_tls_warns_once_for_a_host(caplog: pytest.LogCaptureFixture) -> None:
    over_stomp(**LOGIN)
    over_stomp(**LOGIN)
    (record,) = warnings(caplog)
    assert "127.0.0.1: the password is sent unencrypted (STOMP's CONNECT without TLS)" in record.getMessage()
    assert "use stomp+ssl://" in record.getMessage()
    assert "s3cret" not in caplog.text


@pytest.mark.usefixtures("far")
def test_no_password_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    over_amqp("ANONYMOUS")
    over_stomp()
    assert warnings(caplog) == []


def test_a_password_that_stays_on_this_machine_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    over_amqp("PLAIN", **LOGIN)
    over_stomp(**LOGIN)
    assert warnings(caplog) == []


@pytest.mark.parametrize(
    ("address", "warned"),
    [
        ("127.0.0.1", False),
        ("127.8.7.6", False),
        ("::1", False),
        ("10.0.0.7", True),
        ("192.168.1.2", True),
        ("2001:db8::7", True),
        ("fe80::1%eth0", True),
        (None, False),
        ("/run/broker.sock", False),
    ],
)
def test_loopback_is_detected_by_the_address(
    caplog: pytest.LogCaptureFixture, address: str | None, warned: bool
) -> None:
    warn_of_cleartext("broker.example", address, "SASL PLAIN", "amqps://")
    assert len(warnings(caplog)) == warned


def test_each_host_has_its_own(caplog: pytest.LogCaptureFixture) -> None:
    for host in ("a.example", "b.example", "a.example"):
        warn_of_cleartext(host, "10.0.0.7", "SASL PLAIN", "amqps://")
    assert [record.getMessage().partition(":")[0] for record in warnings(caplog)] == ["a.example", "b.example"]


def warnings(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.name.endswith("wire.cleartext")]
