"""What docs/brokers/amazon-mq.md says of Amazon MQ for RabbitMQ, on a RabbitMQ 4 of ours with TLS."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from tests.conformance import blocking
from tests.transports import amazon

import redelivery
from redelivery import ConnectError, SecurityError
from redelivery.operate.management.opening import management_of
from redelivery.testing.brokers.native import NativeBroker
from redelivery.testing.brokers.specs import rabbitmq4

pytestmark = [pytest.mark.together("Amazon MQ"), pytest.mark.long_form]

SCHEMES = ("amqps", "amqp+ssl")
LOGIN: dict[str, Any] = {"username": "guest", "password": "guest"}
Connect = Callable[..., Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("proton")
    return amazon.certificates(tmp_path_factory.mktemp("amazon"))


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[NativeBroker]:
    amazon.check_there(rabbitmq4.SPEC)
    with closing(NativeBroker(amazon.rabbitmq_with_tls(folder))) as broker:
        broker.start()
        yield broker


@pytest.fixture
def url(broker: NativeBroker) -> str:
    return f"amqps://localhost:{broker.ports['amqps']}"


@pytest.fixture
def https(broker: NativeBroker) -> str:
    return f"https://localhost:{broker.ports['https']}"


@pytest.fixture
def tls(folder: Path) -> ssl.SSLContext:
    return amazon.trusting(folder)


@pytest.fixture(params=["threads", "asyncio"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    with ExitStack() as opened:
        if request.param == "threads":
            yield lambda url, **options: opened.enter_context(redelivery.connect(url, **options))
            return
        loop = blocking.Loop()
        opened.callback(loop.end)
        yield lambda url, **options: opened.enter_context(blocking.connect(loop, url, **options))


@pytest.mark.parametrize("form", ["{}", "failover:({})"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_its_endpoint_connects(url: str, tls: ssl.SSLContext, connect: Connect, scheme: str, form: str) -> None:
    connection = connect(form.format(url.replace("amqps", scheme)), tls=tls, **LOGIN)
    assert (connection.dialect, connection.metadata.provider_name) == ("rabbitmq", "RabbitMQ")
    session, queue = connection.session(), f"amazon.{uuid4().hex}"
    session.producer(queue).send("x")
    assert session.consumer(queue).receive(timeout=30).body == "x"


@pytest.mark.parametrize("form", ["{}", "failover:({})"])
def test_a_wrong_password_is_said_at_once(url: str, tls: ssl.SSLContext, connect: Connect, form: str) -> None:
    with pytest.raises(SecurityError, match="refuses the username, the password"):
        connect(form.format(url), tls=tls, username="guest", password="wrong")  # noqa: S106  # of nobody


@pytest.mark.parametrize("form", ["{}", "failover:({})"])
def test_a_certificate_of_an_unknown_authority_is_said_at_once(url: str, connect: Connect, form: str) -> None:
    with pytest.raises(ConnectError, match="certificate is not trusted"):
        connect(form.format(url), **LOGIN)


def test_its_management_is_asked_over_tls(url: str, https: str, tls: ssl.SSLContext) -> None:
    queue = f"amazon.{uuid4().hex}"
    with redelivery.connect(url, management=https, tls=tls, **LOGIN) as connection, connection.session() as session:
        session.producer(queue).send("x")
        management = management_of(connection)
        assert management is not None
        assert queue in {each.name for each in management.queues()}
        assert [each.body for each in management.browse(queue, 1)] == ["x"]
    with redelivery.connect(url, management=https.replace("localhost", "127.0.0.1"), tls=tls, **LOGIN) as connection:
        management = management_of(connection)
        assert management is not None
        with pytest.raises(ConnectError, match="certificate"):  # which is localhost's
            list(management.queues())
