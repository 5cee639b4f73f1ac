"""Work that goes on for minutes while the connections break all the time: nothing is lost, and nothing grows.

The short form takes seconds. `make soak` takes ten minutes for each pair, with a fault every two seconds.
`scripts/soak-report` does so on all pairs with a real broker and writes docs/soak.md.
"""

from __future__ import annotations

import json
import os
import random
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any, Final

import pytest
from tests.conformance.outage import Counted, Outage
from tests.conformance.stage import Stage
from tests.faults.campaign import kill_and_restart
from tests.faults.promises import PROMISES

from redelivery import InDoubtError, Message, ReconnectPolicy
from redelivery.events import Reconnected

MINUTES: Final = float(os.environ.get("REDELIVERY_SOAK_MINUTES", "0.1"))
FAULTS: Final = 2.0 if MINUTES >= 1 else 0.5  # seconds between two
PAUSE: Final = 0.01 if MINUTES >= 1 else 0.002  # seconds between two sends
RECORD: Final = "REDELIVERY_SOAK_RECORD"  # a file, to which each test adds a line of JSON
MEGABYTE: Final = 1 << 20
PATIENCE: Final = 60.0  # seconds for what is left at the end
# In the short form the embedded broker's store is in this process, and pytest keeps what was logged.
MOST_GROWTH: Final = (24 if MINUTES >= 1 else 128) * MEGABYTE
MOST_MESSAGES: Final = 1 << 20
MOST_BEHIND: Final = 500  # messages: a broker that writes each commit to its disk takes more of them than it gives


class Tally:
    """How often each number was seen, in a byte: nothing that grows with the messages."""

    def __init__(self) -> None:
        self._counts = bytearray(MOST_MESSAGES)
        self._lock = threading.Lock()
        self.different = 0

    def add(self, number: int) -> None:
        with self._lock:
            self.different += not self._counts[number]
            self._counts[number] = min(self._counts[number] + 1, 255)

    def without(self, other: Tally) -> list[int]:
        """What was seen here, and not there."""
        with self._lock, other._lock:
            both = enumerate(zip(self._counts, other._counts, strict=True))
            return [number for number, (mine, others) in both if mine and not others]

    @property
    def more_than_once(self) -> int:
        return MOST_MESSAGES - self._counts.count(0) - self._counts.count(1)


class Sender(threading.Thread):
    """Sends numbers, each confirmed or in doubt, as fast as they are received."""

    def __init__(self, connection: Any, queue: str, received: Tally) -> None:
        super().__init__(name="soak-sender")
        self._received = received
        self._producer = connection.session().producer(queue)
        self.stopping = threading.Event()
        self.confirmed = Tally()
        self.doubted = 0

    def run(self) -> None:
        number = 0
        while not self.stopping.wait(PAUSE):
            if number - self._received.different > MOST_BEHIND:
                continue
            try:
                self._producer.send(str(number))
            except InDoubtError:
                self.doubted += 1
            else:
                self.confirmed.add(number)
            number += 1


class Memory:
    """What the process uses, by kind: at the beginning, in the middle of the time, at the end."""

    def __init__(self) -> None:
        self.first = self.middle = self.last = self.now()

    @staticmethod
    def now() -> dict[str, int]:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return {
            "memory": pages * os.sysconf("SC_PAGE_SIZE"),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": threading.active_count(),
        }

    def growth(self) -> dict[str, int]:
        self.last = self.now()
        return {kind: self.last[kind] - self.first[kind] for kind in self.last}


def await_all(expected: Tally, received: Tally) -> list[int]:
    """What has not come when time is up."""
    last = monotonic() + PATIENCE
    while (missing := expected.without(received)) and monotonic() < last:
        threading.Event().wait(0.1)
    return missing


def look_again(request: pytest.FixtureRequest, stage: Stage) -> bool:
    """Whether the broker was started again, so that it delivers what it may hide: see docs/brokers/artemis.md."""
    kind = stage.pair.kind
    promise = PROMISES.get(kind.name)
    if kind.broker is None or promise is None or promise.hides is None:
        return False
    broker = request.getfixturevalue(kind.broker)
    if broker.provider is None:
        return False
    kill_and_restart(broker, stage.pair.url)
    return True


def keep(**row: object) -> None:
    """For scripts/soak-report."""
    if RECORD in os.environ:
        with Path(os.environ[RECORD]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


@pytest.mark.everywhere_in_long_form
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured by /proc")
@pytest.mark.timeout(MINUTES * 60 + 5 * PATIENCE)
def test_nothing_is_lost_and_nothing_grows(
    request: pytest.FixtureRequest, stage: Stage, outage: Outage, record_property: Callable[[str, object], None]
) -> None:
    received = Tally()
    rng = random.Random(7)  # noqa: S311  # no secret
    options: dict[str, Any] = {}
    if stage.pair.can("duplicate ids"):
        options["deduplicate_sends"] = True
    mode = "transacted" if stage.pair.can("transactions") else "client"
    counted = Counted()
    common: dict[str, Any] = {"url": outage.url, "observer": counted, "reconnect": ReconnectPolicy(maximum_delay=0.1)}
    sending, receiving = stage.connect(**common, **options), stage.connect(**common)
    sender = Sender(sending, stage.queue, received)

    def handle(message: Message) -> None:
        received.add(int(str(message.body)))

    container = receiving.listener_container(stage.queue, handle, concurrency=2, ack_mode=mode, prefetch=20)
    container.start()
    sender.start()
    begun = monotonic() + PATIENCE  # brokers that have just been started are slow with their first messages
    while received.different <= 100:
        assert monotonic() < begun, "it has not begun"
        threading.Event().wait(0.1)
    memory, end, faults = Memory(), monotonic() + MINUTES * 60, 0
    half, looked = end - MINUTES * 30, False
    while monotonic() < end:
        if not looked and monotonic() > half:
            memory.middle, looked = memory.now(), True
        threading.Event().wait(FAULTS * rng.uniform(0.5, 1.5))
        if rng.random() < 0.3:  # the broker is heard no more, and then the connection is reset
            outage.gate.deafen()
            threading.Event().wait(0.1)
        outage.gate.shut(rng.uniform(0.02, 0.3))
        faults += 1
    sender.stopping.set()
    sender.join(PATIENCE)
    expected = sender.confirmed
    missing = await_all(expected, received)
    growth = memory.growth()
    lost, hidden = missing, 0
    if missing and look_again(request, stage):
        lost = await_all(expected, received)
        hidden = len(missing) - len(lost)
    twice = received.more_than_once
    summary = (
        f"{faults} faults, {counted.numbers[Reconnected]} reconnections: {expected.different} confirmed, "
        f"{sender.doubted} in doubt, {len(lost)} lost, {hidden} hidden, {twice} handled more than once; {growth}"
    )
    record_property("soak", summary)
    print(summary)
    keep(
        pair=stage.pair.kind.name,
        minutes=MINUTES,
        faults=faults,
        reconnections=counted.numbers[Reconnected],
        confirmed=expected.different,
        in_doubt=sender.doubted,
        lost=len(lost),
        hidden=hidden,
        twice=twice,
        used=[memory.first, memory.middle, memory.last],
    )
    assert not sender.is_alive()
    assert not lost, summary
    assert container.drain()
    if "deduplicate_sends" in options:
        assert not sender.doubted, summary
    assert growth["threads"] <= 4, summary
    assert growth["descriptors"] <= 8, summary
    assert growth["memory"] <= MOST_GROWTH, summary
