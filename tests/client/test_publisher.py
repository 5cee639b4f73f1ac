"""`connection.publisher()`: sends from any thread."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.client.shell import SOON, Bench, receive
from tests.conformance.blocking import Shell

from redelivery import AckMode, IllegalStateError, InvalidDestinationError, Message


def test_threads_send_at_the_same_time_each_in_its_order(bench: Bench, shell: Shell) -> None:
    connection = shell.connect(bench.broker.vm_url)
    with connection.publisher() as publisher:
        start = threading.Barrier(8)

        def send(thread: int) -> None:
            start.wait(SOON)
            for number in range(20):
                publisher.send({"thread": thread, "number": number}, "orders", priority=4)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(send, range(8)))
            assert shell.tasks or len(connection._core._sessions) == 8
    left = bench.left
    assert len(left) == 160
    for thread in range(8):
        assert [each["number"] for each in left if each["thread"] == thread] == list(range(20))


def test_a_session_of_a_thread_that_has_ended_is_used_again(bench: Bench) -> None:
    connection = bench.connect()
    with connection.publisher() as publisher:
        for number in range(30):
            thread = threading.Thread(target=publisher.send, args=(str(number), "orders"))
            thread.start()
            thread.join(SOON)
        assert len(connection._core._sessions) == 1
        publisher.send("mine", "orders")
        assert len(connection._core._sessions) <= 2
    assert not connection._core._sessions
    assert bench.left == [*map(str, range(30)), "mine"]


def test_it_sends_while_a_listener_runs_and_from_inside_it(bench: Bench) -> None:
    connection = bench.connect()
    session = connection.session()
    publisher = connection.publisher()
    both = threading.Event()

    def listener(message: Message) -> None:
        publisher.send(message.body, "out")
        if bench.broker.queue_depth("out") == 2:
            both.set()

    session.consumer("orders").listen(listener)
    publisher.send("one", "orders")
    publisher.send("two", "orders")
    assert both.wait(SOON)
    assert sorted(message.body for message in bench.broker.messages("out")) == ["one", "two"]


def test_options_are_a_producers(bench: Bench) -> None:
    with bench.connect().publisher() as publisher:
        sent = publisher.send(
            "x",
            "orders",
            properties={"n": 1},
            priority=9,
            ttl=60,
            correlation_id="c",
            reply_to="r",
            type="t",
            group_id="g",
        )
        assert (sent.priority, sent.correlation_id, str(sent.reply_to)) == (9, "c", "queue://r")
        with pytest.raises(InvalidDestinationError, match="has no destination"):
            publisher.send("x")
        with pytest.raises(InvalidDestinationError, match="the body comes first"):
            publisher.send("orders", "two chairs")
        with pytest.raises(TypeError, match="did you mean 'properties'"):
            publisher.send("x", "orders", headers={})  # type: ignore[call-arg]  # that is the test
    (found,) = bench.broker.messages("orders")
    assert (found.type, found.group_id, found.properties["n"]) == ("t", "g", 1)


def test_what_is_closed_says_so(bench: Bench) -> None:
    connection = bench.connect()
    publisher = connection.publisher()
    publisher.send("x", "orders")
    publisher.close()
    publisher.close()
    assert publisher.closed
    with pytest.raises(IllegalStateError, match=r"send: the publisher was closed by close\(\)"):
        publisher.send("x", "orders")
    other = connection.publisher()
    other.send("y", "orders")
    connection.close()
    with pytest.raises(IllegalStateError, match=r"the session is closed \(closed by close"):
        other.send("x", "orders")
    with pytest.raises(IllegalStateError, match="publisher: the connection is closed"):
        connection.publisher()
    assert bench.left == ["x", "y"]


def test_close_waits_for_a_send_that_is_under_way(bench: Bench) -> None:
    publisher = bench.connect().publisher()
    stop = threading.Event()
    sent: list[int] = []
    problems: list[BaseException] = []

    def send() -> None:
        while not stop.is_set():
            try:
                publisher.send(str(len(sent)), "orders")
            except IllegalStateError as error:
                problems.append(error)
                return
            sent.append(1)

    thread = threading.Thread(target=send)
    thread.start()
    while len(sent) < 20:
        stop.wait(0.001)
    publisher.close()
    thread.join(SOON)
    stop.set()
    assert len(problems) == 1
    assert len(bench.left) == len(sent)


def test_the_error_about_threads_names_it(bench: Bench) -> None:
    session = bench.connect().session(AckMode.AUTO)
    session.consumer("orders").listen(lambda _: None)
    with pytest.raises(IllegalStateError, match=r"connection\.publisher\(\)"):
        session.producer("orders").send("x")


def test_its_repr(bench: Bench) -> None:
    publisher = bench.connect().publisher()
    publisher.send("x", "orders")
    assert repr(publisher) == f"<Publisher of {bench.broker.vm_url}, 1 sessions>"
    publisher.close()
    assert repr(publisher) == f"<Publisher of {bench.broker.vm_url} closed>"
    assert receive(bench.connect().session().consumer("orders")).body == "x"
