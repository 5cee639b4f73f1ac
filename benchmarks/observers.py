"""``python -m benchmarks.observers``: what an ``observer=`` costs a message, as a table in docs/guide/observing.md."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from typing import Final

from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import NoOpTracerProvider

import redelivery
from benchmarks.cpu import HERE
from benchmarks.in_thread import do_nothing, measure
from redelivery.events import Observer

PAGE: Final = HERE / "docs" / "guide" / "observing.md"
BEGIN, END = "<!-- costs -->\n", "<!-- end of costs -->\n"
MESSAGES: Final = 20_000
ROUNDS: Final = 3
CASES: Final = {"auto": "received (AUTO)", "send": "sent, and confirmed"}
_TEXT: Final = """What it costs a message, in µs of processor, written by `python -m benchmarks.observers` ({python}):

| `observer=` | {titles} |
|---|{rules}|
"""


def _recording() -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SpanProcessor())  # spans are recorded, and exported to nowhere
    return provider


def _metering() -> MeterProvider:
    return MeterProvider([InMemoryMetricReader()])


OBSERVERS: Final[Mapping[str, Callable[[], Observer]]] = {
    "a function that does nothing": lambda: do_nothing,
    "OpenTelemetry, without its SDK": lambda: redelivery.otel.observer(
        tracer_provider=NoOpTracerProvider(), meter_provider=NoOpMeterProvider()
    ),
    "OpenTelemetry, the SDK's metrics": lambda: redelivery.otel.observer(
        tracer_provider=NoOpTracerProvider(), meter_provider=_metering()
    ),
    "OpenTelemetry, the SDK's metrics and recorded spans": lambda: redelivery.otel.observer(
        tracer_provider=_recording(), meter_provider=_metering()
    ),
}


def least(case: str, name: str | None, messages: int) -> float:
    """Microseconds of a message with this observer (None: with none), in a process of its own."""
    code = f"from benchmarks.observers import one; one({case!r}, {name!r}, {messages})"
    done = subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-c", code], cwd=HERE, stdout=subprocess.PIPE, text=True, timeout=300, check=True
    )
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return min(found)


def one(case: str, name: str | None, messages: int) -> None:
    """Print what each part of a run took."""
    print(json.dumps(measure(case, messages, observer=None if name is None else OBSERVERS[name]())))


def table(messages: int, rounds: int) -> str:
    """What each observer adds to each case: the least of some runs, taken in turns."""
    found: dict[tuple[str, str | None], float] = {}
    for _ in range(rounds):
        for case in CASES:
            for name in (None, *OBSERVERS):
                found[case, name] = min(least(case, name, messages), found.get((case, name), float("inf")))
    python = f"Python {sys.version.split()[0]}"
    text = _TEXT.format(python=python, titles=" | ".join(CASES.values()), rules="|".join(["---:"] * len(CASES)))
    for name in OBSERVERS:
        cells = " | ".join(f"{max(0.0, found[case, name] - found[case, None]):.0f}" for case in CASES)
        text += f"| {name} | {cells} |\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.observers", description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"of one run ({MESSAGES})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each ({ROUNDS})")
    options = parser.parse_args()
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + BEGIN + table(options.messages, options.rounds) + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
