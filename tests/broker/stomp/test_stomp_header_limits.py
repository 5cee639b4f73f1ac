"""The server's limits of headers are those that our client keeps: at a limit it works, beyond it nothing is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.broker.raw_stomp import Raw

import redelivery
from redelivery import Connection, JMSError, MessageFormatError, Session, UnsupportedError
from redelivery.broker import EmbeddedBroker
from redelivery.broker.servers.stomp.refusals import MAX_HEADER, MAX_HEADERS

OVERHEAD = len("selector:")
ARTEMIS = '<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"/></configuration>'


@pytest.fixture
def connection() -> Iterator[Connection]:
    with EmbeddedBroker("limits", stomp_port=0) as broker, redelivery.connect(broker.stomp_url) as connection:
        yield connection


def selector_of(size: int) -> str:
    """One that chooses n = 1."""
    start = "n = 1 OR s = "
    return f"{start}'{'x' * (size - len(start) - 2)}'"


def test_a_selector_at_the_limit_chooses(connection: Connection) -> None:
    selector = selector_of(MAX_HEADER - OVERHEAD)
    session = connection.session()
    for number in (0, 1):
        session.producer("orders").send(f"m{number}", properties={"n": number})
    assert [each.body for each in session.browser("orders", selector=selector)] == ["m1"]
    message = session.consumer("orders", selector=selector).receive(timeout=10)
    assert message is not None
    assert message.body == "m1"


@pytest.mark.parametrize(
    ("beyond", "error"),
    [
        (lambda s: s.consumer("orders", selector=selector_of(MAX_HEADER - OVERHEAD + 1)), UnsupportedError),
        (lambda s: list(s.browser("orders", selector=selector_of(MAX_HEADER - OVERHEAD + 1))), UnsupportedError),
        (lambda s: s.consumer("x" * MAX_HEADER), UnsupportedError),
        (lambda s: s.shared_consumer("topic://t", "x" * MAX_HEADER), UnsupportedError),
        (lambda s: s.unsubscribe("x" * MAX_HEADER), UnsupportedError),
        (lambda s: s.producer("orders").send("x", properties={"p": "x" * MAX_HEADER}), MessageFormatError),
        (lambda s: s.producer("orders").send("x", correlation_id="x" * MAX_HEADER), MessageFormatError),
        (
            lambda s: s.producer("orders").send("x", properties={f"p{n}": "x" for n in range(MAX_HEADERS)}),
            MessageFormatError,
        ),
    ],
)
def test_beyond_it_the_call_raises_and_the_connection_and_its_sessions_go_on(
    connection: Connection, beyond: Callable[[Session], object], error: type[JMSError]
) -> None:
    other = connection.session("transacted")
    other.producer("orders").send("kept")
    with pytest.raises(error, match="over STOMP this broker ends the connection at"), connection.session() as session:
        beyond(session)
    other.commit()
    message = connection.session().consumer("orders").receive(timeout=10)
    assert message is not None
    assert message.body == "kept"


def test_so_it_is_where_the_broker_obeys_the_file_of_another(tmp_path: Path) -> None:
    path = tmp_path / "broker.xml"
    path.write_text(ARTEMIS)
    with (
        EmbeddedBroker("as-artemis", config=path, stomp_port=0) as broker,
        redelivery.connect(broker.stomp_url) as connection,
        connection.session() as session,
    ):
        with pytest.raises(UnsupportedError, match="the selector takes 10241 bytes"):
            session.consumer("orders", selector=selector_of(MAX_HEADER - OVERHEAD + 1))
        session.producer("orders").send("still there")


@pytest.mark.parametrize("beyond", [False, True])
def test_the_limit_is_the_servers_own(beyond: bool) -> None:
    with EmbeddedBroker("limits", stomp_port=0) as broker, Raw(broker.stomp_url) as client:
        answer = client.call("SEND", b"x", destination="/queue/q", p="x" * (MAX_HEADER - len("p:") + beyond))
        assert answer.command == ("ERROR" if beyond else "RECEIPT")
        assert broker.queue_depth("q") == (not beyond)
