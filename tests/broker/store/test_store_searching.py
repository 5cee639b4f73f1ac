"""A consumer that wants little of a long stored queue: a page of it is in memory at a time, other clients are served
between two pages, and everybody is given what a queue in memory would give.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.broker.engine.bench import Box
from tests.broker.store.turns import LONG, NUMBERS, PAGE, RED, SELECTS_RED, Turns

import redelivery
from redelivery.broker import EmbeddedBroker
from redelivery.broker.engine.stored import END_OF_QUEUE
from redelivery.broker.engine.subscriptions import Subscription
from redelivery.broker.store.sqlite import SqliteStore
from redelivery.model.destinations import Queue, SubscriptionName, Topic
from redelivery.model.selectors.selector import Selector


class TestSelectors:
    def test_a_match_at_the_end_is_found_a_page_at_a_time(self, bench: Turns) -> None:
        bench.send(*NUMBERS)
        bench.send("wanted", **RED)
        _, box = bench.consumer(selector=SELECTS_RED)
        assert not box, "not in the call in which it came"
        assert bench.settle() >= LONG // PAGE - 1
        assert box.bodies() == ["wanted"]
        assert bench.peak <= 2 * PAGE + 1
        assert bench.held("q") == [*NUMBERS, "wanted"]

    def test_another_client_is_served_between_two_pages(self, bench: Turns) -> None:
        bench.send(*NUMBERS)
        bench.send("wanted", **RED)
        _, other = bench.consumer("other")
        searching, box = bench.consumer(selector=SELECTS_RED)
        read = bench.engine.queues["q"].front
        bench.send("x", to="other")
        bench.send("y", to="q")
        assert (other.bodies(), bench.engine.queues["q"].front) == (["x"], read), (
            "it does not read for the searching one"
        )
        assert bench.engine.searches(searching)
        bench.settle()
        assert box.bodies() == ["wanted"]
        assert not bench.engine.searches(searching)

    @pytest.mark.parametrize("selector", [None, "colour IS NULL"])
    def test_what_it_has_passed_is_for_the_next_consumer_in_order(self, bench: Turns, selector: str | None) -> None:
        bench.send(*NUMBERS)
        bench.consumer(selector=SELECTS_RED)
        bench.settle()
        bench.send("more")
        _, box = bench.consumer(prefetch=3, selector=selector)
        bench.settle()
        assert bench.all_of(box) == [*NUMBERS, "more"]
        assert bench.peak <= 3 * PAGE

    def test_a_full_consumer_is_given_later_what_others_have_passed(self, bench: Turns) -> None:
        _, full = bench.consumer(prefetch=1)
        _, picky = bench.consumer(prefetch=1, selector="n < 50")
        for number in NUMBERS:
            bench.send(number, properties={"n": int(number)})
        bench.consumer(selector=SELECTS_RED)
        bench.settle()
        got: dict[str, list[object]] = {"full": [], "picky": []}
        while full or picky:
            got["full"] += bench.acknowledge(full)
            got["picky"] += bench.acknowledge(picky)
        assert sorted(map(int, map(str, got["full"] + got["picky"]))) == list(range(LONG))
        assert all(found == sorted(found, key=lambda each: int(str(each))) for found in got.values())
        assert {str(each) for each in got["picky"]}.isdisjoint(map(str, range(50, 100)))
        assert bench.peak <= 3 * PAGE

    def test_what_came_back_to_a_full_consumer_stays_its_own(self, bench: Turns) -> None:
        _, failed = bench.consumer(prefetch=1, selector="JMSXDeliveryCount > 1")
        bench.send(*NUMBERS)
        bench.settle()
        first, _ = bench.consumer(prefetch=LONG)
        bench.settle()
        bench.consumer(selector=SELECTS_RED)
        bench.engine.unsubscribe(first, 0, all_seen=True)
        bench.settle()
        assert bench.all_of(failed) == NUMBERS

    def test_arrivals_are_given_while_much_is_passed(self, bench: Turns) -> None:
        _, box = bench.consumer(selector=SELECTS_RED)
        for number in NUMBERS:
            bench.send(number)
            bench.send(f"red {number}", **RED)
        bench.settle()
        assert bench.all_of(box) == [f"red {number}" for number in NUMBERS]
        assert bench.peak <= 2 * PAGE + LONG, "and what is in flight"
        assert len(bench.engine.queues["q"].entries) <= 2 * PAGE

    def test_a_count_is_kept_by_what_is_left_to_the_store(self, bench: Turns) -> None:
        bench.send(*NUMBERS)
        first, box = bench.consumer(prefetch=LONG)
        bench.settle()
        dispatches = box.take()
        bench.engine.mark_seen(dispatches, 0)
        bench.begin = bench.engine.begin  # type: ignore[method-assign]  # nothing of it is written yet
        bench.engine.unsubscribe(first, 0, all_seen=False)
        bench.consumer(selector=SELECTS_RED)
        bench.settle()
        assert len(bench.engine.queues["q"].entries) <= PAGE
        _, again = bench.consumer(prefetch=LONG)
        bench.settle()
        del bench.begin
        bench.begin()
        assert [(each.message.body, each.count) for each in again] == [(number, 2) for number in NUMBERS]

    def test_what_a_consumer_refused_does_not_come_back_to_it(self, bench: Turns) -> None:
        bench.send(*NUMBERS)
        consumer, box = bench.consumer(prefetch=1)
        (refused,) = box.take()
        queue = bench.engine.queues["q"]
        queue.refuse(refused.entry, consumer)
        bench.engine.release([refused], 0)
        bench.settle()
        found = bench.all_of(box)
        assert found == NUMBERS[1:]
        assert bench.held("q") == ["0"]

    def test_a_browser_sees_all_in_order(self, bench: Turns) -> None:
        bench.send(*NUMBERS)
        _, taken = bench.consumer(prefetch=3)
        bench.consumer(selector=SELECTS_RED)
        bench.settle()
        assert taken.bodies() == NUMBERS[:3]
        box = Box()
        browser = Subscription(Queue("q"), box, prefetch=2 * LONG)
        bench.engine.browse(browser)
        bench.engine.start(browser, 0)
        bench.settle()
        assert box.bodies()[:-1] == NUMBERS

    @pytest.mark.parametrize("selector", [SELECTS_RED, "colour = 'blue'"])
    def test_a_browser_that_selects_is_shown_a_page_at_a_time(self, bench: Turns, selector: str) -> None:
        bench.send(*NUMBERS)
        bench.send("wanted", **RED)
        box = Box()
        browser = Subscription(Queue("q"), box, prefetch=5)
        bench.engine.browse(browser, selector=Selector(selector))
        bench.engine.start(browser, 0)
        assert not box, "not in the call in which it came"
        bench.send("x", to="other")
        assert not box, "another client's call does not read for it"
        assert bench.settle() >= LONG // PAGE - 2
        found = box.take()
        assert found.pop().message is END_OF_QUEUE
        assert [each.message.body for each in found] == (["wanted"] if selector == SELECTS_RED else [])
        assert bench.peak <= 2 * PAGE, "it brings nothing into the queue"

    def test_a_browser_that_has_gone_is_read_nothing(self, bench: Turns, monkeypatch: pytest.MonkeyPatch) -> None:
        bench.send(*NUMBERS)
        browser = Subscription(Queue("q"), Box(), prefetch=5)
        bench.engine.browse(browser, selector=Selector(SELECTS_RED))
        bench.engine.start(browser, 0)
        bench.engine.unsubscribe(browser, 0, all_seen=False)
        monkeypatch.setattr(SqliteStore, "page", None)
        assert bench.settle() <= 1

    def test_a_durable_subscription_goes_with_what_is_left_to_the_store(self, bench: Turns) -> None:
        name = SubscriptionName("s", durable=True, shared=True)
        for wanted in ("first", "second"):
            subscription = Subscription(Topic("t"), Box(), prefetch=1, named=name)
            bench.engine.subscribe(subscription)
            bench.engine.start(subscription, 0)
            bench.send(*NUMBERS, to="topic://t", group_id=wanted)
            other = Subscription(Topic("t"), Box(), prefetch=5, named=name)
            bench.engine.subscribe(other)
            bench.engine.start(other, 0)
            bench.settle()
            for each in (subscription, other):
                bench.engine.unsubscribe(each, 0, all_seen=False)
        assert sum(queue.paged_out for queue in bench.engine.queues.values()) > LONG
        bench.engine.remove_subscription("s", None)
        bench.store.close()
        again = SqliteStore(bench.store.path, synchronous="off")
        assert not again.restore().queues
        bench.store = again


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    made = SqliteStore.__init__

    def init(self: SqliteStore, path: Path, **options: Any) -> None:
        made(self, path, **{**options, "synchronous": "off", "window": PAGE})

    monkeypatch.setattr(SqliteStore, "__init__", init)


@pytest.mark.usefixtures("small")
class TestClients:
    @pytest.fixture
    def broker(self, tmp_path: Path) -> Iterator[EmbeddedBroker]:
        with EmbeddedBroker("long", store=tmp_path / "shop.db", stomp_port=0, amqp_port=0) as broker:
            for _ in range(5 * PAGE):
                broker.send("q", "x")
            broker.send("q", "wanted", properties={"colour": "red"})
            yield broker

    @pytest.mark.parametrize("url", ["vm_url", "stomp_url", "amqp_url"])
    def test_a_send_of_another_client_is_answered_between_two_pages(
        self, broker: EmbeddedBroker, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begun, on = threading.Event(), threading.Event()
        ring, pages = broker.core._alarm._ring, 0
        page = SqliteStore.page

        def counted(self: SqliteStore, *options: Any) -> Any:
            nonlocal pages
            pages += 1
            begun.set()
            return page(self, *options)

        def held_up() -> None:
            on.wait(30)
            ring()

        monkeypatch.setattr(SqliteStore, "page", counted)
        monkeypatch.setattr(broker.core._alarm, "_ring", held_up)
        with redelivery.connect(getattr(broker, url)) as connection, redelivery.connect(broker.vm_url) as other:
            consumer = connection.session().consumer("q", selector=SELECTS_RED)
            assert begun.wait(10)
            with other.session() as session:
                session.producer("other").send("served")
                found = session.consumer("other").receive(timeout=5)
                assert found is not None
            assert (found.body, pages) == ("served", 1)
            on.set()
            message = consumer.receive(timeout=10)
            assert message is not None
            assert message.body == "wanted"

    @pytest.mark.parametrize("url", ["vm_url", "stomp_url", "amqp_url"])
    def test_a_send_is_answered_between_two_pages_of_a_browser(
        self, broker: EmbeddedBroker, url: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begun, served, sender = threading.Event(), threading.Event(), threading.Thread(target=lambda: send())
        page, call, pages = SqliteStore.page, broker.core.call, 0
        before: list[int] = []  # the send was answered

        def counted(self: SqliteStore, *options: Any) -> Any:
            nonlocal pages
            pages += 1
            begun.set()
            return page(self, *options)

        def sender_first(function: Any) -> Any:
            if pages and threading.current_thread() is not sender:
                served.wait(100)
            return call(function)

        def send() -> None:
            with redelivery.connect(broker.vm_url) as connection, connection.session() as session:
                producer = session.producer("other")
                begun.wait(100)
                producer.send("served")
                before.append(pages)
                served.set()

        monkeypatch.setattr(SqliteStore, "page", counted)
        monkeypatch.setattr(broker.core, "call", sender_first)
        sender.start()
        with redelivery.connect(getattr(broker, url)) as connection, connection.session() as session:
            found = [message.body for message in session.browser("q", selector=SELECTS_RED)]
        sender.join(100)
        assert (before, found) == ([1], ["wanted"])
        assert pages > 3, "there was more to be read"

    @pytest.mark.parametrize("url", ["vm_url", "stomp_url", "amqp_url"])
    @pytest.mark.parametrize("prefetch", [3, 100])
    def test_a_browser_finds_what_its_selector_matches(self, broker: EmbeddedBroker, url: str, prefetch: int) -> None:
        with redelivery.connect(getattr(broker, url), prefetch=prefetch) as connection, connection.session() as session:
            for selector, bodies in (
                (None, ["x"] * 5 * PAGE + ["wanted"]),
                ("colour IS NULL", ["x"] * 5 * PAGE),
                (SELECTS_RED, ["wanted"]),
                ("colour = 'blue'", []),
            ):
                with session.browser("q", selector=selector) as browser:
                    assert [message.body for message in browser] == bodies

    def test_a_browser_ends_with_its_connection(self, broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch) -> None:
        begun, raised = threading.Event(), threading.Event()
        page = SqliteStore.page

        def counted(self: SqliteStore, *options: Any) -> Any:
            begun.set()
            return page(self, *options)

        monkeypatch.setattr(SqliteStore, "page", counted)
        monkeypatch.setattr(broker.core._alarm, "_ring", lambda: None)
        connection = redelivery.connect(broker.vm_url)

        def browse() -> None:
            try:
                list(connection.session().browser("q", selector=SELECTS_RED))
            except redelivery.JMSError:
                raised.set()

        thread = threading.Thread(target=browse)
        thread.start()
        assert begun.wait(10)
        broker.close()
        thread.join(10)
        assert raised.is_set()
        connection.close()

    @pytest.mark.parametrize("prefetch", [0, 1])
    def test_a_drain_over_amqp_waits_for_the_end_of_the_search(self, broker: EmbeddedBroker, prefetch: int) -> None:
        with redelivery.connect(broker.amqp_url) as connection, connection.session() as session:
            consumer = session.consumer("q", selector=SELECTS_RED, prefetch=prefetch)
            message = consumer.receive(timeout=0)
            assert message is not None
            assert message.body == "wanted"
            assert consumer.receive(timeout=0) is None


def test_credit_is_used_by_what_is_found(bench: Turns) -> None:
    bench.send(*NUMBERS, "a", "b", **RED)
    _, box = bench.credited(LONG + 1)
    bench.settle()
    assert box.bodies() == [*NUMBERS, "a"]
