"""ActiveMQ Classic without XStream closes the connection at each frame that asks for maps, and the error says why.

A consumer that does not ask for maps would get one that was sent over OpenWire as an empty text, which is no way out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest
from tests.client.shell import eventually
from tests.conformance.blocking import Shell
from tests.transports.scripted import BrokerEnd, ScriptedBroker

import redelivery
from redelivery import ConnectionLostError, InDoubtError, JMSError, ReconnectPolicy, UnsupportedError
from redelivery.testing.brokers.native import NativeBroker
from redelivery.testing.brokers.real import required
from redelivery.testing.brokers.spec import Site
from redelivery.testing.brokers.specs import activemq6

WHAT_TO_DO = "XStream.*NoClassDefFoundError.*xstream, mxparser, xmlpull and jettison.*lib, or use amqp://"
QUICK = ReconnectPolicy(initial_delay=0.01, maximum_delay=0.02)


class Classic:
    """Plays it; ``complete``: with XStream, so that it closes the connection at the destination ``bad`` only.

    ``subscribes``: the SUBSCRIBEs that came, by destination. ``logins``: so many.
    """

    def __init__(self, *, complete: bool = False) -> None:
        self.complete = complete
        self.subscribes: list[str] = []
        self.logins = 0

    def __call__(self, end: BrokerEnd) -> None:
        try:
            end.log_in()
            self.logins += 1
            while True:
                frame = end.take()
                if not self._take(end, frame.command, dict(frame.headers)):
                    return
                if "receipt" in frame.headers:
                    end.answer(frame)
        except ConnectionError:
            return

    def _take(self, end: BrokerEnd, command: str, headers: dict[str, str]) -> bool:
        """False: it hangs up."""
        if command == "SUBSCRIBE":
            self.subscribes.append(headers.get("destination", ""))
        if headers.get("transformation") == "jms-map-json" and not self.complete:
            return False
        if command == "SUBSCRIBE" and "destination" not in headers:
            end.send("ERROR", receipt_id=headers["receipt"], message="Invalid empty or 'null' Destination header")
            return False
        return headers.get("destination") != "/queue/bad"


@pytest.fixture
def classic() -> Iterator[tuple[Classic, str]]:
    script = Classic()
    with ScriptedBroker(script) as broker:
        yield script, f"stomp://127.0.0.1:{broker.port}"


def consume(session: Any) -> None:
    session.consumer("orders")


def consume_pattern(session: Any) -> None:
    session.consumer("orders.>")


def consume_topic(session: Any) -> None:
    session.consumer("topic://prices")


def browse(session: Any) -> None:
    list(session.browser("orders"))


@pytest.mark.parametrize("call", [consume, consume_pattern, consume_topic, browse])
@pytest.mark.parametrize("form", ["{}", "failover:({})"])
def test_a_consumer_is_refused_with_what_is_missing_and_what_to_do(
    classic: tuple[Classic, str], shell: Shell, form: str, call: Callable[[Any], None]
) -> None:
    script, url = classic
    refused = pytest.raises(UnsupportedError, match=f"(orders|prices).*: no consumer over STOMP: .*{WHAT_TO_DO}")
    with shell.connect(form.format(url)) as connection, connection.session() as session, refused:
        call(session)
    assert len([each for each in script.subscribes if each]) == 1  # which is not tried again
    assert script.logins <= 4  # the first, the session's or the next one, and that of the question


def test_a_container_ends_with_it(classic: tuple[Classic, str]) -> None:
    with (
        redelivery.connect(f"failover:({classic[1]})") as connection,
        pytest.raises(UnsupportedError, match=WHAT_TO_DO),
        connection.listener_container("orders", print) as container,
    ):
        container.start()


def test_a_consumer_that_meets_such_a_broker_later_ends_and_the_connection_stays() -> None:
    """With failover: its broker comes back, put together without XStream."""
    script = Classic(complete=True)
    errors: list[JMSError] = []
    ended = threading.Event()

    def note(error: JMSError) -> None:
        errors.append(error)
        if isinstance(error, UnsupportedError):
            ended.set()

    with ScriptedBroker(script) as broker:
        url = f"stomp://127.0.0.1:{broker.port}"
        with redelivery.connect(url, reconnect=QUICK, exception_listener=note) as connection:
            session = connection.session("auto")
            session.consumer("orders").listen(print)
            script.complete = False
            for end in list(broker.ends):
                end.sock.shutdown(2)
            assert ended.wait(10)
            eventually(lambda: connection.connected)
            assert "XStream" in str(next(each for each in errors if isinstance(each, UnsupportedError)))
            assert len([each for each in script.subscribes if each]) == 2  # there is no storm
            with connection.session() as other:
                other.producer("orders").send("text")  # it still can


def test_a_map_that_is_sent_is_in_doubt_and_the_reason_is_named(classic: tuple[Classic, str]) -> None:
    with redelivery.connect(classic[1]) as connection, connection.session() as session:
        producer = session.producer("orders")
        producer.send("text")
        with pytest.raises(InDoubtError, match=WHAT_TO_DO):
            producer.send({"a": 1})


def test_a_broker_that_reads_maps_and_closes_for_another_reason_is_not_accused() -> None:
    with ScriptedBroker(Classic(complete=True)) as broker:
        connection = redelivery.connect(f"stomp://127.0.0.1:{broker.port}")
        with connection, pytest.raises(ConnectionLostError, match=r"closed the connection$"):
            connection.session().consumer("bad")


def test_a_loss_after_the_first_map_is_another_one() -> None:
    script = Classic(complete=True)
    with ScriptedBroker(script) as broker, redelivery.connect(f"stomp://127.0.0.1:{broker.port}") as connection:
        session = connection.session()
        session.consumer("orders")
        with pytest.raises(InDoubtError) as raised:
            session.producer("bad").send({"a": 1})
        assert "XStream" not in str(raised.value)


def test_a_broker_that_is_gone_leaves_the_loss_as_it_is() -> None:
    """Nothing is known where the question cannot be asked."""
    gone: list[BrokerEnd] = []

    def script(end: BrokerEnd) -> None:
        end.log_in()
        gone.append(end)
        if len(gone) == 1:
            end.take("SUBSCRIBE")

    with ScriptedBroker(script) as broker:
        connection = redelivery.connect(f"stomp://127.0.0.1:{broker.port}", request_timeout=1)
        with connection, pytest.raises(ConnectionLostError, match=r"closed the connection$"):
            connection.session().consumer("orders")


def without_xstream(site: Site) -> Sequence[str]:
    """The command of a broker whose folder lacks it."""
    left = ":".join(str(jar) for jar in sorted(site.home.glob("*.jar")) if not jar.name.startswith("xstream-"))
    return [left if word == f"{site.home}/*" else word for word in activemq6.command(site)]


@pytest.mark.long_form
@pytest.mark.timeout(700)  # the first run fetches the broker
def test_on_a_real_one() -> None:
    lacking = activemq6.SPEC.source.missing()
    if lacking is not None:
        pytest.fail(lacking) if required("activemq6") else pytest.skip(lacking)
    broker = NativeBroker(replace(activemq6.SPEC, command=without_xstream))
    try:
        broker.start()
        url = f"failover:(stomp://{broker.host}:{broker.ports['stomp']})"
        for call in (consume, consume_pattern, consume_topic, browse):
            with redelivery.connect(url) as connection, connection.session() as session:
                session.producer("orders").send("text")
                with pytest.raises(UnsupportedError, match=WHAT_TO_DO):
                    call(session)
        in_doubt = pytest.raises(InDoubtError, match=WHAT_TO_DO)
        with redelivery.connect(url) as connection, connection.session() as session, in_doubt:
            session.producer("orders").send({"a": 1})
        if find_spec("proton") is not None:
            with redelivery.connect(f"amqp://{broker.host}:{broker.ports['amqp']}") as connection:
                session = connection.session()
                session.producer("maps").send({"a": 1})
                message = session.consumer("maps").receive(timeout=10)
                assert message is not None
                assert message.body == {"a": 1}
        assert "NoClassDefFoundError: com/thoughtworks/xstream" in broker.output()
    finally:
        broker.close()
