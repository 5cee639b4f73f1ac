"""Faults over STOMP, as a user's test plans them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.broker.raw_stomp import Raw

from redelivery.broker import EmbeddedBroker
from redelivery.transports.wire.clock import monotonic


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("stomp-faults", stomp_port=0) as broker:
        yield broker


@pytest.fixture
def client(broker: EmbeddedBroker) -> Iterator[Raw]:
    with Raw(broker.stomp_url) as client:
        yield client


def commit_one(client: Raw, name: str) -> None:
    client.ok("BEGIN", transaction=name)
    client.ok("SEND", name.encode(), destination="/queue/q", transaction=name)
    client.say("COMMIT", {"transaction": name, "receipt": "end"})


def test_drop_cuts_before_the_frame_is_done(client: Raw, broker: EmbeddedBroker) -> None:
    fault = broker.faults.drop("COMMIT")
    commit_one(client, "t")
    assert client.closed()
    assert fault.wait(5)
    assert broker.queue_depth("q") == 0


def test_drop_after_does_it_and_answers_nothing(client: Raw, broker: EmbeddedBroker) -> None:
    fault = broker.faults.drop_after("COMMIT", nth=2)
    commit_one(client, "first")
    assert client.next("RECEIPT").headers["receipt-id"] == "end"
    assert not fault.wait(0)
    commit_one(client, "second")
    assert client.closed()
    assert fault.hits == 1
    assert [message.body for message in broker.messages("q")] == ["first", "second"]


def test_what_was_answered_before_a_cut_still_arrives(client: Raw, broker: EmbeddedBroker) -> None:
    broker.faults.drop("SEND", nth=3)
    for number in range(3):
        client.say("SEND", {"destination": "/queue/q", "receipt": str(number)}, b"x")
    assert [client.next("RECEIPT").headers["receipt-id"] for _ in range(2)] == ["0", "1"]
    assert client.closed()


@pytest.mark.parametrize(("cut", "done"), [("drop", []), ("drop_after", ["b"])])
def test_nothing_that_came_behind_a_cut_in_one_write_is_done(
    client: Raw, broker: EmbeddedBroker, cut: str, done: list[str]
) -> None:
    getattr(broker.faults, cut)("SEND")
    send = "SEND\ndestination:/queue/q\ncontent-type:text/plain\n\n"
    client.socket.sendall((send + "b\0" + send + "c\0").encode())
    assert client.closed()
    assert [message.body for message in broker.messages("q")] == done


def test_error_answers_and_does_nothing(client: Raw, broker: EmbeddedBroker) -> None:
    broker.faults.error("SEND", "no room today", times=2)
    for _ in range(2):
        answer = client.call("SEND", b"x", destination="/queue/q")
        assert (answer.command, answer.headers["message"]) == ("ERROR", "no room today")
    client.ok("SEND", b"x", destination="/queue/q")
    assert broker.queue_depth("q") == 1


def test_swallow_leaves_one_waiting(client: Raw, broker: EmbeddedBroker) -> None:
    fault = broker.faults.swallow("SEND")
    client.say("SEND", {"destination": "/queue/q", "receipt": "never"}, b"x")
    assert client.is_quiet()
    assert fault.hits == 1
    assert broker.queue_depth("q") == 0


def test_delay_holds_one_connection_in_order_and_no_other(client: Raw, broker: EmbeddedBroker) -> None:
    broker.faults.delay("SEND", 0.3)
    began = monotonic()
    client.say("SEND", {"destination": "/queue/q", "receipt": "late"}, b"x")
    client.say("BEGIN", {"transaction": "t", "receipt": "behind"})
    with Raw(broker.stomp_url) as other:
        other.ok("SEND", b"y", destination="/queue/q")
        assert [message.body for message in broker.messages("q")] == ["y"]
    assert [client.next("RECEIPT").headers["receipt-id"] for _ in range(2)] == ["late", "behind"]
    assert 0.3 <= monotonic() - began < 5


def test_silence_keeps_what_it_would_say(broker: EmbeddedBroker) -> None:
    with Raw(broker.stomp_url, heart_beat="0,50") as client:
        broker.faults.silence()
        client.say("SEND", {"destination": "/queue/q", "receipt": "r"}, b"x")
        client.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.take()
        assert broker.queue_depth("q") == 1
        broker.faults.clear()
        client.socket.settimeout(20)
        assert client.next("RECEIPT").headers["receipt-id"] == "r"


def test_a_connect_can_be_refused_or_cut(broker: EmbeddedBroker) -> None:
    broker.faults.error("CONNECT", "closed on Sundays")
    broker.faults.drop("CONNECT")
    for command, answered in (("CONNECT", True), ("STOMP", False)):
        with Raw(broker.stomp_url, connect=False) as client:
            client.say(command, {"accept-version": "1.2"})
            if answered:
                assert client.next("ERROR").headers["message"] == "closed on Sundays"
            else:
                assert client.closed()
    with Raw(broker.stomp_url):
        pass


def test_the_oldest_fault_applies_first(client: Raw, broker: EmbeddedBroker) -> None:
    broker.faults.error("SEND", "first")
    broker.faults.error("SEND", "second")
    said = [client.call("SEND", b"x", destination="/queue/q").headers.get("message") for _ in range(3)]
    assert said == ["first", "second", None]
