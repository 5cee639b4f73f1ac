"""Work that goes on for minutes while the connections break all the time: nothing is lost, and nothing grows.

The short form takes seconds. `make soak` takes ten minutes for each pair, with a fault every two seconds.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any, Final

import pytest
from tests.conformance.outage import Outage, until
from tests.conformance.stage import Stage

from redelivery import InDoubtError, Message
from redelivery.events import Reconnected

MINUTES: Final = float(os.environ.get("REDELIVERY_SOAK_MINUTES", "0.1"))
FAULTS: Final = 2.0 if MINUTES >= 1 else 0.5  # seconds between two
PAUSE: Final = 0.002  # seconds between two sends
MEGABYTE: Final = 1 << 20
PATIENCE: Final = 60.0  # seconds for what is left at the end


class Sender(threading.Thread):
    """Sends numbers, each confirmed or in doubt."""

    def __init__(self, connection: Any, queue: str) -> None:
        super().__init__(name="soak-sender")
        self._producer = connection.session().producer(queue)
        self.stopping = threading.Event()
        self.confirmed: list[int] = []
        self.doubted: list[int] = []

    def run(self) -> None:
        number = 0
        while not self.stopping.wait(PAUSE):
            try:
                self._producer.send(str(number))
            except InDoubtError:
                self.doubted.append(number)
            else:
                self.confirmed.append(number)
            number += 1


class Memory:
    """What the process uses, by kind, now and at the beginning."""

    def __init__(self) -> None:
        self.first = self.now()

    @staticmethod
    def now() -> dict[str, int]:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return {
            "memory": pages * os.sysconf("SC_PAGE_SIZE"),
            "descriptors": len(os.listdir("/proc/self/fd")),
            "threads": threading.active_count(),
        }

    def growth(self) -> dict[str, int]:
        now = self.now()
        return {kind: now[kind] - self.first[kind] for kind in now}


@pytest.mark.everywhere_in_long_form
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is measured by /proc")
@pytest.mark.timeout(MINUTES * 60 + 2 * PATIENCE)
def test_nothing_is_lost_and_nothing_grows(
    stage: Stage, outage: Outage, record_property: Callable[[str, object], None]
) -> None:
    received: Counter[int] = Counter()
    rng = random.Random(7)  # noqa: S311  # no secret
    options: dict[str, Any] = {}
    if stage.pair.can("duplicate ids"):
        options["deduplicate_sends"] = True
    mode = "transacted" if stage.pair.can("transactions") else "client"
    sending, receiving = outage.connect(**options), outage.connect()
    sender = Sender(sending, stage.queue)

    def handle(message: Message) -> None:
        received[int(str(message.body))] += 1

    container = receiving.listener_container(stage.queue, handle, concurrency=2, ack_mode=mode, prefetch=20)
    container.start()
    sender.start()
    until(lambda: len(received) > 100)
    memory, end, faults = Memory(), monotonic() + MINUTES * 60, 0
    while monotonic() < end:
        threading.Event().wait(FAULTS * rng.uniform(0.5, 1.5))
        if rng.random() < 0.3:  # the broker is heard no more, and then the connection is reset
            outage.gate.deafen()
            threading.Event().wait(0.1)
        outage.gate.shut(rng.uniform(0.02, 0.3))
        faults += 1
    sender.stopping.set()
    sender.join(PATIENCE)
    last, expected = monotonic() + PATIENCE, set(sender.confirmed)
    while not expected <= received.keys() and monotonic() < last:
        threading.Event().wait(0.05)
    growth = memory.growth()
    lost = sorted(expected - received.keys())
    twice = sum(count > 1 for count in received.values())
    summary = (
        f"{faults} faults, {len(outage.seen(Reconnected))} reconnections: {len(expected)} confirmed, "
        f"{len(sender.doubted)} in doubt, {len(lost)} lost, {twice} handled more than once; {growth}"
    )
    record_property("soak", summary)
    print(summary)
    assert not sender.is_alive()
    assert not lost, summary
    assert container.drain()
    if "deduplicate_sends" in options:
        assert not sender.doubted, summary
    assert growth["threads"] <= 4, summary
    assert growth["descriptors"] <= 8, summary
    assert growth["memory"] <= (64 if MINUTES >= 1 else 128) * MEGABYTE, summary
