"""Brokers that refuse the login, at the start and after a loss: alone, and in a list with others; by each shell."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.client.gated import Site
from tests.client.shell import SOON, eventually, receive
from tests.conformance import blocking
from tests.examples.tls_front import make_certificates, tls_front

import redelivery
from redelivery import ConnectError, ConnectionLostError, JMSError, SecurityError, UnsupportedError
from redelivery.broker import EmbeddedBroker
from redelivery.broker.engine.config import BrokerConfig
from redelivery.client.connection import dialing
from redelivery.events import ConnectionLost, Event, Reconnected, ReconnectFailed

OPTIONS = "?randomize=false&initialReconnectDelay=1&maxReconnectDelay=5"
Connect = Callable[..., Any]


class Users(dict[str, str]):
    """The passwords of a broker, which counts how often it is asked; nobody has one."""

    asked = 0

    def get(self, name: str, default: Any = None) -> Any:
        self.asked += 1
        return super().get(name, default)


class Guarded(Site):
    """A broker that refuses every login from now on, or from the start."""

    def __init__(self, protocol: str, opened: ExitStack, *, refuses: bool = True) -> None:
        self.config = BrokerConfig()
        self.users = Users()
        super().__init__(protocol, opened, config=self.config)
        if refuses:
            self.refuse()

    def refuse(self) -> None:
        object.__setattr__(self.config, "users", self.users)

    def admit(self) -> None:
        object.__setattr__(self.config, "users", None)


@pytest.fixture(params=["threads", "asyncio"])
def connect(request: pytest.FixtureRequest, opened: ExitStack) -> Connect:
    if request.param == "threads":
        return lambda url, **options: opened.enter_context(redelivery.connect(url, **options))
    loop = blocking.Loop()
    opened.callback(loop.end)
    return lambda url, **options: opened.enter_context(blocking.connect(loop, url, **options))


def failover(*sites: Site, more: str = "") -> str:
    return f"failover:({','.join(site.url for site in sites)}){OPTIONS}{more}"


def count(events: list[Event], kind: type) -> int:
    return sum(isinstance(each, kind) for each in events)


def test_one_of_a_list_is_passed_over(protocol: str, opened: ExitStack, connect: Connect) -> None:
    refusing, other = Guarded(protocol, opened), Site(protocol, opened)
    connection = connect(failover(refusing, other))
    connection.session().producer("orders").send("one")
    assert [each.body for each in other.broker.messages("orders")] == ["one"]
    assert refusing.users.asked == 1


def test_it_is_not_asked_again_while_the_others_are_away(protocol: str, opened: ExitStack, connect: Connect) -> None:
    refusing, other = Guarded(protocol, opened), Site(protocol, opened)
    other.gate.shut()
    events: list[Event] = []
    with pytest.raises(ConnectError, match=f"{refusing.url}.*(login|password|denied|refuse).*{other.url}"):
        connect(failover(refusing, other, more="&startupMaxReconnectAttempts=4"), observer=events.append)
    assert (refusing.users.asked, count(events, ReconnectFailed)) == (1, 4)


def test_at_the_start_it_is_said_at_once_where_no_other_one_answers(
    protocol: str, opened: ExitStack, connect: Connect
) -> None:
    """The other one is the standby of a pair, which answers nobody as long as this one lives."""
    refusing, standby = Guarded(protocol, opened), Site(protocol, opened)
    standby.gate.shut()
    events: list[Event] = []
    with pytest.raises(SecurityError, match=f"no other one answers: {refusing.url}: .*; {standby.url}: "):
        connect(failover(refusing, standby), observer=events.append)
    assert refusing.users.asked == 1
    assert not events


def test_after_a_while_it_is_asked_again_where_no_other_one_answers(
    protocol: str, opened: ExitStack, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been starting; the standby of its pair will never answer."""
    active, standby = Guarded(protocol, opened, refuses=False), Site(protocol, opened)
    standby.gate.shut()
    events: list[Event] = []
    connection = connect(failover(active, standby), observer=events.append)
    consumer = connection.session().consumer("orders")
    monkeypatch.setattr(dialing, "_FORGET", 0.1)
    active.refuse()
    active.gate.shut(0.0)
    eventually(lambda: active.users.asked >= 2)
    failures = [str(each.error) for each in events if isinstance(each, ReconnectFailed)]
    assert any(active.url in each and standby.url in each for each in failures), failures
    active.admit()
    eventually(lambda: count(events, Reconnected) == 1)
    active.broker.send("orders", "after all that")
    assert receive(consumer).body == "after all that"


def test_the_certificate_of_one_is_named_at_the_start_where_no_other_one_answers(
    connect: Connect, opened: ExitStack, tmp_path: Path
) -> None:
    make_certificates(tmp_path)
    broker = opened.enter_context(EmbeddedBroker("behind-tls", stomp_port=0))
    port = opened.enter_context(tls_front(broker.stomp_url, tmp_path))
    with closing(socket.create_server(("127.0.0.1", 0))) as nobody:
        away = nobody.getsockname()[1]
    url = f"failover:(stomp+ssl://localhost:{away},stomp+ssl://localhost:{port})"
    with pytest.raises(ConnectError, match=f"no other one answers: .*:{port}: .*not trusted.*:{away}: "):
        connect(url)


def test_where_all_refuse_the_error_names_each(protocol: str, opened: ExitStack, connect: Connect) -> None:
    sites = [Guarded(protocol, opened) for _ in range(3)]
    events: list[Event] = []
    url = failover(*sites).replace("//127", "//ann:s3cret@127", 1)
    with pytest.raises(SecurityError, match="every broker of the list refuses") as raised:
        connect(url, observer=events.append)
    assert all(site.url.partition("//")[2] in str(raised.value) for site in sites)
    assert "s3cret" not in str(raised.value)
    assert [site.users.asked for site in sites[1:]] == [1, 1]
    assert not events


def test_after_a_loss_too(protocol: str, opened: ExitStack, connect: Connect) -> None:
    first, refusing = Site(protocol, opened), Guarded(protocol, opened)
    events: list[Event] = []
    connection = connect(failover(first, refusing), observer=events.append)
    consumer = connection.session().consumer("orders")
    for number in (1, 2):
        first.gate.shut()
        eventually(partial(lambda events: count(events, ReconnectFailed) >= 3, events))
        assert refusing.users.asked == number  # once for each loss
        first.gate.open()
        eventually(partial(lambda number: count(events, Reconnected) == number, number))
        events[:] = [each for each in events if not isinstance(each, ReconnectFailed)]
    first.broker.send("orders", "after all that")
    assert receive(consumer).body == "after all that"


def test_alone_after_a_loss_it_ends_the_connection(protocol: str, opened: ExitStack, connect: Connect) -> None:
    site = Guarded(protocol, opened, refuses=False)
    events: list[Event] = []
    errors: list[JMSError] = []
    connection = connect(failover(site), observer=events.append, exception_listener=errors.append)
    consumer = connection.session().consumer("orders")
    site.refuse()
    site.gate.shut(0.0)
    with pytest.raises(ConnectionLostError, match=r"login|password|denied|refuse") as raised:
        consumer.receive(timeout=SOON)
    eventually(lambda: bool(errors))
    assert isinstance(errors[-1], JMSError)
    assert isinstance(raised.value.__cause__, SecurityError)
    assert (site.users.asked, count(events, ConnectionLost), count(events, Reconnected)) == (1, 1, 0)


def test_that_none_of_a_list_can_do_what_is_asked_for_is_said_of_each(opened: ExitStack) -> None:
    sites = Site("stomp", opened), Site("stomp", opened)
    with pytest.raises(UnsupportedError, match=r"every broker of the list refuses.*(does not drop what.*){2}"):
        redelivery.connect(failover(*sites), deduplicate_sends=True)
