"""Qpid JMS, the AMQP client of Java, on the embedded broker: a program plays its scenes once, each is a test."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from redelivery import Byte, Long, Short, Topic
from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.real import required

JAVA = Path(__file__).parent / "java"
COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"

pytestmark = [
    pytest.mark.timeout(400),  # the first run fetches the client
    pytest.mark.together("Qpid JMS"),
]


@pytest.fixture(scope="module")
def stage() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker("qpid-jms", amqp_port=0) as broker:
        yield broker


@pytest.fixture(scope="module")
def seen(stage: EmbeddedBroker, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """What each scene saw."""
    lacking = [tool for tool in ("javac", "mvn") if shutil.which(tool) is None]
    if lacking:
        reason = f"no Qpid JMS: {' and '.join(lacking)} not found (it needs a JDK and Maven)"
        if required("qpid"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    libraries = tmp_path_factory.mktemp("qpid-jms")
    run(["mvn", "-q", "-B", "-f", str(JAVA / "pom.xml"), COPY, f"-DoutputDirectory={libraries}"], 300)
    java = ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", f"{libraries}/*"]
    said = run([*java, str(JAVA / "Scenes.java"), stage.amqp_url], 90)
    return {name: what for name, _, what in (line.partition(": ") for line in said.splitlines())}


def run(command: list[str], timeout: float) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)  # noqa: S603  # a fixed command
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("scene", "what"),
    [
        ("commit", "[one, two] then nothing"),
        ("rollback", "kept, elsewhere nothing"),
        ("counts", "[m1, m2r, m3r, m4r] then nothing"),
        ("recover", "[a1, b1, a2r, b2r] then nothing"),
        ("browser", "[a, b, c] and a"),
        ("temporary", "pong, then InvalidDestinationException"),
        ("topic", "m and not local nothing"),
        ("listener", "true"),
        ("selector", "[m1, m3] of [m3] then nothing, m0 left"),
        ("receiveNoWait", "nothing"),
        ("exhausted", "[poison1, poison2r, nothing] poison of queue://bad"),
        ("delay", "late true"),
        ("durable", "kept then nothing"),
        ("shared", "[a, b] then nothing"),
        ("shared durable", "kept then nothing"),
    ],
)
def test_a_scene_goes_as_jms_says(seen: Mapping[str, str], scene: str, what: str) -> None:
    assert seen[scene] == what


@pytest.mark.parametrize(
    ("scene", "text"),
    [
        ("bad selector", "InvalidSelectorException"),
        ("unsubscribe", "InvalidDestinationException: there is no durable subscription 'name'"),
        ("client id", "InvalidClientIDException"),
    ],
)
def test_what_the_broker_cannot_do_is_said_clearly(seen: Mapping[str, str], scene: str, text: str) -> None:
    assert "Exception: " in seen[scene]
    assert text in seen[scene]


def test_every_kind_of_message_arrives(seen: Mapping[str, str], stage: EmbeddedBroker) -> None:
    assert seen["kinds"] == "sent"
    text, data, mapping, stream, nothing, _ = stage.messages("kinds")
    assert (text.body, data.body, nothing.body) == ("naïve", b"\0\xff", None)
    assert (mapping.body, stream.body) == ({"s": "v", "h": Short(2)}, [Byte(1), "s"])
    assert [type(mapping.body["h"]), type(stream.body[0])] == [Short, Byte]
    assert (dict(text.properties), type(text.properties["long"])) == ({"long": 5}, Long)
    assert (text.type, text.correlation_id, text.reply_to) == ("type", "corr", Topic("replies"))
    assert text.persistent
    assert text.message_id is not None
    assert text.message_id.startswith("ID:")


def test_nothing_is_left_where_everything_was_taken(seen: Mapping[str, str], stage: EmbeddedBroker) -> None:
    assert seen
    left = {name: stage.queue_depth(name) for name in ("tx", "back", "counts", "recover", "many", "bad", "late")}
    assert left == dict.fromkeys(left, 0)
    assert stage.core.connections == 0
