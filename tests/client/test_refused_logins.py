"""Brokers that refuse the login, at the start and after a loss: alone, and in a list with others; by each shell."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any

import pytest
from tests.client.gated import Site
from tests.client.shell import SOON, eventually, receive
from tests.conformance import blocking

import redelivery
from redelivery import ConnectError, ConnectionLostError, JMSError, SecurityError, UnsupportedError
from redelivery.broker.engine.config import BrokerConfig
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
    with pytest.raises(ConnectError):
        connect(failover(refusing, other, more="&startupMaxReconnectAttempts=4"), observer=events.append)
    assert (refusing.users.asked, count(events, ReconnectFailed)) == (1, 4)


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
