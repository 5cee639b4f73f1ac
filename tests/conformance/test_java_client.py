"""Text stays text and bytes stay bytes, between us and ActiveMQ's own Java client on the same broker."""

from __future__ import annotations

import shutil
import subprocess
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.conformance.pairs import PAIRS, Pair
from tests.conformance.stage import Stage, receive, receive_all

from redelivery import AckMode, RedeliveryPolicy, SharedDeadLetterStrategy, Topic
from redelivery.testing.real import RealBroker, required

JAVA = Path(__file__).parent / "java"
Peer = Callable[..., list[list[str]]]


@pytest.fixture(scope="session")
def java_peer(activemq: RealBroker, tmp_path_factory: pytest.TempPathFactory) -> Peer:
    """Runs Peer.java and returns the fields of each line that it printed."""
    lacking = [tool for tool in ("javac", "mvn") if shutil.which(tool) is None]
    if lacking:
        reason = f"no Java client: {' and '.join(lacking)} not found (it needs a JDK and Maven)"
        pytest.fail(reason, pytrace=False) if required("activemq") else pytest.skip(reason)
    libraries = tmp_path_factory.mktemp("java-client")
    copy = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
    run(["mvn", "-q", "-B", "-f", str(JAVA / "pom.xml"), copy, f"-DoutputDirectory={libraries}"], 300)

    def peer(action: str, queue: str, *more: str) -> list[list[str]]:
        command = [
            "java",
            "-cp",
            f"{libraries}/*",
            str(JAVA / "Peer.java"),
            action,
            activemq.openwire_url,
            queue,
            *more,
        ]
        return [line.split("\t") for line in run(command, 50).splitlines()]

    return peer


@pytest.fixture
def stage(activemq: RealBroker, request: pytest.FixtureRequest) -> Iterator[Stage]:
    with ExitStack() as opened:
        pair = Pair(PAIRS["stomp-activemq"], activemq.stomp_url)
        yield Stage(pair, f"conformance.java.{request.node.originalname}", opened)


def run(command: list[str], timeout: float) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)  # noqa: S603  # a fixed command
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fields(encoded: str) -> dict[str, tuple[str, str]]:
    """``name=type:Base64,`` of Peer.java as a mapping of name to type and text."""
    entries = (entry.partition("=") for entry in encoded.split(",") if entry)
    return {name: (value.partition(":")[0], text(value.partition(":")[2])) for name, _, value in entries}


def text(encoded: str) -> str:
    return b64decode(encoded).decode()


@pytest.mark.timeout(400)  # the first run fetches the Java client
def test_what_we_send_java_receives(stage: Stage, java_peer: Peer) -> None:
    body = "naïve Straße 日本語\nline:\\"
    stage.send(
        body,
        properties={"colour": "red:\n", "number": 7},
        correlation_id="c:1",
        type="order",
        reply_to="topic://replies",
        priority=7,
        group_id="g",
    )
    stage.send("", bytes(range(256)), b"\0\0", {"name": "Ada", "count": 3}, persistent=False)
    first, empty, everything, nuls, mapping = java_peer("receive", stage.queue, "5")

    kind, sent, properties, headers = first
    assert (kind, text(sent)) == ("text", body)
    assert fields(properties)["colour"] == ("String", "red:\n")
    assert fields(properties)["number"] == ("String", "7"), "STOMP carries strings"
    got = {name: value for name, (_, value) in fields(headers).items()}
    assert got == {
        "correlation": "c:1",
        "type": "order",
        "reply": "topic://replies",
        "priority": "7",
        "persistent": "true",
        "group": "g",
    }
    assert (empty[0], text(empty[1])) == ("text", "")
    assert fields(empty[3])["persistent"][1] == "false"
    assert (everything[0], b64decode(everything[1])) == ("bytes", bytes(range(256)))
    assert (nuls[0], b64decode(nuls[1])) == ("bytes", b"\0\0")
    assert mapping[0] == "map"
    assert {name: value for name, (_, value) in fields(mapping[1]).items()} == {"name": "Ada", "count": "3"}


@pytest.mark.timeout(400)
def test_what_java_sends_we_receive(stage: Stage, java_peer: Peer) -> None:
    java_peer("send", stage.queue)
    consumer = stage.session(AckMode.AUTO).consumer(stage.queue)
    message = receive(consumer)
    assert message.body == "naïve Straße 日本語\nline:\\"
    assert (message.correlation_id, message.type, message.reply_to) == ("c:1", "order", Topic("replies"))
    assert (message.priority, message.persistent) == (7, True)
    assert {name: message.properties[name] for name in ("colour", "number", "yes")} == {
        "colour": "red:\n",
        "number": "7",
        "yes": "true",
    }
    empty, everything, mapping, nothing = receive_all(consumer, 4)
    assert empty.body == ""
    assert everything.body == bytes(range(256))
    assert not nothing.body
    assert (mapping.persistent, nothing.persistent) == (True, False)
    assert {name: str(value).lower() for name, value in mapping.body.items()} == {
        "name": "ada",
        "count": "3",
        "yes": "true",
        "share": "0.5",
        "long": str(1 << 40),
    }


@pytest.mark.timeout(400)
def test_a_dead_letter_of_ours_is_readable_in_java(stage: Stage, java_peer: Peer) -> None:
    letters = f"{stage.queue}.DLQ"
    stage.send("bad")
    session = stage.session(
        AckMode.TRANSACTED,
        redelivery_policy=RedeliveryPolicy(maximum_redeliveries=0),
        dead_letter_strategy=SharedDeadLetterStrategy(letters),
    )
    receive(session.consumer(stage.queue))
    session.rollback(cause=ValueError("no such account"))
    session.close()
    ((kind, body, properties, _),) = java_peer("receive", letters, "1")
    assert (kind, text(body)) == ("text", "bad")
    assert "no such account" in fields(properties)["dlqDeliveryFailureCause"][1]
    assert fields(properties)["originalDestination"] == ("String", f"queue://{stage.queue}")
