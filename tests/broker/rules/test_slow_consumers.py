"""Slow consumers that a broker ends by its file: what they had is redelivered; the same on the real broker."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple

import pytest
from tests.broker.raw_stomp import Raw
from tests.client.shell import eventually
from tests.differential.files import text_of
from tests.policies.readers.documents import classic, policy_entries, read
from tests.promises.real.started import ARTEMIS, artemis_with, running, setting

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.operate.convert import convert
from redelivery.testing import fast_forward
from redelivery.testing.brokers.specs import activemq

pytest.importorskip("proton")
import proton
from tests.broker.amqp.amqp_client import ACCEPTED, Peer, decoded

PORTS: Final = {"amqp": 1, "stomp": 2, "openwire": 3, "http": 4}
ENTRY: Final = (
    '<policyEntry {kind}="{name}"><slowConsumerStrategy><{strategy} {more}/></slowConsumerStrategy></policyEntry>'
)
SHORT: Final = 'checkPeriod="100" maxSlowDuration="300"'
ACKS: Final = f'{SHORT} maxTimeSinceLastAck="300"'
BY_SIZE, BY_ACKS = "abortSlowConsumerStrategy", "abortSlowAckConsumerStrategy"


def entry(name: str, strategy: str, more: str, kind: str = "queue") -> str:
    return ENTRY.format(kind=kind, name=name, strategy=strategy, more=more)


CLASSIC: Final = "".join(
    (
        entry("acks", BY_ACKS, ACKS),
        entry("acks.kill", BY_ACKS, f'{ACKS} abortConnection="true"'),
        entry("acks.idle", BY_ACKS, f'{ACKS} abortConnection="true" ignoreIdleConsumers="false"'),
        entry("acks.topic", BY_ACKS, f'{ACKS} abortConnection="true"', "topic"),
        entry("size", BY_SIZE, f'{SHORT} abortConnection="true"'),
        entry("size.topic", BY_SIZE, f'{SHORT} abortConnection="true"', "topic"),
        entry(
            "count.topic",
            BY_SIZE,
            'checkPeriod="100" maxSlowDuration="-1" maxSlowCount="1" abortConnection="true"',
            "topic",
        ),
    )
)


class Urls(NamedTuple):
    stomp: str
    amqp: str
    vm: str | None = None
    patience: float = 1.0  # seconds, after which none is slow any more


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=[pytest.mark.long_form])])
def urls(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Urls]:
    def text(host: str, ports: Any) -> str:
        return text_of("classic", host, ports).replace("<policyEntries>", f"<policyEntries>{CLASSIC}")

    with ExitStack() as stack:
        if request.param == "real":
            broker = stack.enter_context(running(activemq.SPEC, lambda site: text(site.host, site.ports)))
            stomp, amqp = (f"{each}://{broker.host}:{broker.ports[each]}" for each in ("stomp", "amqp"))
            yield Urls(stomp, amqp)
            return
        file: Path = tmp_path_factory.mktemp("classic") / "activemq.xml"
        file.write_text(text("h", PORTS), encoding="utf-8")
        embedded = stack.enter_context(EmbeddedBroker("slow", config=file, stomp_port=0, amqp_port=0))
        assert embedded.amqp_url is not None
        yield Urls(embedded.stomp_url, embedded.amqp_url, embedded.vm_url, 0.6)


def send(urls: Urls, destination: str, number: int) -> None:
    with Raw(urls.stomp) as sender:
        for each in range(number):
            sender.ok("SEND", str(each).encode(), destination=destination, persistent="true")


def left(urls: Urls, queue: str, number: int) -> list[tuple[str, int]]:
    """What the queue has for another consumer, with its counts."""
    found: list[tuple[str, int]] = []
    with Peer(urls.amqp) as client:
        client.receiver(queue, "queue", credit=10)
        client.until(lambda: len(client.received) >= number)
        for _, delivery, data in client.received:
            message = decoded(data)
            found.append((str(message.body), message.delivery_count))
            client.settle(delivery, ACCEPTED)
        client.quiet()
    return found


def is_ended(client: Raw, within: float) -> bool:
    """Check whether the broker closes the connection, without an ERROR."""
    client.socket.settimeout(within)
    end = monotonic() + within
    try:
        while monotonic() < end:
            frame = client.take()
            if frame is None:
                return True
            assert frame.command == "MESSAGE", frame.headers
    except TimeoutError:
        pass
    return False


def test_a_consumer_that_acknowledges_nothing_loses_its_messages_without_a_word(urls: Urls) -> None:
    with Raw(urls.stomp) as client:
        client.subscribe("/queue/acks")
        send(urls, "/queue/acks", 2)
        assert [each.body for each in client.messages(2)] == [b"0", b"1"]
        assert left(urls, "acks", 2) == [("0", 1), ("1", 1)]
        assert client.is_quiet()
        client.ok("SUBSCRIBE", destination="/queue/acks", id="new", ack="client-individual")


def test_with_abort_connection_its_connection_ends(urls: Urls) -> None:
    with Raw(urls.stomp) as client:
        client.subscribe("/queue/acks.kill", **{"activemq.prefetchSize": "2"})
        send(urls, "/queue/acks.kill", 3)
        assert is_ended(client, 5)
    assert left(urls, "acks.kill", 3) == [("0", 1), ("1", 1), ("2", 0)]


def test_one_that_acknowledges_is_not_slow(urls: Urls) -> None:
    with Raw(urls.stomp) as client:
        client.subscribe("/queue/acks.kill", **{"activemq.prefetchSize": "1"})
        send(urls, "/queue/acks.kill", 8)
        began = monotonic()
        for number in range(8):
            frame = client.next("MESSAGE")
            while monotonic() < began + 0.15 * (number + 1):
                client.ok("BEGIN", transaction="t")
                client.ok("ABORT", transaction="t")
            client.ok("ACK", id=frame.headers["ack"])
        assert not is_ended(client, urls.patience)  # and neither is one that has nothing


def test_an_idle_one_ends_where_idle_ones_are_not_ignored(urls: Urls) -> None:
    with Raw(urls.stomp) as client:
        client.subscribe("/queue/acks.idle")
        assert is_ended(client, 5)


def test_over_amqp_the_link_ends_or_the_connection_is_cut(urls: Urls) -> None:
    with Peer(urls.amqp) as client:
        link = client.receiver("acks", "queue", credit=2)
        send(urls, "/queue/acks", 2)
        client.until(lambda: bool(link.state & proton.Endpoint.REMOTE_CLOSED))
        condition = link.remote_condition
        assert (condition.name, condition.description) == ("amqp:internal-error", "Receiver forcably closed")
        assert len(client.received) == 2
    assert [body for body, _ in left(urls, "acks", 2)] == ["0", "1"]
    with Peer(urls.amqp) as client:
        client.receiver("acks.kill", "queue", credit=2)
        send(urls, "/queue/acks.kill", 2)
        assert client.closed()
        assert client.connection.remote_condition is None
    assert left(urls, "acks.kill", 2) == [("0", 1), ("1", 1)]


@pytest.mark.parametrize(
    ("topic", "prefetch", "sends", "ends"),
    [
        ("acks.topic", "5", 1, True),
        ("size.topic", "2", 6, True),
        ("size.topic", "2", 5, False),
        ("size.topic", "1", 9, False),
        ("count.topic", "2", 6, True),
    ],
)
def test_subscribers_of_a_topic(urls: Urls, topic: str, prefetch: str, sends: int, ends: bool) -> None:
    with Raw(urls.stomp) as client:
        client.subscribe(f"/topic/{topic}", **{"activemq.prefetchSize": prefetch})
        send(urls, f"/topic/{topic}", sends)
        assert is_ended(client, 5 if ends else urls.patience) == ends


def test_a_durable_subscriber_is_slow_when_it_has_no_room(urls: Urls) -> None:
    named = {"activemq.subscriptionName": "d", "activemq.prefetchSize": "1"}
    with Raw(urls.stomp, client_id="durable") as client:
        client.subscribe("/topic/size.topic", **named)
        send(urls, "/topic/size.topic", 3)
        assert is_ended(client, 5)

    with Raw(urls.stomp, client_id="durable") as client:
        client.subscribe("/topic/size.topic", **{**named, "activemq.prefetchSize": "10"})
        assert [each.body for each in client.messages(3)] == [b"0", b"1", b"2"]
        client.ok("UNSUBSCRIBE", id="s")
        client.ok("UNSUBSCRIBE", id="s", destination="/topic/size.topic", **named)


def test_by_size_no_consumer_of_a_queue_is_slow(urls: Urls) -> None:
    with Raw(urls.stomp) as client:
        client.subscribe("/queue/size", **{"activemq.prefetchSize": "2"})
        send(urls, "/queue/size", 9)
        assert not is_ended(client, urls.patience)
        client.socket.settimeout(20)
        client.ok("UNSUBSCRIBE", id="s")
    assert len(left(urls, "size", 9)) == 9


def test_over_vm_a_consumer_or_its_connection_ends(urls: Urls) -> None:
    if urls.vm is None:
        pytest.skip("it is the embedded broker's own")
    with redelivery.connect(urls.vm) as connection, connection.session(ack_mode="client") as session:
        consumer = session.consumer("acks")
        session.producer("acks").send("one")
        assert consumer.receive(timeout=5) is not None
        with pytest.raises(redelivery.JMSError, match=r"has ended the consumer.*was slow: abortSlowAck"):
            consumer.receive(timeout=5)
    assert left(urls, "acks", 1) == [("one", 1)]
    connection = redelivery.connect(urls.vm)
    session = connection.session(ack_mode="client")
    consumer = session.consumer("acks.kill")
    session.producer("acks.kill").send("one")
    assert consumer.receive(timeout=5) is not None
    eventually(lambda: not connection.connected)
    connection.close()
    assert left(urls, "acks.kill", 1) == [("one", 1)]


def test_it_waits_by_the_broker_s_clock_and_warns(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = text_of("classic", "h", PORTS).replace("<policyEntries>", f"<policyEntries>{entry('q', BY_ACKS, '')}")
    (tmp_path / "activemq.xml").write_text(text, encoding="utf-8")
    with (
        EmbeddedBroker("waits", config=tmp_path / "activemq.xml", stomp_port=0) as broker,
        fast_forward(broker) as clock,
        Raw(broker.stomp_url) as client,
        caplog.at_level(logging.WARNING),
    ):
        client.subscribe("/queue/q")
        client.ok("SEND", b"1", destination="/queue/q")
        client.next("MESSAGE")
        clock.advance(29)  # 30 s without an acknowledgement, and a check each 30 s
        assert client.is_quiet()
        assert caplog.messages == []
        clock.advance(31)
        client.ok("SUBSCRIBE", destination="/queue/q", id="new", ack="client-individual")
        assert client.next("MESSAGE").headers["redelivered"] == "true"
    (line,) = caplog.messages
    assert line.startswith(
        "queue://q: a consumer is slow: it ends; what it had is redelivered: Consumer was slow: abort"
    )


def test_explain_says_it_a_file_has_it_again_and_a_conversion_that_it_is_lost() -> None:
    more = 'maxSlowDuration="5000" checkPeriod="1000" maxSlowCount="3" abortConnection="true" name="s"'
    found = classic(
        policy_entries(entry("q", BY_ACKS, more) + entry("t", BY_SIZE, "", "topic") + entry("s", BY_SIZE, ""))
    )
    assert found.not_read == ()
    assert found.explain("q").notes[-1] == (
        "abortSlowAckConsumerStrategy: the connection of a consumer ends that has acknowledged nothing for 30 s and "
        "has messages for 5 s or in 3 checks: what it had is redelivered"
    )
    assert "abortSlowConsumerStrategy: a consumer ends for which more than its prefetch waits" in str(
        found.explain("topic://t")
    )
    assert (
        found.explain("s").notes[-1]
        == "abortSlowConsumerStrategy: on a queue no consumer of STOMP or AMQP is ever slow"
    )
    assert read(convert(found, "activemq").text, "activemq.xml").rules == found.rules
    assert (
        'policyEntry queue://q: abortSlowAckConsumerStrategy maxSlowCount="3" maxSlowDuration="5000" '
        'checkPeriod="1000" abortConnection="true" is lost'
    ) in convert(found, "artemis").lost


@pytest.mark.parametrize("wrong", ['checkPeriod="0"', 'maxSlowDuration="x"', 'abortConnection="maybe"', 'maxSlow="1"'])
def test_what_classic_would_not_take_is_refused(wrong: str) -> None:
    with pytest.raises(redelivery.ConfigError, match=wrong.partition("=")[0]):
        classic(policy_entries(entry("q", BY_SIZE, wrong)))


@pytest.mark.long_form
@pytest.mark.timeout(120)
def test_artemis_ends_the_connection_of_a_slow_consumer_as_the_line_not_read_says() -> None:
    """It is not modelled: see `test_not_read.py`."""
    given = setting(
        "kill.#",
        slow_consumer_threshold=2,
        slow_consumer_policy="KILL",
        slow_consumer_check_period=1,
        max_delivery_attempts=-1,
    )
    anycast = {"subscription-type": "ANYCAST"}
    with running(ARTEMIS, artemis_with(given, "kill.few", "kill.many")) as broker:
        stomp, amqp = (f"{each}://{broker.host}:{broker.ports[each]}" for each in ("stomp", "amqp"))
        urls = Urls(stomp, amqp)
        for queue, number in (("kill.few", 1), ("kill.many", 10)):
            with Raw(urls.stomp) as client, Raw(urls.stomp) as sender:
                client.subscribe(queue, **anycast)
                for each in range(number):
                    sender.ok("SEND", str(each).encode(), destination=queue, **{"destination-type": "ANYCAST"})
                client.messages(number)
                if number == 1:  # fewer than the threshold
                    assert not is_ended(client, 3)
                    continue
                error = client.next("ERROR")
                assert error.headers["message"].endswith("closed by management")
                assert client.closed()
        assert [body for body, _ in left(urls, "kill.many", 10)] == list("0123456789")  # not all of them are counted
