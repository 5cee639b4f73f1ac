"""``python -m benchmarks.observers``: what an ``observer=`` costs a message, as a table in docs/guide/observing.md."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import NoOpTracerProvider

import redelivery
from benchmarks.acting import do_nothing, measure
from benchmarks.figures import Figures, between
from benchmarks.machine import in_process
from benchmarks.targets import TEXT, paragraphs, table
from redelivery.events import Observer

MESSAGES: Final = 20_000
ROUNDS: Final = 3
CASES: Final = {"auto": "received (AUTO)", "send": "sent, and confirmed"}
LIMIT: Final = 2.0  # µs that an observer which does nothing may cost
AGAIN: Final = "none, measured again"
NOTHING: Final = "a function that does nothing"


def _sdk(*, spans: bool) -> Observer:
    provider: TracerProvider | NoOpTracerProvider = NoOpTracerProvider()
    if spans:
        provider = TracerProvider()
        provider.add_span_processor(SpanProcessor())  # spans are recorded, and exported to nowhere
    metrics = MeterProvider([InMemoryMetricReader()])
    return redelivery.otel.observer(tracer_provider=provider, meter_provider=metrics)


OBSERVERS: Final[Mapping[str, Callable[[], Observer]]] = {
    NOTHING: lambda: do_nothing,
    "OpenTelemetry, without its SDK": lambda: redelivery.otel.observer(
        tracer_provider=NoOpTracerProvider(), meter_provider=NoOpMeterProvider()
    ),
    "OpenTelemetry, the SDK's metrics": lambda: _sdk(spans=False),
    "OpenTelemetry, the SDK's metrics and recorded spans": lambda: _sdk(spans=True),
}


def one(case: str, name: str | None, messages: int) -> float:
    """Return the least µs of the parts of a run with this observer; None: with none."""
    return min(measure(case, messages, observer=None if name is None else OBSERVERS[name]()))


def least(case: str, name: str | None, messages: int) -> float:
    """Return the same in a process of its own."""
    return float(in_process(f"observers.one({case!r}, {name!r}, {messages})"))


def costs(messages: int, rounds: int) -> dict[str, list[float]]:
    """Return the µs that each row adds to each case."""
    names = (None, *OBSERVERS, AGAIN)
    taken = {(case, name): float("inf") for case in CASES for name in names}
    for _ in range(rounds):
        for case, name in taken:
            micros = least(case, None if name == AGAIN else name, messages)
            taken[case, name] = min(micros, taken[case, name])
    return {
        name: [round(taken[case, name] - taken[case, None], 1) + 0.0 for case in CASES]  # 0.0 has no sign then
        for name in names
        if name is not None
    }


def take(found: dict[str, Any], _case: str, _url: str) -> Mapping[str, Any]:
    """Measure all rows, in turns."""
    found |= {"rounds": ROUNDS, "python": f"Python {sys.version.split()[0]}", "rows": costs(MESSAGES, ROUNDS)}
    return found


def text(found: Mapping[str, Any], old: str) -> str:
    """Return the page, with a row for each observer, and what follows from them."""
    rows: Mapping[str, Sequence[float]] = found["rows"]
    cells = [
        (name, *(f"{each:{'+' if name == AGAIN else ''}.1f}" for each in rows[name])) for name in (AGAIN, *OBSERVERS)
    ]
    nothing = max(rows[NOTHING])
    verdict = f"{'less' if nothing < LIMIT else '**not less**'} than the {LIMIT:g} µs that are its limit"
    noise = max(map(abs, rows[AGAIN]))
    lines = paragraphs(TEXT["observers"]["introduction"], **found)
    lines += [*table(("`observer=`", *CASES.values()), cells), ""]
    lines += paragraphs(TEXT["observers"]["says"], noise=noise, nothing=nothing, verdict=verdict)
    return between(old, "costs", lines[:-1])


if __name__ == "__main__":
    Figures("docs/observers.json", "docs/guide/observing.md", ["costs"], take, text, urls=False).main(__doc__)
