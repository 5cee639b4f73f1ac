"""``python -m benchmarks.observers``: what an ``observer=`` costs a message, as a table in docs/guide/observing.md."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping
from typing import Final

from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import NoOpTracerProvider

import redelivery
from benchmarks.acting import do_nothing, measure
from benchmarks.machine import HERE, in_process
from benchmarks.targets import paragraphs, table
from redelivery.events import Observer

PAGE: Final = HERE / "docs" / "guide" / "observing.md"
BEGIN, END = "<!-- costs -->\n", "<!-- end of costs -->\n"
MESSAGES: Final = 20_000
ROUNDS: Final = 3
CASES: Final = {"auto": "received (AUTO)", "send": "sent, and confirmed"}
LIMIT: Final = 2.0  # µs that an observer which does nothing may cost
AGAIN: Final = "none, measured again"
NOTHING: Final = "a function that does nothing"
_TEXT: Final = """What it costs a message, in µs of processor, written by `python -m benchmarks.observers` ({python}):
the least of {rounds} runs, in turns, less that of the runs without one."""
_SAYS: Final = """The first row is the same code twice: what is less than its {noise:.1f} µs cannot be measured here.
Without an observer, a message passes checks for one only. An observer that does nothing costs {nothing:.1f} µs at most,
{verdict}."""


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


def costs(messages: int, rounds: int) -> dict[tuple[str, str], float]:
    """Return the µs that each row adds to each case."""
    found: dict[tuple[str, str | None], float] = {}
    for _ in range(rounds):
        for case in CASES:
            for name in (None, *OBSERVERS, AGAIN):
                micros = least(case, None if name == AGAIN else name, messages)
                found[case, name] = min(micros, found.get((case, name), float("inf")))
    rows = {(case, name): each - found[case, None] for (case, name), each in found.items() if name is not None}
    return {row: round(each, 1) + 0.0 for row, each in rows.items()}  # 0.0 has no sign then


def text(rows: Mapping[tuple[str, str], float], rounds: int, python: str) -> str:
    """Return a row for each observer, and what follows from them."""
    lines = paragraphs(_TEXT, python=python, rounds=rounds)
    signs = {AGAIN: "+", **dict.fromkeys(OBSERVERS, "")}
    cells = [(name, *(f"{rows[case, name]:{sign}.1f}" for case in CASES)) for name, sign in signs.items()]
    heads, _, *its_rows = table(("`observer=`", *CASES.values()), cells)
    lines += [heads, "|---|---:|---:|", *its_rows, ""]
    noise = max(abs(rows[case, AGAIN]) for case in CASES)
    nothing = max(rows[case, NOTHING] for case in CASES)
    verdict = f"{'less' if nothing < LIMIT else '**not less**'} than the {LIMIT:g} µs that are its limit"
    lines += paragraphs(_SAYS, noise=noise, nothing=nothing, verdict=verdict)
    return "\n".join(lines)


def seen(page: str) -> tuple[dict[tuple[str, str], float], int, str]:
    """Return what `text` was made of, from its page."""
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    rows = {(case, name): float(cell) for name, *cells in lines[1:] for case, cell in zip(CASES, cells, strict=True)}
    words = " ".join(page.split())
    (rounds,), (python,) = (re.findall(each, words) for each in (r"the least of (\d+) runs", r"\((Python [\d.]+)\)"))
    return rows, int(rounds), python


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.observers", description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"of one run ({MESSAGES})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each ({ROUNDS})")
    parser.add_argument("--check", action="store_true", help="measure and write nothing: exit code 1 for another page")
    options = parser.parse_args()
    old = PAGE.read_text(encoding="utf-8")
    before, _, rest = old.partition(BEGIN)
    costly, _, after = rest.partition(END)
    if options.check:
        found = seen(costly)
    else:
        python = f"Python {sys.version.split()[0]}"
        found = (costs(options.messages, options.rounds), options.rounds, python)
    new = before + BEGIN + text(*found) + END + after
    if not options.check:
        PAGE.write_text(new, encoding="utf-8")
    elif new != old:
        sys.exit(f"{PAGE} is not what `python -m benchmarks.observers` writes")


if __name__ == "__main__":
    main()
