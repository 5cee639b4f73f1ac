"""Looks at queues: what two of them say together, and what each broker says in one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import redelivery
from redelivery import InvalidDestinationError, UnsupportedError
from redelivery.broker import EmbeddedBroker
from redelivery.operate.watching.broker import BrokerWatch
from redelivery.operate.watching.rates import Look, Sample, chosen, dead_letters, rows, unsaid


def a_look(at: float, *samples: Sample, **what: object) -> Look:
    return Look(at, datetime.now(UTC), "a broker", {each.name: each for each in samples}, **what)  # type: ignore[arg-type]


def sample(name: str, messages: int | None, came: int | None = 0, left: int | None = 0, dead: bool = False) -> Sample:
    return Sample(name, {"messages": messages}, {"in": came, "out": left}, dead)


def rates(before: Sample, after: Sample, seconds: float = 2.0) -> tuple[object, object, object]:
    (row,) = rows(a_look(10, before), a_look(10 + seconds, after))
    return row.numbers["change"], row.numbers["in"], row.numbers["out"]


def test_rates_are_differences_per_second() -> None:
    assert rates(sample("q", 5, 100, 95), sample("q", 7, 110, 103)) == (1, 5, 4)
    assert rates(sample("q", 5), sample("q", 5)) == (0, 0, 0)


def test_there_is_no_rate_of_one_look_or_of_a_new_queue() -> None:
    (row,) = rows(None, a_look(1, sample("q", 5, 1, 1)))
    assert (row.numbers["messages"], row.numbers["change"], row.numbers["in"]) == (5, None, None)
    (row,) = rows(a_look(1), a_look(2, sample("q", 5, 1, 1)))
    assert (row.numbers["change"], row.numbers["in"]) == (None, None)
    (row,) = rows(a_look(1, sample("q", 5)), a_look(1, sample("q", 5)))  # at the same time
    assert row.numbers["in"] is None


def test_counts_that_begin_anew_with_the_broker_are_not_negative_rates() -> None:
    assert rates(sample("q", 5, 100, 95), sample("q", 3, 4, 1)) == (-1, 2, 0.5)


def test_a_rate_of_zero_that_the_depth_contradicts_is_not_known() -> None:
    assert rates(sample("q", 0, 4, 4), sample("q", 2, 4, 4)) == (1, None, 0)  # dead-lettered by the broker
    assert rates(sample("q", 4, 4, 0), sample("q", 0, 4, 0)) == (-2, 0, None)  # expired
    assert rates(sample("q", 4, None, None), sample("q", 0, None, None)) == (-2, None, None)


def test_the_largest_come_first_and_what_is_not_known_last() -> None:
    found = rows(None, a_look(1, sample("b", 1), sample("a", 1), sample("c", None), sample("d", 7)))
    assert [row.name for row in chosen(found, (), "messages")] == ["d", "a", "b", "c"]
    assert [row.name for row in chosen(found, ("b", "[cd]", "?"), "name")] == ["a", "b", "c", "d"]
    assert [row.name for row in chosen(found, ("b", "[cd]"), "name")] == ["b", "c", "d"]
    assert chosen(found, ("x*",), "name") == []


def test_what_is_missing_has_one_line_why() -> None:
    why = {"in": "it counts nothing", "out": "it counts nothing", "retries": "never seen"}
    found = a_look(1, sample("q", 1, None, None), why=why, unchecked=("the rest",))
    shown = rows(None, found)
    said = ["rates: from the second look on", "in/s, out/s: it counts nothing", "the rest"]
    assert unsaid(found, shown, {"in": "in/s", "out": "out/s"}, first=True) == said
    counted = a_look(2, sample("q", 1, 5, 5), why=why)
    assert unsaid(counted, rows(None, counted), {}, first=True) == ["rates: from the second look on"]
    new = rows(a_look(1), counted)
    assert unsaid(counted, new, {}, first=False) == []
    known = a_look(3, sample("q", 1, 5, 5), why=why)
    assert unsaid(known, rows(counted, known), {}, first=False) == []
    more = a_look(4, sample("q", 3, 5, 5), why=why)
    assert unsaid(more, rows(known, more), {}, first=False) == ["in: it counts nothing"]


def test_dead_letters_are_those_of_all_their_queues() -> None:
    assert dead_letters(a_look(1, sample("DLQ", 3, dead=True), sample("q", 9), sample("DLA", 1, dead=True))) == 4
    assert dead_letters(a_look(1, sample("DLQ", None, dead=True), sample("q", 9))) is None
    assert dead_letters(a_look(1, sample("q", 9))) == 0
    assert dead_letters(a_look(1, facts={"dead_letters": 5})) == 5


@pytest.mark.parametrize("protocol", ["vm", "stomp", "amqp"])
def test_the_embedded_broker_says_all_of_its_queues(protocol: str) -> None:
    if protocol == "amqp":
        pytest.importorskip("proton")
    ports = {} if protocol == "vm" else {f"{protocol}_port": 0}
    with EmbeddedBroker(f"watched-{protocol}", **ports) as broker:  # type: ignore[arg-type]
        for number in range(5):
            broker.send("orders", str(number))
        broker.send("ActiveMQ.DLQ", "lost")
        url = broker.vm_url if protocol == "vm" else broker.urls[protocol]
        with redelivery.connect(url) as connection, connection.session("individual") as session:
            watch = BrokerWatch(connection)
            consumer = session.consumer("orders", prefetch=1)
            message = consumer.receive(5)
            assert message is not None
            message.acknowledge()
            assert consumer.receive(5)
            found = watch.poll_once()
            orders = found.samples["orders"]
            in_flight = orders.now["in_flight"]
            assert in_flight in (1, 2)  # of a window of one, or what is ahead of it
            assert orders.now == {"messages": 4, "in_flight": in_flight, "consumers": 1, "retries": 0}
            assert orders.counted == {"in": 5, "out": 1}
            assert (orders.dead, found.samples["ActiveMQ.DLQ"].dead) == (False, True)
            assert dead_letters(found) == 1
            assert set(found.samples) == {"orders", "ActiveMQ.DLQ"}
            broker.send("orders", "one more")
            before = {row.name: row for row in rows(found, watch.poll_once())}["orders"].numbers
            assert (before["messages"], before["out"]) == (5, 0)
            assert before["in"] == before["change"]
            assert (before["in"] or 0) > 0


def test_a_broker_that_lists_nothing_wants_names_and_says_what_else() -> None:
    with (
        EmbeddedBroker("nameless", stomp_port=0) as broker,
        redelivery.connect(broker.stomp_url, dialect="activemq") as connection,
    ):
        broker.send("orders", "x")
        with pytest.raises(UnsupportedError, match=r"lists no queues .* by --queue, or .* --management http://"):
            BrokerWatch(connection)
        with pytest.raises(UnsupportedError):
            BrokerWatch(connection, ["orders*"])
        with pytest.raises(InvalidDestinationError, match="topic"):
            BrokerWatch(connection, ["topic://news"])
        found = BrokerWatch(connection, ["orders"]).poll_once()
        assert found.samples["orders"].now == {"messages": 1, "in_flight": None, "consumers": None, "retries": None}
        assert found.unchecked


def test_what_is_asked_of_the_embedded_broker_is_kept_on_no_queue() -> None:
    with EmbeddedBroker("asked", stomp_port=0) as broker, redelivery.connect(broker.stomp_url) as connection:
        BrokerWatch(connection).poll_once()
        assert broker.queue_depth("redelivery.statistics") == 0
        with connection.session() as session:  # what asks for no answer is a message like others
            session.producer("redelivery.statistics").send("x")
        assert broker.queue_depth("redelivery.statistics") == 1
