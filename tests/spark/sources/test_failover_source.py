"""`url=failover:(a,b)`: the source goes on at the other broker; both die in turn, and each message is a row once."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.foreign import Foreign, binary, section, sequence, string
from tests.spark.place import Place, texts
from tests.spark.streams import ALL, drained, pickled, readers

import redelivery
from redelivery import ConfigError, ConnectError
from redelivery.broker import EmbeddedBroker
from redelivery.spark.options.query import BrowseOptions, SinkOptions, SourceOptions
from redelivery.spark.options.reconnect import connect, connected_to
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader
from redelivery.spark.read.inspect.browse import BrowseReader
from redelivery.testing.brokers.ports import free_ports

PARSERS: dict[Any, dict[str, str]] = {
    SourceOptions: {"path": "orders", "walLocation": "/data/wal"},
    BrowseOptions: {"path": "orders"},
    SinkOptions: {"path": "orders"},
}
NOBODY = "stomp://127.0.0.1:1"
KINDS = [DriverStreamReader, ExecutorStreamReader]
_BROKER = """
import sys
from redelivery.broker import EmbeddedBroker
with EmbeddedBroker(sys.argv[1], **{f"{sys.argv[2]}_port": int(sys.argv[3])}, store=sys.argv[4]):
    print("there", flush=True)
    sys.stdin.read()
"""


def given(kind: Any) -> dict[str, str]:
    return {"receiver": "executor"} if kind is ExecutorStreamReader else {}


@pytest.mark.parametrize("kind", list(PARSERS))
def test_a_list_is_taken_and_shows_no_password(kind: Any) -> None:
    url = "failover:(stomp://u:hunter2@a:1,amqp://b:2?jms.password=hunter2&jms.userName=u)?maxReconnectDelay=100"
    options = kind.parse({**PARSERS[kind], "url": url})
    assert options.url == url
    assert "hunter2" not in repr(options)
    assert options.masked_url.startswith("failover:(stomp://u:****@a:1")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("failover:(vm://a,stomp://b)", "a vm:// broker cannot be returned to"),
        ("failover:(tcp://a:1)", "tcp"),
        ("failover:()", "url: failover URL:"),
        ("failover:(stomp://a:1)?maxReconectDelay=1", "maxReconectDelay"),
        ("failover:(stomp://a:1)?jms.clientID=c", "use the option clientId"),
        ("failover:(stomp://a:1)?jms.prefetchPolicy.queuePrefetch=1", "use the option prefetch"),
    ],
)
def test_what_a_list_cannot_have_is_refused(url: str, said: str) -> None:
    for kind, options in PARSERS.items():
        with pytest.raises(ConfigError) as refused:
            kind.parse({**options, "url": url})
        assert said in str(refused.value)


def test_a_login_is_given_once() -> None:
    options = {**PARSERS[SourceOptions], "username": "u", "password": "p"}
    with pytest.raises(ConfigError, match="username is given twice"):
        SourceOptions.parse({**options, "url": "failover:(stomp://a:1,stomp://v:w@b:1)"})
    assert SourceOptions.parse({**options, "url": "failover:(stomp://a:1,stomp://b:1)"}).username == "u"


@pytest.mark.parametrize("kind", KINDS)
def test_a_broker_that_is_down_is_passed_over(kind: Any, place: Place) -> None:
    place.send("a", "b")
    with readers(kind, place, url=f"failover:({NOBODY},{place.url})", **given(kind)) as made:
        stream = made()
        found, _ = drained(stream, stream.initialOffset())
    assert (found, place.left()) == (["a", "b"], [])


def test_a_browse_asks_each_once(place: Place) -> None:
    place.send("a")
    reader = BrowseReader(BrowseOptions.parse({"url": f"failover:({NOBODY},{place.url})", "path": "orders"}))
    assert [text for each in reader.partitions() for text in texts(reader.read(each))] == ["a"]
    away = BrowseReader(BrowseOptions.parse({"url": f"failover:({NOBODY})", "path": "orders"}))
    with pytest.raises(ConnectError, match=r"127\.0\.0\.1:1"):
        away.partitions()


def test_no_broker_of_the_list_fails_the_query_in_time(place: Place) -> None:
    url = f"failover:({NOBODY},stomp://127.0.0.1:2)"
    with readers(DriverStreamReader, place, url=url, maxReconnectTime="1 s", pollInterval="20 s") as made:
        stream = made()
        with pytest.raises(ConnectError, match=r"could not be reached for 1 s \(maxReconnectTime\)"):
            stream.latestOffset(stream.initialOffset(), ALL)


def test_tasks_receive_where_the_messages_were_seen(broker: EmbeddedBroker, tmp_path: Path) -> None:
    """Two brokers that do not know each other: a task at the other one would find nothing."""
    place = Place(broker, tmp_path, "stomp")
    with EmbeddedBroker("f34-other", stomp_port=0) as other:
        options = {"url": f"failover:({other.stomp_url},{place.url})", "receiver": "executor"}
        with readers(ExecutorStreamReader, place, **options) as made:
            for number in range(6):
                stream = made(walLocation=tmp_path / str(number), pollInterval="100 ms")
                start = stream.initialOffset()
                stream.latestOffset(start, ALL)
                assert stream._probe is not None
                seen = (other, broker)[stream._probe.broker]
                seen.send("orders", f"m{number}")
                end = stream.latestOffset(start, ALL)
                found = [text for each in stream.partitions(start, end) for text in texts(pickled(stream).read(each))]
                stream.stop()
                assert found == [f"m{number}"]


def test_the_first_of_a_list_is_the_one_that_is_wanted(broker: EmbeddedBroker, tmp_path: Path) -> None:
    with EmbeddedBroker("f34-wanted", stomp_port=0) as other:
        options = Place(broker, tmp_path, "stomp").options(url=f"failover:({other.stomp_url},{broker.stomp_url})")
        for number in (0, 1, 0, 1):
            with connect(options, first=number) as connection:
                assert (broker.core.connections, other.core.connections) == (number, 1 - number)
                assert connected_to(connection) == 0


class Dying:
    """A broker in a process of its own, that keeps its messages."""

    def __init__(self, name: str, protocol: str, folder: Path) -> None:
        self.port = free_ports([name])[name]
        self.url = f"{protocol}://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-c", _BROKER, name, protocol, str(self.port), str(folder / f"{name}.db")]
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)  # noqa: S603  # ours
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"there\n"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(params=["stomp", "amqp"])
def two(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, list[Dying]]]:
    """A protocol, and two brokers."""
    made: list[Dying] = []
    with ExitStack() as opened:
        for name in ("a", "b"):
            made.append(Dying(name, request.param, tmp_path))
            opened.callback(made[-1].kill)
        yield request.param, made


class Sender(threading.Thread):
    """Another client, which sends to both in turn; what one of them has not confirmed may be there or not."""

    def __init__(self, protocol: str, brokers: list[Dying]) -> None:
        super().__init__(daemon=True)
        self._foreign = [Foreign(protocol, "activemq", each.url) for each in brokers]
        self._amqp = protocol == "amqp"
        self.confirmed: list[str] = []
        self.open: list[str] = []
        self.ended = threading.Event()

    def _message(self, text: bytes) -> bytes:
        """Durable, or a killed broker would lose it; with an id, since over AMQP nothing else makes it known again."""
        if not self._amqp:
            return b"persistent:true\n\n" + text
        header, properties = section(0x70, sequence(b"\x41")), section(0x73, sequence(string(text)))
        return header + properties + section(0x75, binary(text))

    def run(self) -> None:
        number = 0
        while not self.ended.wait(0.01):
            number += 1
            body = f"m{number}"
            try:
                self._foreign[number % 2].send("orders", self._message(body.encode()))
            except Exception:  # noqa: BLE001  # of proton, a socket, or a broken frame
                self.open.append(body)
            else:
                self.confirmed.append(body)


@pytest.mark.long_form
@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", KINDS)
def test_two_brokers_die_in_turn(
    kind: Any, two: tuple[str, list[Dying]], broker: EmbeddedBroker, tmp_path: Path
) -> None:
    protocol, brokers = two
    chance = random.Random(34)  # noqa: S311  # of a test
    url = f"failover:({brokers[0].url},{brokers[1].url})?maxReconnectDelay=200"
    place = Place(broker, tmp_path / "wal", protocol)
    sender = Sender(protocol, brokers)
    sender.start()
    found: list[str] = []
    options = {**given(kind), "maxReconnectTime": "60 s", "pollInterval": "300 ms"}
    with readers(kind, place, **options) as made:
        stream = made(url=url)
        start = stream.initialOffset()

        def take(batches: int) -> None:
            nonlocal start
            for _ in range(batches):
                end = stream.latestOffset(start, ALL)
                for _ in range(5):  # as Spark repeats a task
                    rows: list[str] = []
                    with suppress(ConnectError, redelivery.ConnectionLostError):
                        for each in stream.partitions(start, end) if end != start else []:
                            rows += texts(pickled(stream).read(each))
                        break
                found.extend(rows)
                if end != start:
                    stream.commit(end)
                start = end

        for number in range(10):
            killed = brokers[number % 2]
            take(chance.randrange(1, 4))
            killed.kill()
            take(chance.randrange(1, 4))
            killed.start()
            if number == 5:
                stream.stop()
                stream = made(url=url)
        sender.ended.set()
        sender.join(20)
        stream.stop()
        for each in brokers:  # quietly, what is left
            stream = made(url=each.url, availableNowIdle="1 s")
            more, start = drained(stream, start)
            found += more
            stream.stop()
    counted = Counter(found)
    assert [body for body in sender.confirmed if body not in counted] == []
    assert [body for body, times in counted.items() if times > 1] == []
    assert counted.keys() <= {*sender.confirmed, *sender.open}
    assert len(sender.confirmed) > 20
