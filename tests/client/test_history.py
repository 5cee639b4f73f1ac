"""What a connection has delivered is counted over its losses: a message that ends it each time comes to its limit."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from random import Random
from typing import Any

import pytest
from tests.client.gated import QUICK, Site
from tests.client.ledger.fakes import FakeDelivery
from tests.client.shell import SOON, eventually, receive

import redelivery
from redelivery import (
    Connection,
    ConnectionLostError,
    JMSError,
    Message,
    Queue,
    RedeliveryPolicy,
    SharedDeadLetterStrategy,
    Topic,
    TransactionRolledBackError,
)
from redelivery.client.ledger import ConsumerState
from redelivery.client.ledger.history import History, trace
from redelivery.client.ledger.state import HELD
from redelivery.model.destinations import SubscriptionName
from redelivery.transports.delivery import Link, LinkSpec

DEAD = "dead"
MODES = ("transacted", "client", "individual", "auto", "dups_ok")
LOST = ConnectionLostError("cut")


class Cut:
    """A connection that is cut by the handler of its messages."""

    def __init__(self, site: Site, opened: ExitStack, limit: int = 1, **options: Any) -> None:
        self.site = site
        policy = RedeliveryPolicy(
            maximum_redeliveries=limit,
            initial_redelivery_delay=0.01,
            redelivery_delay=0.01,
            **options.pop("policy", {}),
        )
        self.connection: Connection = opened.enter_context(
            redelivery.connect(
                site.url,
                reconnect=QUICK,
                redelivery_policy=policy,
                dead_letter_strategy=SharedDeadLetterStrategy(DEAD),
                prefetch=options.pop("prefetch", 1),
                **options,
            )
        )
        self.counts: list[int] = []
        self.good: list[str] = []

    def handle(self, message: Message) -> None:
        if message.body != "cuts":
            self.good.append(message.body)
            return
        self.counts.append(message.delivery_count)
        epoch = self.connection.epoch
        self.site.gate.shut(0.0)
        eventually(lambda: self.connection.epoch > epoch)

    @property
    def dead(self) -> list[Message]:
        return list(self.site.broker.messages(DEAD))

    def finished(self) -> bool:
        return bool(self.good) and not self.site.broker.messages("orders")

    def pull(self, mode: str) -> None:
        session = self.connection.session(mode)
        consumer = session.consumer("orders")
        while not self.finished():
            message = consumer.receive(timeout=0.1)
            if message is None:
                continue
            self.handle(message)
            with suppress(TransactionRolledBackError):
                session.commit() if session.transacted else message.acknowledge()

    def push(self, mode: str) -> None:
        self.listen(mode, self.handle)
        eventually(self.finished)

    def listen(self, mode: str, handle: Callable[[Message], None]) -> None:
        session = self.connection.session(mode)

        def callback(message: Message) -> None:
            try:
                handle(message)
                session.commit() if session.transacted else message.acknowledge()
            except (ValueError, TransactionRolledBackError) as error:
                if mode not in ("transacted", "client"):
                    raise
                session.rollback(error) if session.transacted else session.recover(error)

        session.consumer("orders").listen(callback)

    def contain(self, mode: str) -> None:
        with self.connection.listener_container("orders", self.handle, ack_mode=mode):
            eventually(self.finished)


@pytest.mark.parametrize(
    ("way", "mode"),
    [*((way, mode) for way in ("pull", "push") for mode in MODES), ("contain", "transacted"), ("contain", "client")],
)
def test_a_message_that_ends_its_connection_each_time_is_dead_lettered(
    site: Site, opened: ExitStack, way: str, mode: str
) -> None:
    for body in ("cuts", "good"):
        site.broker.send("orders", body)
    cut = Cut(site, opened)
    getattr(cut, way)(mode)
    assert cut.good == ["good"]
    if way == "pull" and mode in ("auto", "dups_ok"):
        assert len(cut.counts) <= 2  # acknowledged before it is handed over, so that it may be gone
        return
    assert cut.counts == [1, 2]
    (letter,) = cut.dead
    assert letter.body == "cuts"
    assert letter.dead_letter is not None
    assert letter.dead_letter.count == 2
    assert "Dispatch[2]" in str(letter.dead_letter.cause) or "dispatch[2]" in str(letter.dead_letter.cause)
    assert "closed the connection" in str(letter.properties["dlqDeliveryFailureCause"])
    passport = letter.dead_letter.passport
    assert passport is not None
    assert passport.exception == "redelivery.ConnectionLostError"
    assert [each.number for each in passport.attempts] == [1, 2]


# What is prefetched is counted by the broker at each loss, and that check goes by the broker's count.
CHECKED = {"policy": {"pre_dispatch_check": True}, "prefetch": 0}


@pytest.mark.parametrize("options", [CHECKED, {"non_blocking_redelivery": True}])
def test_whatever_the_options(site: Site, opened: ExitStack, options: dict[str, Any]) -> None:
    for body in ("cuts", "good"):
        site.broker.send("orders", body)
    cut = Cut(site, opened, limit=2, **options)
    cut.contain("transacted")
    assert cut.good == ["good"]
    assert cut.counts == [1, 2, 3]
    assert [each.body for each in cut.dead] == ["cuts"]


def test_what_failed_before_is_counted_with_what_was_lost(site: Site, opened: ExitStack) -> None:
    site.broker.send("orders", "tried")
    cut = Cut(site, opened, limit=3)
    session = cut.connection.session("transacted")
    consumer = session.consumer("orders")
    counts = []
    for lost in (False, True, False, False):
        message = receive(consumer)
        counts.append(message.delivery_count)
        if lost:
            epoch = cut.connection.epoch
            site.gate.shut(0.0)
            eventually(lambda epoch=epoch: cut.connection.epoch > epoch)  # type: ignore[misc]  # bound at once
        session.rollback(ValueError("bad order"))
    assert counts == [1, 2, 3, 4]
    eventually(lambda: cut.dead)
    assert "bad order" in str(cut.dead[0].properties["dlqDeliveryFailureCause"])


def test_the_log_says_after_how_many_deliveries_and_what_ended_them(
    site: Site, opened: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    for body in ("cuts", "good"):
        site.broker.send("orders", body)
    Cut(site, opened).contain("transacted")
    (line,) = [each for each in caplog.messages if "dead-lettered" in each]
    assert "dead-lettered after 2 deliveries (limit 1): redelivery.ConnectionLostError: " in line


def test_a_loss_that_its_dead_letter_meets_is_not_the_cause(
    site: Site, opened: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    site.broker.send("orders", "bad")
    session = Cut(site, opened, limit=0).connection.session("transacted")
    consumer = session.consumer("orders")
    receive(consumer)
    site.gate.deafen()
    threading.Timer(0.1, site.gate.shut, (0.0,)).start()
    session.rollback(ValueError("bad order"))
    assert consumer.receive(timeout=0.5) is None
    (dead,) = site.broker.messages(DEAD)
    assert "ValueError: bad order" in str(dead.properties["dlqDeliveryFailureCause"])
    perhaps, done = [each for each in caplog.messages if "dead-lettered after 1 delivery (limit 0): ValueError" in each]
    assert ("perhaps not" in perhaps, "perhaps not" in done) == (True, False)


def test_what_waits_for_its_redelivery_is_counted_too(site: Site, opened: ExitStack) -> None:
    """Its wait is over with the connection: the broker has it again, and another session may get it."""
    site.broker.send("orders", "waits")
    policy = RedeliveryPolicy(maximum_redeliveries=1, initial_redelivery_delay=60.0, redelivery_delay=60.0)
    cut = Cut(site, opened)
    session = cut.connection.session("transacted")
    consumer = session.consumer("orders", redelivery_policy=policy)
    receive(consumer)
    session.rollback()
    epoch = cut.connection.epoch
    site.gate.shut(0.0)
    eventually(lambda: cut.connection.epoch > epoch)
    assert receive(consumer).delivery_count == 2


def test_a_replayed_dead_letter_and_what_was_settled_begin_anew(site: Site, opened: ExitStack) -> None:
    cut = Cut(site, opened, limit=0)
    site.broker.send("orders", "cuts")
    with cut.connection.listener_container("orders", cut.handle):
        eventually(lambda: cut.dead and not cut.connection._core.shared.history.places)
        site.broker.send("orders", "good")
        eventually(lambda: cut.good)
    assert cut.counts == [1]


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("seed", range(3))
def test_a_random_program_exceeds_no_limit(site: Site, opened: ExitStack, seed: int, lanes: int) -> None:
    """Each message cuts the connection as often as it says, or fails, or is good; several sessions serve it."""
    random = Random(seed)  # noqa: S311  # of a test's program
    plan = {
        f"m{number}": random.choice(("good", "good", "cuts", "cuts once", "fails", "mixed")) for number in range(12)
    }
    cut = Cut(site, opened, limit=2, prefetch=random.choice((1, 10)), non_blocking_redelivery=random.random() < 0.5)
    had: Counter[str] = Counter()
    lock = threading.Lock()

    def handle(message: Message) -> None:
        fate = plan[message.body]
        with lock:
            had[message.body] += 1
            times = had[message.body]
            cuts = fate == "cuts" or (fate == "cuts once" and times == 1) or (fate == "mixed" and random.random() < 0.5)
        if cuts:
            site.gate.shut(0.0)
            return
        if fate in ("fails", "mixed"):
            raise ValueError(fate)
        done.add(message.body)

    done: set[str] = set()
    for body in plan:
        site.broker.send("orders", body)
    for _ in range(lanes):
        cut.listen(random.choice(MODES), handle)

    def all_has_come_to_its_end() -> bool:
        """Also what an aborted transaction hides for a moment."""
        return not site.broker.messages("orders") and done | {letter.body for letter in cut.dead} == set(plan)

    eventually(all_has_come_to_its_end, within=30.0)
    assert max(had.values()) <= 3


def test_what_is_acknowledged_by_itself_begins_anew(site: Site, opened: ExitStack) -> None:
    connection = opened.enter_context(redelivery.connect(site.url, reconnect=QUICK))
    consumer, history = connection.session("individual").consumer("orders"), connection._core.shared.history
    site.broker.send("orders", "m")
    assert consumer.receive(SOON) is not None
    site.gate.shut(0.0)
    message = consumer.receive(SOON)
    assert message is not None
    assert history.places
    message.acknowledge()
    assert not history.places


def test_a_consumer_that_the_broker_ends_loses_no_count_either(site: Site, opened: ExitStack) -> None:
    site.broker.send("orders", "had")
    cut = Cut(site, opened)
    session = cut.connection.session("client")
    consumer = session.consumer("orders")
    assert receive(consumer).delivery_count == 1
    consumer._core.on_link_closed(consumer._state.link, JMSError("ended"))
    with pytest.raises(JMSError, match="ended"):
        consumer.receive(timeout=SOON)
    assert list(cut.connection._core.shared.history.places) == [Queue("orders")]


class TestTheHistory:
    def link(
        self,
        destination: Queue | Topic = Queue("orders"),  # noqa: B008  # a value
        **options: Any,
    ) -> Link[ConsumerState]:
        return Link(LinkSpec(destination, **options))

    def lose(self, history: History, link: Link[ConsumerState], *names: str) -> None:
        history.note([trace(FakeDelivery(link, name), had=True) for name in names], LOST)

    def again(self, history: History, link: Link[ConsumerState], name: str, wire_count: int = 1) -> tuple[int, int]:
        delivery = FakeDelivery(link, name, wire_count=wire_count)
        history.mark([delivery])
        return delivery.earlier, delivery.wire_count() + delivery.redeliveries

    def test_is_bounded_for_each_destination_and_the_oldest_is_forgotten(self) -> None:
        history, link, other = History(most=2), self.link(), self.link(Queue("other"))
        self.lose(history, other, "a")
        self.lose(history, link, "a", "b", "a", "c")
        assert [self.again(history, link, name)[0] for name in "abc"] == [1, 0, 1]
        assert self.again(history, other, "a") == (1, 2)

    def test_counts_where_the_wire_knows_less(self) -> None:
        history, link = History(), self.link()
        for expected in (1, 2, 3):
            delivery = FakeDelivery(link, "m", wire_count=2)
            history.mark([delivery])
            assert delivery.wire_count() + delivery.redeliveries == max(2, expected)
            history.note([trace(delivery, had=True)], LOST)
        assert self.again(history, link, "m", wire_count=9) == (3, 9)

    def test_is_the_same_for_one_that_is_noted_twice(self) -> None:
        history, delivery = History(), FakeDelivery(self.link(), "m")
        delivery.state = HELD
        history.note([trace(delivery), trace(delivery)], LOST)
        assert self.again(history, delivery.link, "m")[0] == 1

    def test_knows_nothing_of_what_does_not_come_again(self) -> None:
        history = History()
        self.lose(history, self.link(Topic("news")), "m")
        self.lose(history, self.link(), "")  # no id
        assert not history.places or not any(history.places.values())

    def test_keeps_the_subscriptions_to_a_topic_apart(self) -> None:
        history = History()
        one, two = (
            self.link(Topic("news"), subscription=SubscriptionName(name, durable=True, shared=False)) for name in "ab"
        )
        self.lose(history, one, "m")
        assert [self.again(history, each, "m")[0] for each in (one, two)] == [1, 0]

    def test_forgets_what_is_settled(self) -> None:
        history, link = History(), self.link()
        self.lose(history, link, "m")
        history.forget([FakeDelivery(link, "other")])
        assert self.again(history, link, "m")[0] == 1
        history.forget([FakeDelivery(link, "m")])
        assert not history.places
