"""Measures by themselves: what a fake peer and the ledger alone can do, large bodies, and what waiting costs."""

from __future__ import annotations

import gc
import statistics
import threading
import time
import tracemalloc
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import redelivery
from benchmarks import bare, bare_amqp, large, ours
from benchmarks.ours import PATIENCE
from benchmarks.places import FakePlace
from benchmarks.record import Measure
from redelivery import AckMode, Message, Queue, RedeliveryPolicy, Session
from redelivery.client.ledger import ConsumerState, Ledger, Received
from redelivery.transports.seam import Delivery, Link, LinkSpec

MIB: Final = 1 << 20
KINDS: Final = {"text": "text", "nul": "bytes, all NUL", "random": "bytes, random"}
SESSIONS: Final = 10  # each may have 1,000 delayed deliveries without blocking
DELAY: Final = 3.0  # seconds
SENDING: Final = 2.0  # seconds, less than DELAY: all are pending before the first is due
BURST: Final = 0.002  # seconds between two bursts of sends
BATCH: Final = 100
Found = Iterator[tuple[str, Measure]]  # with its key


def peer(place: FakePlace, scale: float) -> Found:
    """Measure how fast a peer is to a bare socket: a client that reaches this is measuring the peer."""
    count = max(1_000, int(100_000 * scale)) // 500 * 500
    title = f"{place.protocol.upper()}, {place.title}"
    receive = {"stomp": bare.run, "amqp": bare_amqp.consume}[place.protocol]
    queue = place.prepare(count)
    delivered = receive(place, queue, count, ack=bare.TOGETHER, read=False)
    place.finish(queue, acked=count)
    yield f"{place.protocol}-delivers", Measure(f"{title}, to a bare socket", count / delivered.seconds, "msg/s")
    confirmed = {"stomp": bare, "amqp": bare_amqp}[place.protocol].send(place, "sends", count, window=1000)
    place.finish("sends", sent=count)
    yield f"{place.protocol}-confirms", Measure(f"{title}, from one", count / confirmed.seconds, "msg/s")


def bodies(place: FakePlace, rounds: int, scale: float) -> Found:
    """Measure the largest body of each kind, and its speed against a body of a sixteenth of the size."""
    most = max(4, int(64 * min(1.0, scale * 4))) * MIB
    for kind, title in KINDS.items():
        speeds: dict[int, list[float]] = {most // 16: [], most: []}
        for number in range(rounds + 1):
            for size, rates in speeds.items():
                rate = _megabytes_per_second(place, size, kind, 4 * most // size // 2)
                if number:  # the first makes the body
                    rates.append(rate)
        small, whole = (statistics.median(rates) for rates in speeds.values())
        name = f"{place.protocol.upper()}, body of {most // MIB} MiB, {title}"
        yield f"{place.protocol}-body-{kind}", Measure(name, whole, "MB/s")
        against = f"{name}: speed against {most / 16 / MIB:g} MiB"
        yield f"{place.protocol}-linear-{kind}", Measure(against, whole / small, "times")


def _megabytes_per_second(place: FakePlace, size: int, kind: str, count: int) -> float:
    queue = place.prepare(count, size, kind)
    gc.collect()
    with redelivery.connect(place.url) as connection, connection.session(AckMode.AUTO) as session:
        start = time.perf_counter()
        consumer = session.consumer(queue, prefetch=2)
        for _ in range(count):
            message = consumer.receive(PATIENCE)
            assert message is not None, f"a body of {size} bytes did not come"
            assert len(message.body) == size, f"{len(message.body)} bytes of {size}"
        seconds = time.perf_counter() - start
    place.finish(queue, acked=count)
    return count * size / seconds / 1e6


def bodies_without_a_client(rounds: int) -> Found:
    """Measure what Python itself reaches of that, with a socket and no client."""
    small, whole = (large.rate(size, rounds) for size in (4, 64))
    title = "bare socket, body of 64 MiB, text: speed of the processor against 4 MiB"
    yield "bare-linear-text", Measure(title, whole / small, "times")


class Plain(Delivery[ConsumerState]):
    """A delivery with nothing in it."""

    __slots__ = ()

    def wire_count(self) -> int:
        return 1

    def expires_at(self) -> int:
        return 0

    def body(self) -> str:
        return ""

    def properties(self) -> Mapping[str, str]:
        return {}

    def header(self, name: str) -> None:
        del name


def ledger(rounds: int, scale: float) -> Found:
    """Measure a session's rules alone: the best of the rounds, as when nothing else has the processor."""
    batches = max(1, int(1000 * scale))
    for mode in (AckMode.TRANSACTED, AckMode.AUTO, AckMode.INDIVIDUAL):
        best = min(_ledger_micros(mode, batches) for _ in range(rounds))
        title = f"ledger alone, {mode.name}, arrive + dispatch + acknowledge"
        yield f"ledger-{mode.name.lower()}", Measure(title, best, "µs per message")


def _ledger_micros(mode: AckMode, batches: int) -> float:
    its = Ledger(mode, wall_ms=lambda: 0)
    dispatch = its.take if mode is AckMode.AUTO else its.dispatch  # AUTO: taken and acknowledged in one
    link: Link[ConsumerState] = Link(LinkSpec(Queue("bench")))
    policy = RedeliveryPolicy()
    consumer = ConsumerState(link, lambda _: policy, name="bench")
    its.attach(consumer)
    spent = 0.0
    gc.collect()
    for _ in range(batches):
        arriving: deque[Received] = deque(Plain(link) for _ in range(BATCH))
        start = time.perf_counter()
        its.arrived(arriving)
        for _ in range(BATCH):
            delivery = dispatch(consumer, 0.0)
            assert delivery is not None
            if mode is AckMode.INDIVIDUAL:
                its.acknowledge(delivery, 0)
        if mode is AckMode.TRANSACTED:
            its.settled(its.covered())
        its.take_orders()
        spent += time.perf_counter() - start
    return spent / (batches * BATCH) * 1e6


def lateness(pending: int) -> Measure:
    """Roll each message back once: the 99th percentile of how late it is redelivered, on the embedded broker."""
    due: dict[object, float] = {}
    late: list[float] = []
    waiting: list[int] = []
    lock, done = threading.Lock(), threading.Event()

    def listener(session: Session) -> Callable[[Message], None]:
        def on_message(message: Message) -> None:
            now = time.monotonic()
            if not message.redelivered:
                due[message.body] = now + DELAY
                session.rollback()
            else:
                session.commit()
            with lock:
                if message.redelivered:
                    late.append(now - due.pop(message.body))
                waiting.append(len(due))
                if len(late) == pending:
                    done.set()

        return on_message

    policy, url = RedeliveryPolicy(initial_redelivery_delay=DELAY), "vm://benchmark-timers"
    with redelivery.connect(url, redelivery_policy=policy, non_blocking_redelivery=True) as connection:
        for number in range(SESSIONS):
            session = connection.session(AckMode.TRANSACTED)
            session.consumer(f"timers.{number}").listen(listener(session))
        producer = connection.session().producer(persistent=False)
        start = time.monotonic()
        for number in range(pending):
            while (ahead := start + number / pending * SENDING - time.monotonic()) > 0:
                time.sleep(max(ahead, BURST))
            producer.send(str(number), f"timers.{number % SESSIONS}")
        assert done.wait(PATIENCE), f"{len(late)} of {pending} was redelivered"
    p99 = statistics.quantiles(late, n=100)[98]
    title = f"delayed redelivery late, p99, {max(waiting):,} of {pending:,} pending at once"
    return Measure(title, p99 * 1000, "ms")


def idle(url: str, queue: str, name: str, seconds: float) -> Measure:
    """Measure the processor time of a consumer that waits for a message that never comes."""
    with redelivery.connect(url) as connection, connection.session() as session:
        consumer = session.consumer(queue)
        consumer.receive(0)
        before = time.process_time()
        message = consumer.receive(seconds)
        spent = time.process_time() - before
        assert message is None, "the queue was not empty"
    return Measure(f"idle consumer, {name}", spent / seconds * 1000, "ms of CPU per s")


def memory(place: FakePlace, few: int, many: int) -> Measure:
    """Measure how much the peak grows with every message consumed beyond the first few."""
    peaks = []
    for count in (few, few, many):  # the first one warms the caches up
        queue = place.prepare(count)
        tracemalloc.start()
        try:
            ours.run(place, queue, count, case="individual")
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        place.finish(queue, acked=count)
    grown = (peaks[2] - peaks[1]) / (many - few)
    title = f"memory kept for each message consumed and acknowledged, {place.protocol}"
    return Measure(title, max(0.0, grown), "bytes")


def waiting(places: Mapping[str, FakePlace], scale: float) -> Found:
    """Measure late redeliveries, idle consumers, and memory."""
    seconds = max(1.0, 5 * scale)
    yield "lateness", lateness(max(100, int(10_000 * scale)))
    for protocol, place in places.items():
        empty = place.prepare(0)
        yield f"idle-{protocol}", idle(place.url, empty, protocol, seconds)
        place.finish(empty)
    yield "idle-vm", idle("vm://benchmark-idle", "idle", "vm", seconds)
    few, many = max(200, int(5_000 * scale)), max(1_000, int(50_000 * scale))
    for protocol, place in places.items():
        yield f"memory-{protocol}", memory(place, few, many)
