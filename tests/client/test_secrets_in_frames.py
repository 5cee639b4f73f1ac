"""An error reporter that collects locals of frames (Sentry, rich) finds no password in ours, whatever was raised."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

import redelivery
from redelivery import ConfigError, ReconnectPolicy, aio
from redelivery.broker import BrokerConfig, EmbeddedBroker

SECRET = "s3cr3t-0f-ours"  # noqa: S105 - of nobody
OURS = Path(redelivery.__file__).parent
ONCE = ReconnectPolicy(initial_delay=0.01, startup_maximum_attempts=1)


def chain(error: BaseException) -> Iterator[BaseException]:
    left, seen = [error], set()
    while left:
        each = left.pop()
        if id(each) not in seen:
            seen.add(id(each))
            yield each
            left += [more for more in (each.__cause__, each.__context__) if more is not None]


def found(error: BaseException) -> list[str]:
    """Where it is shown: text, representation, and locals of our frames."""
    places = []
    for each in chain(error):
        if SECRET in str(each) or SECRET in repr(each):
            places.append(f"the text of {type(each).__name__}")
        trace: TracebackType | None = each.__traceback__
        while trace is not None:
            frame, trace = trace.tb_frame, trace.tb_next
            if Path(frame.f_code.co_filename).is_relative_to(OURS) or "/redelivery/" in frame.f_code.co_filename:
                places += [
                    f"{frame.f_code.co_qualname}: {name}"
                    for name, value in frame.f_locals.items()
                    if SECRET in repr(value)
                ]
    return places


async def connect_aio(url: str, **options: Any) -> None:
    async with aio.connect(url, **options):
        pass


def in_a_loop(url: str, **options: Any) -> None:
    asyncio.run(connect_aio(url, **options))


def by_factory(url: str, **options: Any) -> None:
    redelivery.ConnectionFactory(url, **options).create_connection().close()


def by_app(url: str, **options: Any) -> None:
    options.setdefault("reconnect", None)  # or it waits for a broker
    app = redelivery.App(url, **options)
    app.listener("orders")(print)
    app.run()


CALLS: list[Callable[..., object]] = [redelivery.connect, in_a_loop, by_factory, by_app]


def raises(call: Callable[..., object], url: str, **options: Any) -> None:
    with pytest.raises((redelivery.JMSError, TypeError)) as caught:
        call(url, **options)
    assert found(caught.value) == []


@pytest.fixture(scope="module")
def guarded() -> Iterator[EmbeddedBroker]:
    """It knows nobody of that password."""
    pytest.importorskip("proton")
    config = BrokerConfig(users={"user": "another"})
    with EmbeddedBroker("guarded", stomp_port=0, amqp_port=0, config=config) as broker:
        yield broker


def with_login(url: str) -> str:
    return url.replace("://", f"://user:{SECRET}@")


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.parametrize("protocol", ["stomp", "amqp", "vm"])
def test_a_refused_login(guarded: EmbeddedBroker, protocol: str, call: Callable[..., object]) -> None:
    url = guarded.vm_url if protocol == "vm" else guarded.urls[protocol]
    raises(call, with_login(url))
    raises(call, url, username="user", password=SECRET)
    if protocol != "vm":
        raises(call, f"failover:({with_login(url)},{with_login(url.replace('127.0.0.1', 'localhost'))})")
        raises(call, f"failover:({with_login(url)})?priorityBackup=true", dialect="artemis")


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.parametrize("scheme", ["stomp", "amqp", "stomp+ssl", "amqps"])
def test_nobody_is_there(scheme: str, call: Callable[..., object]) -> None:
    if scheme.startswith("amqp"):
        pytest.importorskip("proton")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    url = f"{scheme}://user:{SECRET}@127.0.0.1:{port}"
    raises(call, url)
    raises(call, url, reconnect=ONCE)
    raises(call, f"failover:({url},{url.replace('127.0.0.1', 'localhost')})?startupMaxReconnectAttempts=1")


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.parametrize("scheme", ["stomp", "amqp"])
def test_what_answers_is_no_broker(scheme: str, call: Callable[..., object]) -> None:
    if scheme == "amqp":
        pytest.importorskip("proton")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"{scheme}://user:{SECRET}@127.0.0.1:{silent.getsockname()[1]}"
        raises(call, url, connect_timeout=0.3)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
@pytest.mark.parametrize(
    "url",
    [
        f"stomp://user:{SECRET}@host:99999",
        f"stomp://user:{SECRET}%@host",
        f"stomp://user:{SECRET}@host?nonsense=1&x",
        f"stomp://user:{SECRET}@host?jms.nonsense=1",
        f"stomp://user:a{SECRET}/b@host",
        f"strange://user:{SECRET}@host",
        f"amqp://user:{SECRET}@host?amqp.maxFrameSize=x",
        f"stomp://user:{SECRET}%00@127.0.0.1:1",
        f"stomp://host?jms.userName=user&jms.password={SECRET}&jms.password={SECRET}",
        f"failover:(stomp://user:{SECRET}@host,vm://x)",
        f"failover:(stomp://user:{SECRET}@host:1:1)",
        f"failover:(stomp://user:{SECRET}@host)?nonsense=1",
        f"failover:(stomp://user:{SECRET}@host,amqp://user:{SECRET}@b?jms.clientID=x)",
        f"failover:(stomp://user:{SECRET}@host)?priorityBackup=true&priorityURIs=stomp://user:{SECRET}@b",
    ],
)
def test_a_url_that_does_not_fit(url: str, call: Callable[..., object]) -> None:
    raises(call, url)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
def test_an_option_that_does_not_fit(call: Callable[..., object]) -> None:
    for options in ({"prefetch": -1}, {"nonsense": 1}, {"dialect": "kafka"}, {"heartbeat": "x"}, {"username": 1}):
        raises(call, "stomp://127.0.0.1:1", **{"username": "user", "password": SECRET, **options})
        raises(call, f"stomp://user:{SECRET}@127.0.0.1:1", **options)
    raises(call, "stomp://127.0.0.1:1", username="user", password=f"{SECRET}\0")


def test_a_password_that_no_mechanism_can_carry() -> None:
    pytest.importorskip("proton")
    for call in CALLS:
        raises(call, f"amqp://user:{SECRET}%00@127.0.0.1:1")


def test_what_a_connection_has_shows_none() -> None:
    with EmbeddedBroker("shown", stomp_port=0) as broker:
        with redelivery.connect(with_login(broker.stomp_url)) as connection:
            options = connection._core.options
            assert SECRET not in repr((options, list(options.servers), options.priority, connection._core.dialer.last))
        with pytest.raises(ConfigError):
            redelivery.connect(with_login(broker.stomp_url), tls=1)  # type: ignore[arg-type]  # as one may write it
