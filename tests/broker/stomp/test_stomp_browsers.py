"""SUBSCRIBE with ``browser:true``, as ActiveMQ Classic was found to treat it."""

from __future__ import annotations

import pytest
from tests.broker.raw_stomp import Raw
from tests.broker.stomp.steps import left, send

from redelivery.broker import EmbeddedBroker

END = {"subscription": "s", "browser": "end", "destination": "/queue/q", "message-id": "0"}


@pytest.mark.parametrize("ack", ["auto", "client", "client-individual"])
def test_it_shows_what_is_there_then_the_mark_of_the_end(client: Raw, broker: EmbeddedBroker, ack: str) -> None:
    send(client, b"a", b"b", b"c")
    client.subscribe(ack=ack, browser="true")
    frames = client.messages(4)
    assert [frame.body for frame in frames[:3]] == [b"a", b"b", b"c"]
    assert all("browser" not in frame.headers for frame in frames[:3])
    assert ("ack" in frames[0].headers) is (ack != "auto")
    assert frames[3].headers == END
    if ack != "auto":
        client.ok("ACK", id=frames[2].headers["ack"])
    client.ok("UNSUBSCRIBE", id="s")
    assert left(broker) == ["a", "b", "c"]


def test_its_window_counts_messages_and_the_end(client: Raw, broker: EmbeddedBroker) -> None:
    send(client, b"a", b"b", b"c")
    client.subscribe(browser="true", **{"activemq.prefetchSize": "2"})
    first, second = client.messages(2)
    assert client.is_quiet()
    client.say("ACK", {"id": first.headers["ack"]})
    assert client.next().body == b"c"
    assert client.is_quiet()
    client.say("ACK", {"id": second.headers["ack"]})
    assert client.next().headers == END
    assert left(broker) == ["a", "b", "c"]


def test_a_backlog_of_many_windows_is_shown_whole_with_auto(client: Raw, broker: EmbeddedBroker) -> None:
    send(client, *(b"%d" % number for number in range(1700)))
    client.subscribe(ack="auto", browser="true")
    assert [client.next().body for _ in range(1700)] == [b"%d" % number for number in range(1700)]
    assert client.next().headers == END
    assert broker.queue_depth("q") == 1700


def test_with_stomp_1_1_the_message_id_is_acknowledged(broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url, version="1.1") as client:
        send(client, b"a")
        client.subscribe(browser="true", **{"activemq.prefetchSize": "1"})
        client.ok("ACK", subscription="s", message_id=client.next().headers["message-id"])
        assert client.next().headers == END
        assert left(broker) == ["a"]


def test_stomp_1_0_has_none(broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url, version="1.0") as client:
        answer = client.call("SUBSCRIBE", id="s", destination="/queue/q", browser="true")
        assert "only valid for Stomp v1.1" in answer.headers["message"]


def test_a_message_that_pretends_to_be_the_end_has_an_id(client: Raw) -> None:
    client.ok("SEND", b"a", destination="/queue/q", browser="end", message_id="0")
    client.subscribe(ack="auto", browser="true")
    forged, end = client.messages(2)
    assert forged.headers["browser"] == "end"
    assert forged.headers["message-id"] != "0"
    assert end.headers == END
