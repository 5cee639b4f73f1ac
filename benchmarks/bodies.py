"""Large bodies: how fast, and whether the cost is linear in the size."""

from __future__ import annotations

import gc
import statistics
import time

import redelivery
from benchmarks import large
from benchmarks.ours import PATIENCE
from benchmarks.places import FakePlace
from benchmarks.results import Measure
from redelivery import AckMode

MIB = 1 << 20
KINDS = {"text": "text", "nul": "bytes, all NUL", "random": "bytes, random"}


def megabytes_per_second(place: FakePlace, size: int, kind: str, count: int) -> float:
    """From the SUBSCRIBE to the last body read."""
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


def measure(place: FakePlace, rounds: int, scale: float) -> tuple[Measure, ...]:
    """The largest body of each kind, and its speed against a body of a sixteenth of the size."""
    most = max(4, int(64 * min(1.0, scale * 4))) * MIB
    found = []
    for kind, title in KINDS.items():
        speeds: dict[int, list[float]] = {most // 16: [], most: []}
        for number in range(rounds + 1):
            for size, rates in speeds.items():
                rate = megabytes_per_second(place, size, kind, 4 * most // size // 2)
                if number:  # the first makes the body
                    rates.append(rate)
        small, whole = (statistics.median(rates) for rates in speeds.values())
        name = f"{place.protocol.upper()}, body of {most // MIB} MiB, {title}"
        found.append(Measure(f"{place.protocol}-body-{kind}", name, whole, "MB/s", 200, at_most=False))
        found.append(
            Measure(
                f"{place.protocol}-linear-{kind}",
                f"{name}: speed against {most / 16 / MIB:g} MiB",
                whole / small,
                "times",
                0.8,
                False,
            )
        )
    return tuple(found)


def without_a_client(rounds: int) -> tuple[Measure, ...]:
    """What Python itself reaches of that, with a socket and no client."""
    rates = {size: large.rate(large.text, size, rounds) for size in (4, 64)}
    title = "bare socket, body of 64 MiB, text: speed of the processor against 4 MiB"
    return (Measure("bare-linear-text", title, rates[64] / rates[4], "times", None),)
