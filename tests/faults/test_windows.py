"""The windows of each pair: the connection is cut at the very frame, another program goes on; never a loss.

A pair whose broker has transactions is atomic in each of them. Where ACKs follow the COMMIT, or dead letters are
copies without a transaction, the message is redelivered: an output or a dead letter may be there twice, unless the
broker knows the copy again.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

import pytest
from tests.conformance import blocking
from tests.conformance.blocking import Loop
from tests.conformance.pairs import DEAD_LETTERS, PAIRS, Kind, Pair
from tests.conformance.stage import SOON, Stage, bodies, receive
from tests.faults.campaign import kill_and_restart
from tests.faults.promises import PROMISES
from tests.faults.proxy import Cut, Proxy
from tests.faults.report import REPORT
from tests.faults.stored import NAME, started

import redelivery
from redelivery import AckMode, Consumer, InDoubtError, JMSError, RedeliveryPolicy, Session, TransactionRolledBackError
from redelivery.testing.brokers.real import RealBroker

ONCE = RedeliveryPolicy(maximum_redeliveries=0, initial_redelivery_delay=0.0, redelivery_delay=0.0)
# These brokers know a copy again by its duplicate id.
KNOWS_AGAIN = {"stomp-artemis", "stomp-hornetq"}


@dataclass(frozen=True, slots=True)
class Marks:
    """What a proxy sees of a protocol. ``accept``: of a delivery; ``answer``: to it or to a transaction."""

    send: bytes
    commit: bytes
    accept: bytes
    answer: bytes


# AMQP's descriptors: transfer, discharge, disposition. A SEND that looks for a queue begins otherwise.
MARKS = {
    "stomp": Marks(b"SEND\ndestination:", b"COMMIT\n", b"ACK\n", b"RECEIPT\n"),
    "amqp": Marks(b"\x00\x53\x14", b"\x00\x53\x32", b"\x00\x53\x15", b"\x00\x53\x15"),
}
REAL = [kind for kind in PAIRS.values() if kind.real]
STORED = [kind for kind in PAIRS.values() if kind.stored and kind.remote]
TRANSACTED = [kind for kind in (*STORED, *REAL) if "transactions" not in kind.cannot]
ATOMIC = [kind for kind in TRANSACTED if PROMISES[kind.name].window is None]
ACKS_LATER = [kind for kind in TRANSACTED if PROMISES[kind.name].window is not None]
WITHOUT = [kind for kind in REAL if kind not in TRANSACTED]
COPIES = [kind for kind in REAL if "dead letters" in kind.emulates]


ASYNCIO_IN_SHORT_FORM = {"stomp-activemq", "amqp-artemis"}  # the others see the same bytes from both shells


def pairs(kinds: list[Kind]) -> pytest.MarkDecorator:
    """Each over the API for threads, and over that for asyncio."""
    cases = []
    for kind in kinds:
        marks = [] if kind.name in ASYNCIO_IN_SHORT_FORM else [pytest.mark.long_form]
        cases += [pytest.param(kind, "threads", id=kind.name, marks=marks if kind.stored else [])]
        cases += [pytest.param(kind, "asyncio", id=f"{kind.name}-asyncio", marks=marks)]
    return pytest.mark.parametrize(("kind", "form"), cases)


class Bench:
    """A program that talks through the proxy, and the queues as another client sees them."""

    def __init__(self, pair: Pair, broker: RealBroker, proxy: Proxy, opened: ExitStack, form: str) -> None:
        self._loop = Loop() if form == "asyncio" else None
        if self._loop is not None:
            opened.callback(self._loop.end)
        self._broker = broker
        self._hides = PROMISES[pair.kind.name].hides is not None and broker.provider is not None
        self.marks = MARKS[pair.kind.protocol]
        self.proxy = proxy
        self.stage = Stage(pair, f"faults.windows.{uuid.uuid4().hex[:12]}", opened)
        self.target = f"{self.stage.queue}.target"
        parts = urlsplit(pair.url)
        login = f"{parts.username}:{parts.password}@" if parts.username else ""
        self._url = f"{parts.scheme}://{login}127.0.0.1:{proxy.port}"
        self._opened = opened

    def before(self, where: str, after: bytes) -> Cut:
        """Before the broker's answer to what is sent last, or before the ACK that follows that."""
        return Cut(self.marks.answer, "down", after) if where == "answer" else Cut(self.marks.accept, "up", after)

    def program(self, mode: AckMode) -> tuple[Session, Consumer]:
        """It has one message to look at."""
        self.stage.send("in")
        options: dict[str, Any] = {"redelivery_policy": ONCE, "request_timeout": 10, "close_timeout": 2}
        connection: Any = (
            redelivery.connect(self._url, **options)
            if self._loop is None
            else blocking.connect(self._loop, self._url, **options)
        )
        session = self._opened.enter_context(connection).session(mode)
        return session, session.consumer(self.stage.queue)

    def move(self) -> Session:
        """Receive it and send its output, in a transaction that is not committed."""
        session, consumer = self.program(AckMode.TRANSACTED)
        receive(consumer)
        session.producer(self.target).send("out")
        return session

    def poison(self, mode: AckMode, cut: Cut) -> None:
        """Receive it and give it up; the connection is cut at that."""
        session, consumer = self.program(mode)
        receive(consumer)
        self.proxy.cut(cut)
        with suppress(JMSError):
            session.rollback() if session.transacted else session.recover()
            while consumer.receive(timeout=SOON) is not None:
                pass
        assert self.proxy.happened.wait(SOON)

    def give_up_again(self, mode: AckMode, within: float = SOON) -> bool:
        """Another program: whether the message was redelivered; it is given up there."""
        if self._give_up(mode, within):
            return True
        if not self._hides:
            return False
        self._start_again()
        return self._give_up(mode, within)

    def _give_up(self, mode: AckMode, within: float) -> bool:
        session, consumer = self.stage.consuming(mode, redelivery_policy=ONCE)
        again = consumer.receive(timeout=within) is not None
        session.rollback() if session.transacted else session.recover()
        assert consumer.receive(timeout=0.5) is None
        session.close()
        return again

    def on_source(self, at_least: int = 0) -> list[str]:
        return self._read_queues(self.stage.queue, at_least)

    def on_target(self, at_least: int = 0) -> list[str]:
        return self._read_queues(self.target, at_least)

    def dead_letters(self, at_least: int) -> int:
        return len(self.stage.dead_letters(DEAD_LETTERS, at_least))

    def _read_queues(self, queue: str, at_least: int) -> list[str]:
        found = self.stage.left(queue, at_least)
        if len(found) < at_least and self._hides:
            self._start_again()
            found += self.stage.left(queue, at_least - len(found))
        return bodies(found)

    def _start_again(self) -> None:
        """After a restart the broker delivers what it hid when a connection dropped (docs/brokers/artemis.md)."""
        print(f"{self.stage.pair.kind.name}: started again, for a message that it hid")
        kill_and_restart(self._broker, self.stage.pair.url)


class Record(Protocol):
    def __call__(self, cut: str, found: str) -> None: ...


@pytest.fixture
def record(request: pytest.FixtureRequest, kind: Kind, form: str) -> Record:
    """For the report."""

    def write(cut: str, found: str) -> None:
        if form == "threads":
            request.config.stash[REPORT].cuts.append((kind.title, cut, found))

    return write


@pytest.fixture(scope="module")
def stored_broker() -> Iterator[RealBroker]:
    with started(NAME) as broker:
        yield broker


@pytest.fixture
def bench(request: pytest.FixtureRequest, kind: Kind, form: str) -> Iterator[Bench]:
    broker = request.getfixturevalue(kind.broker or "stored_broker")
    pair = Pair(kind, getattr(broker, f"{kind.protocol}_url"))
    at = urlsplit(pair.url)
    assert at.hostname is not None
    assert at.port is not None
    with Proxy(at.hostname, at.port) as proxy, ExitStack() as opened:
        yield Bench(pair, broker, proxy, opened, form)


@pairs(TRANSACTED)
def test_a_commit_that_never_arrives_changes_nothing(bench: Bench, record: Record) -> None:
    session = bench.move()
    bench.proxy.cut(Cut(bench.marks.commit))
    with pytest.raises((InDoubtError, TransactionRolledBackError)):
        session.commit()
    assert bench.on_source(1) == ["in"]
    assert bench.on_target() == []
    record("before the commit", "nothing sent, the message is redelivered")


@pairs(ATOMIC)
def test_a_commit_whose_answer_is_lost_is_in_doubt_and_done_once(bench: Bench, record: Record) -> None:
    session = bench.move()
    bench.proxy.cut(Cut(bench.marks.answer, "down", after=bench.marks.commit))
    with pytest.raises(InDoubtError) as raised:
        session.commit()
    assert (bodies(raised.value.received), bodies(raised.value.sent)) == (["in"], ["out"])
    assert bench.on_target(1) == ["out"]
    assert bench.on_source() == []
    record("before the answer to the commit", "`InDoubtError`; done, once")


@pairs(ACKS_LATER)
@pytest.mark.parametrize("where", ["answer", "accept"])
def test_between_commit_and_acks_the_message_comes_again(bench: Bench, record: Record, where: str) -> None:
    session = bench.move()
    bench.proxy.cut(bench.before(where, after=bench.marks.commit))
    with pytest.raises(InDoubtError) as raised:
        session.commit()
    assert (bodies(raised.value.received), bodies(raised.value.sent)) == (["in"], ["out"])
    assert bench.on_target(1) == ["out"]
    assert bench.on_source(1) == ["in"]
    cut = "before the answer to the commit" if where == "answer" else "between the commit's answer and the ACK"
    record(cut, "`InDoubtError`; sent, and the message is redelivered: a second output, no loss")


@pairs(WITHOUT)
def test_between_a_confirmed_send_and_the_acknowledgement_the_message_comes_again(bench: Bench, record: Record) -> None:
    session, consumer = bench.program(AckMode.CLIENT)
    message = receive(consumer)
    session.producer(bench.target).send("out")
    bench.proxy.cut(Cut(bench.marks.accept))
    with suppress(JMSError):  # nobody confirms it, so it may be written before the loss is seen
        message.acknowledge()
    assert bench.proxy.happened.wait(SOON)
    assert bench.on_target(1) == ["out"]
    assert bench.on_source(1) == ["in"]
    record("between a confirmed send and the acknowledgement", "the message is redelivered: a second output, no loss")


def _mode(kind: Kind) -> AckMode:
    return AckMode.TRANSACTED if kind in TRANSACTED else AckMode.CLIENT


@pairs(COPIES)
def test_a_copy_that_never_arrives_is_no_dead_letter(bench: Bench, kind: Kind, record: Record) -> None:
    bench.poison(_mode(kind), Cut(bench.marks.send))
    assert bench.give_up_again(_mode(kind))
    assert bench.dead_letters(1) == 1
    assert bench.on_source() == []
    record("before the copy for the dead-letter queue", "the message is redelivered; one dead letter in the end")


@pairs([kind for kind in COPIES if kind not in ATOMIC])
@pytest.mark.parametrize("where", ["answer", "accept"])
def test_between_the_copy_and_its_ack_there_may_be_two_dead_letters(
    bench: Bench, kind: Kind, record: Record, where: str
) -> None:
    bench.poison(_mode(kind), bench.before(where, after=bench.marks.send))
    assert bench.give_up_again(_mode(kind))
    expected = 1 if kind.name in KNOWS_AGAIN else 2
    assert bench.dead_letters(expected) == expected
    assert bench.on_source() == []
    cut = "before the copy's confirmation" if where == "answer" else "between the copy's confirmation and the ACK"
    again = "the broker knows the second copy again: one dead letter" if expected == 1 else "two dead letters, no loss"
    record(cut, f"the message is redelivered; {again}")


@pairs([kind for kind in COPIES if kind in ATOMIC])
@pytest.mark.parametrize("where", ["commit", "answer"])
def test_a_copy_in_a_transaction_is_one_dead_letter_wherever_it_is_cut(
    bench: Bench, record: Record, where: str
) -> None:
    commit = Cut(bench.marks.commit, after=bench.marks.send)
    answer = Cut(bench.marks.answer, "down", after=bench.marks.commit)
    bench.poison(AckMode.TRANSACTED, commit if where == "commit" else answer)
    again = where == "commit"
    assert bench.give_up_again(AckMode.TRANSACTED, SOON if again else 2) == again
    assert bench.dead_letters(1) == 1
    assert bench.on_source() == []
    cut = "the copy's commit" if where == "commit" else "the answer to the copy's commit"
    record(f"before {cut}", "one dead letter in the end")
