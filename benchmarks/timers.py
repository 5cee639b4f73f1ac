"""What waiting costs: late redeliveries, an idle consumer, and memory."""

from __future__ import annotations

import statistics
import threading
import time
import tracemalloc
from collections.abc import Callable, Sequence

import redelivery
from benchmarks.ours import PATIENCE, consume
from benchmarks.places import FakePlace
from benchmarks.results import Measure
from redelivery import AckMode, Message, RedeliveryPolicy, Session

SESSIONS = 10  # each may have 1,000 delayed deliveries without blocking
DELAY = 3.0  # seconds
SENDING = 2.0  # seconds, less than DELAY: all are pending before the first is due
BURST = 0.002  # seconds between two bursts of sends


class Lateness:
    """Rolls each message back once, and notes how late it is redelivered."""

    def __init__(self, pending: int) -> None:
        self.pending = pending
        self.late: list[float] = []
        self.first_deliveries = 0
        self.most = 0
        self.done = threading.Event()
        self._lock = threading.Lock()

    def listener(self, session: Session) -> Callable[[Message], None]:
        """For one session; its callbacks are serial."""
        due: dict[object, float] = {}

        def on_message(message: Message) -> None:
            now = time.monotonic()
            if not message.redelivered:
                due[message.body] = now + DELAY
                session.rollback()
                with self._lock:
                    self.first_deliveries += 1
                    self.most = max(self.most, self.first_deliveries - len(self.late))
                return
            session.commit()
            with self._lock:
                self.late.append(now - due.pop(message.body))
                if len(self.late) == self.pending:
                    self.done.set()

        return on_message


def lateness(pending: int) -> Measure:
    """The 99th percentile with so many redeliveries pending at the same time, on the embedded broker."""
    noted = Lateness(pending)
    policy = RedeliveryPolicy(initial_redelivery_delay=DELAY)
    url = "vm://benchmark-timers"
    with redelivery.connect(url, redelivery_policy=policy, non_blocking_redelivery=True) as connection:
        for number in range(SESSIONS):
            session = connection.session(AckMode.TRANSACTED)
            session.consumer(f"timers.{number}").listen(noted.listener(session))
        producer = connection.session().producer(persistent=False)
        start = time.monotonic()
        for number in range(pending):
            while (ahead := start + number / pending * SENDING - time.monotonic()) > 0:
                time.sleep(max(ahead, BURST))
            producer.send(str(number), f"timers.{number % SESSIONS}")
        assert noted.done.wait(PATIENCE), f"{len(noted.late)} of {pending} was redelivered"
    p99 = statistics.quantiles(noted.late, n=100)[98]
    title = f"delayed redelivery late, p99, {noted.most:,} of {pending:,} pending at once"
    return Measure("lateness", title, p99 * 1000, "ms", 20)


def idle(url: str, queue: str, name: str, seconds: float) -> Measure:
    """The processor time of a consumer that waits for a message that never comes."""
    with redelivery.connect(url) as connection, connection.session() as session:
        consumer = session.consumer(queue)
        consumer.receive(0)
        before = time.process_time()
        message = consumer.receive(seconds)
        spent = time.process_time() - before
        assert message is None, "the queue was not empty"
    return Measure(f"idle-{name}", f"idle consumer, {name}", spent / seconds * 1000, "ms of CPU per s", 1)


def memory(place: FakePlace, few: int, many: int) -> Measure:
    """How much the peak grows with every message consumed beyond the first few: nothing, when all are acknowledged."""
    peaks = []
    for count in (few, few, many):  # the first one warms the caches up
        queue = place.prepare(count)
        tracemalloc.start()
        try:
            consume(place, queue, count, mode=AckMode.INDIVIDUAL)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        place.finish(queue, acked=count)
    grown = (peaks[2] - peaks[1]) / (many - few)
    title = f"memory kept for each message consumed and acknowledged, {place.protocol}"
    return Measure(f"memory-{place.protocol}", title, max(0.0, grown), "bytes", 1)


def measure(places: Sequence[FakePlace], scale: float) -> tuple[Measure, ...]:
    """All of the above."""
    seconds = max(1.0, 5 * scale)
    found = [lateness(max(100, int(10_000 * scale)))]
    for place in places:
        empty = place.prepare(0)
        found.append(idle(place.url, empty, place.protocol, seconds))
        place.finish(empty)
    found.append(idle("vm://benchmark-idle", "idle", "vm", seconds))
    few, many = max(200, int(5_000 * scale)), max(1_000, int(50_000 * scale))
    return (*found, *(memory(place, few, many) for place in places))
