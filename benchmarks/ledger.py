"""The ledger alone, without transport or message: what a session's rules cost for each delivery."""

from __future__ import annotations

import gc
import time
from collections import deque
from collections.abc import Mapping

from benchmarks.results import Measure
from redelivery import AckMode, Queue, RedeliveryPolicy
from redelivery.client.ledger import ConsumerState, Ledger, Received
from redelivery.transports.seam import Delivery, Link, LinkSpec

BATCH = 100
LIMIT = 2.0  # microseconds per message


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


def microseconds(mode: AckMode, batches: int) -> float:
    """Per message: arrive, dispatch and acknowledge, in batches of 100, as `Consumer.receive` does it in that mode."""
    ledger = Ledger(mode, wall_ms=lambda: 0)
    dispatch = ledger.take if mode is AckMode.AUTO else ledger.dispatch  # AUTO: taken and acknowledged in one
    link: Link[ConsumerState] = Link(LinkSpec(Queue("bench")))
    policy = RedeliveryPolicy()
    consumer = ConsumerState(link, lambda _: policy, name="bench")
    ledger.attach(consumer)
    spent = 0.0
    gc.collect()
    for _ in range(batches):
        arriving: deque[Received] = deque(Plain(link) for _ in range(BATCH))
        start = time.perf_counter()
        ledger.arrived(arriving)
        for _ in range(BATCH):
            delivery = dispatch(consumer, 0.0)
            assert delivery is not None
            if mode is AckMode.INDIVIDUAL:
                ledger.acknowledge(delivery, 0)
        if mode is AckMode.TRANSACTED:
            ledger.settled(ledger.covered())
        ledger.take_orders()
        spent += time.perf_counter() - start
    return spent / (batches * BATCH) * 1e6


def measure(rounds: int, scale: float) -> tuple[Measure, ...]:
    """The best of the rounds: what the code costs when nothing else has the processor."""
    batches = max(1, int(1000 * scale))
    return tuple(
        Measure(
            f"ledger-{mode.name.lower()}",
            f"ledger alone, {mode.name}, arrive + dispatch + acknowledge",
            min(microseconds(mode, batches) for _ in range(rounds)),
            "µs per message",
            LIMIT,
        )
        for mode in (AckMode.TRANSACTED, AckMode.AUTO, AckMode.INDIVIDUAL)
    )
