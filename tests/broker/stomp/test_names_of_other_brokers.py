"""Under Artemis' and HornetQ's files a client that uses that broker's own names over STOMP finds what it is used to.

The same frames on the real brokers are compared in tests/differential.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.raw_stomp import Raw
from tests.policies.readers.documents import address_settings

import redelivery
from redelivery.broker import EmbeddedBroker

stomp: Any = pytest.importorskip("stomp")

ANYCAST = {"subscription-type": "ANYCAST"}
HORNETQ = """
<configuration xmlns="urn:hornetq">
<queues><queue name="jms.queue.dead"><address>jms.queue.dead</address></queue></queues>
<address-settings><address-setting match="jms.queue.#">
<dead-letter-address>jms.queue.dead</dead-letter-address><max-delivery-attempts>1</max-delivery-attempts>
</address-setting></address-settings></configuration>
"""
ARTEMIS = address_settings(**{"#": {"dead-letter-address": "dead", "max-delivery-attempts": 1}}).replace(
    "</core>", '<addresses><address name="dead"><anycast><queue name="dead"/></anycast></address></addresses></core>'
)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Callable[[str], EmbeddedBroker]]:
    running: list[EmbeddedBroker] = []

    def start(text: str) -> EmbeddedBroker:
        (tmp_path / "file.xml").write_text(text, encoding="utf-8")
        running.append(EmbeddedBroker("named", config=tmp_path / "file.xml", stomp_port=0))
        return running[0].__enter__()

    yield start
    for each in running:
        each.close()


def failed_once(client: Raw, queue: str, **more: str) -> dict[str, str]:
    """Take a message and drop the connection; the headers that it had."""
    client.subscribe(queue, **more)
    headers = dict(client.next("MESSAGE").headers)
    client.ok("DISCONNECT")
    return headers


@pytest.mark.parametrize(
    ("text", "prefix", "send", "take", "origin"),
    [
        (ARTEMIS, "", {"destination-type": "ANYCAST"}, ANYCAST, "_AMQ_ORIG_ADDRESS"),
        (HORNETQ, "jms.queue.", {}, {}, "_HQ_ORIG_ADDRESS"),
    ],
)
def test_queues_are_written_and_flagged_as_there(
    broker: Callable[[str], EmbeddedBroker],
    text: str,
    prefix: str,
    send: dict[str, str],
    take: dict[str, str],
    origin: str,
) -> None:
    url = broker(text).stomp_url
    with Raw(url) as client:
        client.ok("SEND", b"one", destination=f"{prefix}q", colour="red", **send)
        first = failed_once(client, f"{prefix}q", **take)
    assert (first["destination"], first["redelivered"], first["colour"]) == (f"{prefix}q", "false", "red")
    assert first.get("persistent") == (None if prefix else "false")
    with Raw(url) as client:
        dead = failed_once(client, f"{prefix}dead", **take)
    assert (dead["destination"], dead["redelivered"], dead[origin]) == (f"{prefix}dead", "false", f"{prefix}q")


def test_topics_of_hornetq(broker: Callable[[str], EmbeddedBroker]) -> None:
    with Raw(broker(HORNETQ).stomp_url) as client:
        client.subscribe("jms.topic.news", ack="auto")
        client.ok("SEND", b"one", destination="jms.topic.news")
        assert client.next("MESSAGE").headers["destination"] == "jms.topic.news"


def test_a_name_of_artemis_without_a_type_is_a_topic_where_no_queue_has_it(
    broker: Callable[[str], EmbeddedBroker],
) -> None:
    embedded = broker(ARTEMIS)
    with Raw(embedded.stomp_url) as client, Raw(embedded.stomp_url) as other:
        client.ok("SEND", b"lost", destination="new")
        client.subscribe("new", ack="auto")
        other.subscribe("new", ack="auto")
        client.ok("SEND", b"both", destination="new")
        assert [each.next("MESSAGE").body for each in (client, other)] == [b"both", b"both"]
        client.ok("SEND", b"kept", destination="dead")
        client.ok("SUBSCRIBE", destination="dead", id="d", ack="auto")
        assert client.next("MESSAGE").body == b"kept"


def test_wildcards_and_types_of_artemis(broker: Callable[[str], EmbeddedBroker]) -> None:
    with Raw(broker(ARTEMIS).stomp_url) as client:
        client.subscribe("news.#", ack="auto", **{"subscription-type": "MULTICAST"})
        client.ok("SEND", b"one", destination="news.a.b", **{"destination-type": "MULTICAST"})
        assert client.next("MESSAGE").headers["destination"] == "news.a.b"
        answer = client.call("SEND", b"one", destination="q", **{"destination-type": "BOTH"})
        assert answer.command == "ERROR"
        assert "destination-type:BOTH is none of ANYCAST and MULTICAST" in answer.headers["message"]


def test_a_reply_goes_where_the_request_says(broker: Callable[[str], EmbeddedBroker]) -> None:
    with Raw(broker(ARTEMIS).stomp_url) as client:
        for reply_to in ("answers", "queue://answers"):
            client.ok("SEND", b"?", destination="q", **{"destination-type": "ANYCAST", "reply-to": reply_to})
        client.subscribe("q", ack="auto", **ANYCAST)
        assert [client.next("MESSAGE").headers["reply-to"] for _ in range(2)] == ["answers", "answers"]


@pytest.mark.parametrize(("text", "prefix", "more"), [(ARTEMIS, "", ANYCAST), (HORNETQ, "jms.queue.", {})])
def test_stomp_py_and_this_library_read_each_other_s_messages(
    broker: Callable[[str], EmbeddedBroker], text: str, prefix: str, more: dict[str, str]
) -> None:
    embedded = broker(text)
    host, _, port = embedded.stomp_url.removeprefix("stomp://").partition(":")
    theirs = stomp.Connection12([(host, int(port))])
    theirs.connect(wait=True)
    sent = {"destination-type": "ANYCAST"} if more else {}
    theirs.send(f"{prefix}q", "from there", headers={"reply-to": f"{prefix}r", **sent}, receipt="1")
    with redelivery.connect(embedded.stomp_url) as connection, connection.session() as session:
        with session.consumer("q") as consumer:
            message = consumer.receive(timeout=10)
        assert message is not None
        assert (message.body, dict(message.properties)) == (b"from there", {})
        assert message.reply_to is not None
        session.producer(message.reply_to).send("from here")
    with Raw(embedded.stomp_url) as client:
        client.subscribe(f"{prefix}r", ack="auto", **more)
        frame = client.next("MESSAGE")
        assert (frame.body, frame.headers["destination"]) == (b"from here", f"{prefix}r")
    theirs.disconnect()
