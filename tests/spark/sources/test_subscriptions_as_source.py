"""Topics as a source, without Spark: a durable subscription keeps what comes while no query runs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.foreign import Foreign, binary, section, sequence, string
from tests.spark.place import Place
from tests.spark.streams import ALL, drained, readers, rows

import redelivery
from redelivery import ConfigError, InvalidClientIDError, InvalidDestinationError, UnsupportedError
from redelivery.broker import EmbeddedBroker
from redelivery.spark.options.query import BrowseOptions, SourceOptions
from redelivery.spark.read.driver import DriverStreamReader
from redelivery.spark.read.executor import ExecutorStreamReader
from redelivery.spark.read.inspect.capable import check_broker

TOPIC = "topic://news"
SOURCE = {"url": "stomp://broker:61613", "walLocation": "/data/wal"}
NAMED = {"destination": TOPIC, "subscription": "audit"}

pytestmark = pytest.mark.in_turns("place")


def refusal(**given: str) -> str:
    with pytest.raises(ConfigError) as refused:
        SourceOptions.parse({**SOURCE, **given})
    return str(refused.value)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"path": TOPIC}, "topic://news: a topic keeps nothing .* add subscription.*VirtualTopic"),
        ({"destinations": f"orders,{TOPIC}"}, "topic://news: a topic keeps nothing"),
        ({"path": "orders", "subscription": "audit"}, "is for a topic, and queue://orders is a queue"),
        ({"path": "orders", "shared": "true"}, "shared has no effect without subscription"),
        ({"path": "orders", "clientId": "c"}, "clientId has no effect without subscription"),
        ({"destinations": f"{TOPIC},topic://more", "subscription": "audit"}, "belongs to one topic, and there are 2"),
        ({**NAMED, "subscription": ""}, "subscription: '' is not a name of a subscription"),
        ({**NAMED, "subscription": " a"}, "subscription: ' a' is not a name"),
        ({**NAMED, "clientId": "a\n"}, r"clientId='a\\n': use a str without control characters"),
        ({**NAMED, "lanes": "2"}, "lanes=2 needs shared=true.*one consumer.*VirtualTopic"),
        ({**NAMED, "receiver": "executor"}, "receiver=executor needs shared=true"),
        ({**NAMED, "shared": "perhaps"}, "shared='perhaps'"),
        ({**NAMED, "url": "stomp://h?jms.clientID=x"}, "jms.clientID has no effect here: use the option clientId"),
    ],
)
def test_what_contradicts_itself_is_refused(given: dict[str, str], said: str) -> None:
    assert re.search(said, refusal(**given)), refusal(**given)


def test_a_topic_cannot_be_browsed() -> None:
    with pytest.raises(ConfigError, match=r"path='topic://news': a topic holds nothing.*with a stream"):
        BrowseOptions.parse({"url": "stomp://h", "path": TOPIC})
    with pytest.raises(ConfigError, match="'subscription' is not an option of read, but of readStream"):
        BrowseOptions.parse({"url": "stomp://h", "path": "orders", "subscription": "audit"})


def test_the_client_id_is_the_name_unless_it_is_given() -> None:
    assert SourceOptions.parse({**SOURCE, **NAMED}).client_id == "audit"
    assert SourceOptions.parse({**SOURCE, **NAMED, "clientId": "c"}).client_id == "c"
    assert SourceOptions.parse({**SOURCE, **NAMED, "shared": "true"}).client_id is None


def test_what_comes_while_no_query_runs_is_kept(place: Place) -> None:
    with readers(DriverStreamReader, place, **NAMED) as made:
        place.send("too early", queue=TOPIC)
        stream = made()
        start = stream.initialOffset()
        stream.prepareForTriggerAvailableNow()
        assert stream.latestOffset(start, ALL) == start  # from now on it is there
        place.send("a", "b", queue=TOPIC)
        found, start = drained(stream, start)
        stream.stop()
        place.send("c", "d", queue=TOPIC)
        more, _ = drained(made(), start)
    assert (found, more) == (["a", "b"], ["c", "d"])


@pytest.mark.parametrize(("kind", "several"), [(DriverStreamReader, "lanes"), (ExecutorStreamReader, "numPartitions")])
def test_several_consume_a_shared_one(kind: Any, several: str, place: Place) -> None:
    executor = {"receiver": "executor"} if kind is ExecutorStreamReader else {}
    with readers(kind, place, **NAMED, shared="true", **executor) as made:
        first = made()
        first.prepareForTriggerAvailableNow()
        first.latestOffset(first.initialOffset(), ALL)  # which makes it
        first.stop()
        expected = [str(number) for number in range(60)]
        place.send(*expected, queue=TOPIC)
        stream = made(**{several: 2})
        found, start = drained(stream, stream.initialOffset())
        stream.stop()
        place.send("later", queue=TOPIC)
        more, _ = drained(made(), start)
    assert (Counter(found), more) == (Counter(expected), ["later"])


def test_an_executor_has_its_subscription_before_the_first_task(place: Place) -> None:
    with readers(ExecutorStreamReader, place, **NAMED, shared="true", receiver="executor") as made:
        stream = made()
        start = stream.initialOffset()
        end = stream.latestOffset(start, ALL)
        place.send("a", queue=TOPIC)  # planned, and no task has begun
        assert rows(stream, start, end) == ["a"]


def test_a_queue_and_a_topic_are_one_source(place: Place) -> None:
    with readers(DriverStreamReader, place, destinations=f"orders,{TOPIC}", subscription="audit") as made:
        stream = made()
        start = stream.initialOffset()
        stream.prepareForTriggerAvailableNow()
        assert stream.latestOffset(start, ALL) == start
        place.send("o")
        place.send("n", queue=TOPIC)
        found, _ = drained(stream, start)
    assert sorted(found) == ["n", "o"]


def test_the_rows_of_a_pattern_say_their_topic(place: Place) -> None:
    with readers(DriverStreamReader, place, destination="topic://news.>", subscription="audit") as made:
        stream = made()
        start = stream.initialOffset()
        stream.prepareForTriggerAvailableNow()
        assert stream.latestOffset(start, ALL) == start
        place.send("a", queue="topic://news.eu")
        place.send("b", queue="topic://news.us.west")
        end = stream.latestOffset(start, ALL)
        batches = [batch for partition in stream.partitions(start, end) for batch in stream.read(partition)]
    found = {row["body"]: row["destination"] for batch in batches for row in batch.to_pylist()}
    assert found == {b"a": "topic://news.eu", b"b": "topic://news.us.west"}


@pytest.mark.parametrize("place", ["amqp"], indirect=True)  # over STOMP the broker says it
def test_a_place_that_nobody_says_is_not_made_up(place: Place) -> None:
    """Over AMQP only a sender says it: one that does not, or says what does not fit, has a row without it."""
    foreign = Foreign("amqp", "activemq", place.url)
    to = section(0x73, sequence(b"\x40", b"\x40", string(b"queue://elsewhere")))
    foreign.send("shop.a", section(0x75, binary(b"silent")), to + section(0x75, binary(b"liar")))
    place.send("own", queue="shop.b")
    with readers(DriverStreamReader, place, destination="shop.>") as made:
        stream = made()
        start = stream.initialOffset()
        stream.prepareForTriggerAvailableNow()
        end = stream.latestOffset(start, ALL)
        batches = [batch for partition in stream.partitions(start, end) for batch in stream.read(partition)]
    found = {row["body"]: row["destination"] for batch in batches for row in batch.to_pylist()}
    assert found == {b"silent": None, b"liar": None, b"own": "queue://shop.b"}


def test_a_second_query_on_the_subscription_is_refused(place: Place, tmp_path: Path) -> None:
    with readers(DriverStreamReader, place, **NAMED, maxReconnectTime="1 s") as made:
        first = made()
        start = first.initialOffset()
        first.latestOffset(start, ALL)
        second = made(walLocation=tmp_path / "other", pollInterval="20 s")
        with pytest.raises(InvalidClientIDError, match=r"client id 'audit' is another connection's.*another query"):
            second.latestOffset(second.initialOffset(), ALL)


def test_a_connection_that_the_broker_has_not_noticed_to_be_dead_is_waited_for(place: Place, tmp_path: Path) -> None:
    held = redelivery.connect(place.url, client_id="audit")
    held.session()
    with readers(DriverStreamReader, place, **NAMED, walLocation=tmp_path / "w", maxReconnectTime="20 s") as made:
        stream = made(pollInterval="300 ms")
        start = stream.initialOffset()
        assert stream.latestOffset(start, ALL) == start  # it tries again
        held.close()
        stream.prepareForTriggerAvailableNow()
        assert stream.latestOffset(start, ALL) == start
        place.send("a", queue=TOPIC)
        found, _ = drained(stream, start)
    assert found == ["a"]


def test_unsubscribing_ends_it(place: Place) -> None:
    with readers(DriverStreamReader, place, **NAMED) as made:
        stream = made()
        stream.prepareForTriggerAvailableNow()
        stream.latestOffset(stream.initialOffset(), ALL)
    with redelivery.connect(place.url, client_id="audit") as connection, connection.session() as session:
        session.unsubscribe("audit")
        with pytest.raises(InvalidDestinationError):
            session.unsubscribe("audit")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"subscription": "other"}, r"subscription='audit', clientId='audit', and this one has subscription='other'"),
        ({"destination": "topic://more"}, "topic='topic://news', and this one has topic='topic://more'"),
        ({"shared": "true"}, "shared=False, clientId='audit', and this one has shared=True, clientId=None"),
        ({"clientId": "c"}, "clientId='audit', and this one has clientId='c'"),
        ({"selector": "a = 1"}, "selector=None, and this one has selector='a = 1'"),
        ({"destination": "orders", "subscription": None}, "subscription='audit', and this one has none"),
    ],
)
def test_what_another_subscription_was_received_by_is_not_taken(given: dict[str, Any], said: str, place: Place) -> None:
    with readers(DriverStreamReader, place) as made:
        first = made(**NAMED)
        _ = first.epoch
        first.stop()
        other = made(**{name: value for name, value in {**NAMED, **given}.items() if value is not None})
        with pytest.raises(ConfigError) as refused:
            _ = other.epoch
        assert re.search(said, str(refused.value)), str(refused.value)
        assert "availableNow=True" in str(refused.value)
        assert "'audit' stays at the broker" in str(refused.value)
        again = made(**NAMED)
        _ = again.epoch


@pytest.mark.parametrize(
    ("before", "now", "fits"),
    [
        ("orders", "orders", True),
        ("orders", "orders,invoices", True),
        ("orders,invoices", "invoices", True),
        ("orders.eu", "orders.>", True),
        ("orders.*", "orders.eu", True),
        ("orders", "invoices", False),
        ("orders.*", "invoices.eu", False),
    ],
)
def test_queues_may_come_and_go_while_one_stays(before: str, now: str, fits: bool, place: Place) -> None:
    for queues, ok in ((before, True), (now, fits)):
        given = {"url": place.url, "walLocation": str(place.folder), "destinations": queues}
        stream = DriverStreamReader(SourceOptions.parse(given))
        try:
            if ok:
                _ = stream.epoch
            else:
                with pytest.raises(ConfigError, match=r"belongs to a query of .* a walLocation of its own"):
                    _ = stream.epoch
        finally:
            stream.stop()


CANNOT = [
    ("rabbitmq", "stomp", {**NAMED}, "RabbitMQ.* has no durable subscriptions"),
    ("rabbitmq", "amqp", {**NAMED}, "RabbitMQ.* has no durable subscriptions"),
    ("rabbitmq", "stomp", {"destination": "orders.>"}, "has no consumers of a pattern of queues"),
    ("rabbitmq", "stomp", {"destination": "orders", "selector": "a = 1"}, "has no selectors"),
    ("activemq", "amqp", {**NAMED, "shared": "true"}, "has no shared durable subscriptions"),
    ("artemis", "amqp", {"destinations": "orders,more.*"}, "has no consumers of a pattern of queues"),
    ("artemis", "stomp", {**NAMED, "shared": "true"}, "keeps one for a client id only: add the option clientId"),
    (
        "artemis",
        "amqp",
        {**NAMED, "shared": "true", "clientId": "c", "lanes": "2"},
        "one connection of a client id, and several are to consume: leave clientId out",
    ),
    ("hornetq", "stomp", {**NAMED}, "has no durable subscriptions: over STOMP nothing can remove"),
]


@pytest.mark.parametrize(("dialect", "protocol", "given", "said"), CANNOT)
def test_what_the_broker_cannot_do_is_said_at_load(
    dialect: str, protocol: str, given: dict[str, str], said: str, broker: EmbeddedBroker, tmp_path: Path
) -> None:
    url = getattr(broker, f"{protocol}_url")
    source = {"url": url, "walLocation": str(tmp_path), "dialect": f"{dialect}!", **given}
    with pytest.raises(UnsupportedError, match=said):
        check_broker(SourceOptions.parse(source))


def test_a_broker_that_is_away_is_not_waited_for_at_load(place: Place) -> None:
    place.broker.close()
    check_broker(place.options(**NAMED))


def test_an_executor_plans_nothing_for_what_the_broker_cannot_do(place: Place) -> None:
    given = {**NAMED, "shared": "true", "receiver": "executor", "dialect": "activemq!"}
    with readers(ExecutorStreamReader, place, **given) as made:
        stream = made()
        with pytest.raises(UnsupportedError, match="has no shared durable subscriptions"):
            stream.latestOffset(stream.initialOffset(), ALL)
