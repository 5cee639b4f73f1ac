"""Classic's plug-ins and limits for what arrives: the same on the real broker and on the embedded one with its file."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from time import sleep, time
from typing import NamedTuple

import pytest
from tests.broker.raw_stomp import Raw
from tests.differential.files import text_of
from tests.policies.readers.documents import classic, policy_entries, read
from tests.promises.real.started import running

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.operate.convert import convert
from redelivery.testing.brokers.specs import activemq

PATIENCE = 0.15  # seconds without a message, after which none comes any more
PORTS = {"amqp": 1, "stomp": 2, "openwire": 3}
LIMIT = "<pendingMessageLimitStrategy><{}PendingMessageLimitStrategy {}/></pendingMessageLimitStrategy>"
TWO = LIMIT.format("constant", 'limit="2"')
EVICTS = "<messageEvictionStrategy><{}EvictionStrategy {}/></messageEvictionStrategy>"
ENTRIES = {
    "ev.constant": TWO,
    "ev.zero": LIMIT.format("constant", 'limit="0"'),
    "ev.none": LIMIT.format("constant", 'limit="-1"'),
    "ev.rate": LIMIT.format("prefetchRate", 'multiplier="1.5"'),
    "ev.priority": EVICTS.format("oldestMessageWithLowestPriority", "") + TWO,
    "ev.unique": EVICTS.format("uniquePropertyMessage", 'propertyName="k"') + LIMIT.format("constant", 'limit="3"'),
}
PLUGINS = (
    '<timeStampingBrokerPlugin zeroExpirationOverride="700" ttlCeiling="500"/>'
    '<forcePersistencyModeBrokerPlugin persistenceFlag="true"/>'
)
NO_PLUGINS = "<statisticsBrokerPlugin/>"  # that concern messages: Classic refuses an empty list
Start = Callable[[str, str], "Urls"]


class Urls(NamedTuple):
    stomp: str
    amqp: str
    vm: str | None = None


@pytest.fixture(params=["embedded", pytest.param("real", marks=[pytest.mark.long_form, pytest.mark.timeout(120)])])
def start(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Starts a broker with such entries and plug-ins."""
    ended = []
    monkeypatch.setattr(sys.modules[__name__], "PATIENCE", 0.6 if request.param == "real" else 0.15)

    def text(entries: str, plugins: str, host: str, ports: Mapping[str, int]) -> str:
        whole = text_of("classic", host, ports).replace("<statisticsBrokerPlugin/>", plugins)
        return whole.replace("<policyEntries>", f"<policyEntries>{entries}")

    def begin(entries: str, plugins: str) -> Urls:
        if request.param == "real":
            manager = running(activemq.SPEC, lambda site: text(entries, plugins, site.host, site.ports))
            broker = manager.__enter__()
            ended.append(manager)
            return Urls(*(f"{each}://{broker.host}:{broker.ports[each]}" for each in ("stomp", "amqp")))
        (tmp_path / "activemq.xml").write_text(text(entries, plugins, "h", PORTS), encoding="utf-8")
        embedded = EmbeddedBroker("arrivals", config=tmp_path / "activemq.xml", stomp_port=0, amqp_port=0)
        ended.append(embedded)  # type: ignore[arg-type]  # it is a context manager too
        embedded.__enter__()
        assert embedded.amqp_url is not None
        return Urls(embedded.stomp_url, embedded.amqp_url, embedded.vm_url)

    yield begin
    for each in ended:
        each.__exit__(None, None, None)


def taken(client: Raw, *, acknowledge: bool = True) -> list[tuple[str, str]]:
    """The body of each message that comes, and the cause that it says."""
    found: list[tuple[str, str]] = []
    client.socket.settimeout(PATIENCE)
    while True:
        try:
            frame = client.next("MESSAGE")
        except TimeoutError:
            client.socket.settimeout(20)
            return found
        found.append((frame.body.decode(), frame.headers.get("dlqDeliveryFailureCause", "")))
        if acknowledge:
            client.say("ACK", {"id": frame.headers["ack"]})


def dead(url: str) -> list[tuple[str, str]]:
    with Raw(url) as client:
        client.subscribe("/queue/ActiveMQ.DLQ", ack="auto")
        return taken(client, acknowledge=False)


def slow(
    url: str, topic: str, own: dict[str, str], headers: Callable[[int], dict[str, str]], *, receipt: bool = True
) -> str:
    """What a subscriber gets that acknowledges nothing until ten were sent."""
    with Raw(url) as client, Raw(url) as sender:
        asked = {"destination": f"/topic/{topic}", "id": "s", "ack": "client-individual", **own}
        if receipt:
            client.ok("SUBSCRIBE", **asked)
        else:
            client.say("SUBSCRIBE", asked)
            client.ok("BEGIN", transaction="behind it")
        for number in range(10):
            sender.ok("SEND", str(number).encode(), destination=f"/topic/{topic}", **headers(number))
        return "".join(body for body, _ in taken(client))


PRIORITIES = (4, 9, 1, 5, 1, 9, 0, 3, 3, 2)
KEYS = "abacbadefa"
CASES: dict[str, tuple[str, dict[str, str], bool, Callable[[int], dict[str, str]], str, str]] = {
    "the oldest": ("ev.constant", {}, True, lambda _: {}, "089", "1234567"),
    "a prefetch of 3": ("ev.constant", {"activemq.prefetchSize": "3"}, True, lambda _: {}, "01289", "34567"),
    "nothing is prefetched": ("ev.constant", {"activemq.prefetchSize": "0"}, True, lambda _: {}, "", "01234567"),
    "a limit of its own": (
        "ev.constant",
        {"activemq.maximumPendingMessageLimit": "1"},
        True,
        lambda _: {},
        "09",
        "12345678",
    ),
    "not persistent": ("ev.constant", {}, True, lambda _: {"persistent": "false"}, "089", ""),
    "a limit of 0": ("ev.zero", {}, True, lambda _: {}, "0", ""),
    "no limit": ("ev.none", {}, True, lambda _: {}, "0123456789", ""),
    "another topic": ("other", {}, True, lambda _: {}, "0123456789", ""),
    "a rate": ("ev.rate", {"activemq.prefetchSize": "2"}, False, lambda _: {}, "01789", "23456"),
    "a rate, with a receipt": ("ev.rate", {"activemq.prefetchSize": "2"}, True, lambda _: {}, "2 of them", ""),
    "the lowest priority": (
        "ev.priority",
        {},
        True,
        lambda number: {"priority": str(PRIORITIES[number])},
        "015",
        "2436789",
    ),
    "one of each value": (
        "ev.unique",
        {},
        True,
        lambda number: {} if number == 3 else {"k": KEYS[number]},
        "0789",
        "123456",
    ),
}


def test_a_slow_subscriber_loses_what_its_limit_says(start: Start) -> None:
    url = start(
        "".join(f'<policyEntry topic="{topic}">{inside}</policyEntry>' for topic, inside in ENTRIES.items()), NO_PLUGINS
    ).stomp
    found = {}
    for name, (topic, own, receipt, headers, _, _) in CASES.items():
        asked = {"activemq.prefetchSize": "1", **own}
        got = slow(url, topic, asked, lambda n, of=headers: {"persistent": "true", **of(n)}, receipt=receipt)  # type: ignore[misc]  # bound now
        letters = dead(url)
        assert all(cause.startswith("java.lang.Throwable: TopicSubDiscard. ID:") for _, cause in letters)
        bodies = [body for body, _ in letters]
        if name == "one of each value":  # their order depends on who came within one millisecond
            bodies.sort()
        if name == "a rate, with a receipt":  # which two depends on when the real broker opens the window
            got = f"{len(got)} of them"
        found[name] = (got, "".join(bodies))
    assert found == {name: case[-2:] for name, case in CASES.items()}


LIMITED = "".join(
    f'<policyEntry topic="{name}">{limit}</policyEntry>'
    for name, limit in (("two", TWO), ("zero", ENTRIES["ev.zero"]), ("rate", ENTRIES["ev.rate"]))
)


def test_over_amqp_the_prefetch_is_the_credit(start: Start) -> None:
    pytest.importorskip("proton")
    from tests.broker.amqp.amqp_client import ACCEPTED, Peer, decoded

    urls = start(LIMITED, NO_PLUGINS)

    def got(topic: str, credit: int) -> tuple[str, str]:
        with Peer(urls.amqp) as client, Raw(urls.stomp) as sender:
            link = client.receiver(f"topic://{topic}", credit=credit)
            client.quiet()  # the credit is there
            for number in range(10):
                sender.ok("SEND", str(number).encode(), destination=f"/topic/{topic}", persistent="true")
            client.quiet()
            link.flow(10)
            while client.step(PATIENCE):
                pass
            for _, delivery, _ in client.received:
                client.settle(delivery, ACCEPTED)
            client.quiet()
            bodies = "".join(str(decoded(data).body) for _, _, data in client.received)
        return bodies, "".join(body for body, _ in dead(urls.stomp))

    assert {each: got(*each) for each in (("two", 0), ("two", 1), ("two", 3), ("zero", 1), ("rate", 2))} == {
        ("two", 0): ("89", "01234567"),
        ("two", 1): ("089", "1234567"),
        ("two", 3): ("01289", "34567"),
        ("zero", 1): ("0", ""),
        ("rate", 2): ("01", ""),  # it is rated by a prefetch of 0
    }


def test_over_vm_the_prefetch_is_the_consumer_s(start: Start) -> None:
    urls = start(LIMITED, NO_PLUGINS)
    if urls.vm is None:
        pytest.skip("it is the embedded broker's own")
    found = {}
    for topic, prefetch in (("two", 1), ("two", 3), ("zero", 1), ("rate", 2)):
        with (
            redelivery.connect(urls.vm) as connection,
            connection.session(ack_mode="client") as session,
            session.consumer(f"topic://{topic}", prefetch=prefetch) as consumer,
        ):
            producer = session.producer(f"topic://{topic}")
            for number in range(10):
                producer.send(str(number))
            got = [message.body for message in consumer.receive_many(20, timeout=0.1)]
        found[topic, prefetch] = ("".join(map(str, got)), "".join(body for body, _ in dead(urls.stomp)))
    assert found == {
        ("two", 1): ("089", "1234567"),
        ("two", 3): ("01289", "34567"),
        ("zero", 1): ("0", ""),
        ("rate", 2): ("01789", "23456"),
    }


def test_what_is_acknowledged_as_it_is_written_is_not_evicted_while_its_client_reads(start: Start) -> None:
    """Of what several clients send at a time some may be evicted, on the real broker as here: its thread decides."""
    url = start(LIMITED, NO_PLUGINS).stomp
    asked = {"destination": "/topic/two", "id": "s", "ack": "auto", "activemq.prefetchSize": "1"}
    with Raw(url) as client, Raw(url) as sender:
        client.ok("SUBSCRIBE", **asked)
        for number in range(10):
            sender.ok("SEND", str(number).encode(), destination="/topic/two", persistent="true")
        assert [client.next("MESSAGE").body for _ in range(10)] == [b"%d" % number for number in range(10)]
    with Raw(url, receive_buffer=4096) as client, Raw(url) as sender:
        client.ok("SUBSCRIBE", **asked)
        for number in range(20):  # of which sockets take some
            sender.ok("SEND", b"%c" % (65 + number) * (1 << 20), destination="/topic/two", persistent="true")
        sleep(PATIENCE)
        got = "".join(body[0] for body, _ in taken(client, acknowledge=False))
    letters = "".join(body[0] for body, _ in dead(url))
    assert "".join(sorted(got + letters)) == "ABCDEFGHIJKLMNOPQRST"
    assert got.endswith("ST")  # the last two may wait
    assert len(got) < 12


def test_what_expires_before_a_subscriber_has_room_is_a_dead_letter(start: Start) -> None:
    url = start("", NO_PLUGINS).stomp
    with Raw(url) as client, Raw(url) as sender:
        client.subscribe("/topic/late", **{"activemq.prefetchSize": "1"})
        for number in range(3):
            own = {"persistent": "true", "expires": str(round(time() * 1000) + 300)}
            sender.ok("SEND", str(number).encode(), destination="/topic/late", **own)
        frame = client.next("MESSAGE")
        sleep(0.4)
        assert taken(client) == []
        client.ok("ACK", id=frame.headers["ack"])
        letters = dead(url)
    assert [body for body, _ in letters] == ["1", "2"]
    assert all(cause.startswith("java.lang.Throwable: Message Expired.") for _, cause in letters)


def test_the_plugins_change_what_arrives(start: Start) -> None:
    url = start('<policyEntry queue="own" expireMessagesPeriod="200"/>', PLUGINS).stomp
    with Raw(url) as client:
        began = int(time() * 1000)
        client.ok("SEND", b"none", destination="/queue/looked", timestamp=str(began - 60_000))
        client.ok("SEND", b"long", destination="/queue/looked", expires=str(began + 3_600_000))
        client.ok("SEND", b"lost", destination="/queue/own")
        client.subscribe("/queue/looked", ack="auto")
        for _ in range(2):  # neither has more than the ceiling
            headers = client.next("MESSAGE").headers
            assert began <= int(headers["timestamp"]) <= began + 5000
            assert int(headers["expires"]) - int(headers["timestamp"]) == 500
            assert headers["persistent"] == "true"
        client.ok("SUBSCRIBE", destination="/queue/ActiveMQ.DLQ", id="dead", ack="auto")
        letter = client.next("MESSAGE")
    assert (letter.body, letter.headers["expires"], letter.headers["persistent"]) == (b"lost", "0", "true")


def test_no_message_is_persistent_where_the_plugin_says_so(start: Start) -> None:
    url = start("", "<forcePersistencyModeBrokerPlugin/>").stomp
    with Raw(url) as client:
        client.ok("SEND", b"1", destination="/queue/q", persistent="true")
        client.subscribe("/queue/q")
        frame = client.next("MESSAGE")
        assert "persistent" not in frame.headers
        client.ok("NACK", id=frame.headers["ack"])
    assert dead(url) == []


def test_each_eviction_is_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = text_of("classic", "h", PORTS).replace(
        "<policyEntries>", f'<policyEntries><policyEntry topic="t">{TWO}</policyEntry>'
    )
    (tmp_path / "activemq.xml").write_text(text, encoding="utf-8")
    with (
        caplog.at_level(logging.WARNING),
        EmbeddedBroker("evicts", config=tmp_path / "activemq.xml", stomp_port=0) as embedded,
    ):
        slow(embedded.stomp_url, "t", {"activemq.prefetchSize": "1"}, lambda _: {})
    (line,) = caplog.messages
    assert line.endswith("a subscriber is slow, for which at most 2 may wait: it is a dead letter")


def test_explain_says_it_and_a_conversion_that_it_is_lost() -> None:
    found = classic(policy_entries(f'<policyEntry topic="t">{TWO}</policyEntry>') + f"<plugins>{PLUGINS}</plugins>")
    notes = found.explain(redelivery.Topic("t")).notes
    assert notes[-4:] == (
        "of more than 2 that wait for a subscriber which is not durable one is evicted: it is a dead letter if it is "
        "persistent",
        "timeStampingBrokerPlugin: what has no time to live expires after 0.7 s",
        "timeStampingBrokerPlugin: what lives longer expires after 0.5 s",
        "forcePersistencyModeBrokerPlugin: each message is persistent",
    )
    assert found.not_read == ()
    assert {
        "policyEntry topic://t: pendingMessageLimitStrategy 2 is lost",
        'timeStampingBrokerPlugin zeroExpirationOverride="700" ttlCeiling="500" is lost',
        'forcePersistencyModeBrokerPlugin persistenceFlag="true" is lost',
    } <= set(convert(found, "artemis").lost)
    written = convert(found, "activemq").text
    assert read(written, "activemq.xml").rules == found.rules
