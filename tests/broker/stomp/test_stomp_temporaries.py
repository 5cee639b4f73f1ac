"""Temporary destinations of the STOMP server: Classic's names for them, and JMS's rule who consumes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.broker.raw_stomp import Raw

from redelivery.broker import EmbeddedBroker


@pytest.fixture
def other(broker: EmbeddedBroker) -> Iterator[Raw]:
    with Raw(broker.stomp_url) as other:
        yield other


def test_its_maker_calls_it_as_it_likes_and_others_by_the_brokers_name(client: Raw, other: Raw) -> None:
    client.subscribe("/temp-queue/mine", "auto")
    client.ok("SEND", b"question", **{"destination": "/queue/q", "reply-to": "/temp-queue/mine"})
    other.subscribe("/queue/q", "auto")
    asked = other.next()
    name = asked.headers["reply-to"]
    assert name.startswith("/remote-temp-queue/ID:")
    assert name.endswith(":1")
    assert name.removeprefix("/remote-temp-queue/").removesuffix(":1") == client.connected.headers["session"]
    other.ok("SEND", b"answer", destination=name)
    answered = client.next()
    assert (answered.body, answered.headers["destination"]) == (b"answer", "/temp-queue/mine")


def test_a_name_is_of_one_connection(client: Raw, other: Raw) -> None:
    client.subscribe("/temp-queue/same", "auto")
    other.subscribe("/temp-queue/same", "auto")
    client.ok("SEND", b"1", destination="/temp-queue/same")
    other.ok("SEND", b"2", destination="/temp-queue/same")
    assert (client.next().body, other.next().body) == (b"1", b"2")


def test_what_comes_before_its_maker_consumes_waits(client: Raw, other: Raw) -> None:
    client.ok("SEND", b"question", **{"destination": "/queue/q", "reply-to": "/temp-queue/late"})
    other.subscribe("/queue/q", "auto")
    other.ok("SEND", b"answer", destination=other.next().headers["reply-to"])
    client.subscribe("/temp-queue/late", "auto")
    assert client.next().body == b"answer"


def test_a_temporary_topic(client: Raw, other: Raw) -> None:
    client.subscribe("/temp-topic/news", "auto")
    name = f"/remote-temp-topic/{client.connected.headers['session']}:1"
    other.ok("SEND", b"news", destination=name)
    assert client.next().headers["destination"] == "/temp-topic/news"


def test_only_its_maker_consumes(client: Raw, other: Raw) -> None:
    client.subscribe("/temp-queue/mine", "auto")
    name = f"/remote-temp-queue/{client.connected.headers['session']}:1"
    answer = other.call("SUBSCRIBE", destination=name, id="stranger", ack="auto")
    assert answer.command == "ERROR"
    assert "only the connection that made it" in answer.headers["message"]
    client.ok("UNSUBSCRIBE", id="s")
    client.subscribe(name, "auto")  # by the other name
    other.ok("SEND", b"x", destination=name)
    assert client.next().body == b"x"


@pytest.mark.parametrize("goes", ["drop", "DISCONNECT"])
def test_it_ends_with_its_connection(broker: EmbeddedBroker, client: Raw, other: Raw, goes: str) -> None:
    client.subscribe("/temp-queue/mine", "auto")
    name = f"/remote-temp-queue/{client.connected.headers['session']}:1"
    other.ok("SEND", b"x", destination=name)
    if goes == "drop":
        client.drop()
        assert broker.core.wait_until(lambda engine: not engine._state.temporary, 10)
    else:
        client.ok("DISCONNECT")
    answer = other.call("SEND", b"late", destination=name)
    assert answer.command == "ERROR"
    assert "does not exist" in answer.headers["message"]
