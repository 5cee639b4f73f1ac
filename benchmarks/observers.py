"""``python -m benchmarks.observers``: what an ``observer=`` costs a message, as a table in docs/guide/observing.md."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.trace import NoOpTracerProvider

import redelivery
from benchmarks import unobserved
from benchmarks.cpu import HERE
from benchmarks.in_thread import do_nothing, measure
from redelivery.events import Observer

PAGE: Final = HERE / "docs" / "guide" / "observing.md"
BEGIN, END = "<!-- costs -->\n", "<!-- end of costs -->\n"
MESSAGES: Final = 20_000
ROUNDS: Final = 3
CASES: Final = {"auto": "received (AUTO)", "send": "sent, and confirmed"}
LIMIT: Final = 2.0  # µs that an observer which does nothing may cost
AGAIN: Final = "none, measured again"
UNCHECKED: Final = "none, beside sources without the checks for one"
NOTHING: Final = "a function that does nothing"
_TEXT: Final = """What it costs a message, in µs of processor, written by `python -m benchmarks.observers` ({python}):
the least of {rounds} runs, in turns, less that of the runs without one.

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
    NOTHING: lambda: do_nothing,
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


def least(case: str, name: str | None, messages: int, tree: Path = HERE) -> float:
    """Microseconds of a message with this observer (None: with none), in a process of its own; the tree's sources."""
    code = f"from benchmarks.observers import one; one({case!r}, {name!r}, {messages})"
    done = subprocess.run(  # noqa: S603  # ourselves
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tree / "src"), str(HERE)))},
        cwd=HERE,
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return min(found)


def one(case: str, name: str | None, messages: int) -> None:
    """Print what each part of a run took."""
    print(json.dumps(measure(case, messages, observer=None if name is None else OBSERVERS[name]())))


def costs(messages: int, rounds: int) -> tuple[dict[tuple[str, str], float], int]:
    """What each row adds to each case: the least of some runs, taken in turns; and the number of checks in the sources.

    Of `UNCHECKED`: what the sources take more than they do without those checks.
    """
    found: dict[tuple[str, str | None], float] = {}
    with tempfile.TemporaryDirectory() as place:
        checks = unobserved.tree(Path(place))
        for _ in range(rounds):
            for case in CASES:
                taken: dict[str | None, float] = {UNCHECKED: least(case, None, messages, Path(place))}
                for name in (None, *OBSERVERS, AGAIN):
                    taken[name] = least(case, None if name == AGAIN else name, messages)
                for name, micros in taken.items():
                    found[case, name] = min(micros, found.get((case, name), float("inf")))
    rows = {(case, name): each - found[case, None] for (case, name), each in found.items() if name is not None}
    rows |= {(case, UNCHECKED): -rows[case, UNCHECKED] for case in CASES}
    return {row: round(each, 1) + 0.0 for row, each in rows.items()}, checks  # 0.0 has no sign then


def table(rows: Mapping[tuple[str, str], float], checks: int, rounds: int) -> str:
    """A row for each observer, and what follows from them."""
    python = f"Python {sys.version.split()[0]}"
    titles, rules = " | ".join(CASES.values()), "|".join(["---:"] * len(CASES))
    text = _TEXT.format(python=python, rounds=rounds, titles=titles, rules=rules)
    for name in (AGAIN, UNCHECKED, *OBSERVERS):
        cells = " | ".join(f"{rows[case, name]:{'+' if name in (AGAIN, UNCHECKED) else ''}.1f}" for case in CASES)
        text += f"| {name} | {cells} |\n"
    noise = max(abs(rows[case, AGAIN]) for case in CASES)
    checked, nothing = (max(rows[case, name] for case in CASES) for name in (UNCHECKED, NOTHING))
    measurable = "nothing that could be measured" if checked <= noise else "**more than could be put down to chance**"
    verdict = f"{'less' if nothing < LIMIT else '**not less**'} than the {LIMIT:g} µs that are its limit"
    says = f"""The first row is the same code twice: what is less than its {noise:.1f} µs cannot be measured here.
        Without an observer, the {checks} checks for one in the sources cost {checked:+.1f} µs at most: {measurable}. An
        observer that does nothing costs {nothing:.1f} µs at most, {verdict}."""
    return f"{text}\n{textwrap.fill(' '.join(says.split()), 120)}\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.observers", description=__doc__)
    parser.add_argument("--messages", type=int, default=MESSAGES, help=f"of one run ({MESSAGES})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"runs of each ({ROUNDS})")
    options = parser.parse_args()
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    text = table(*costs(options.messages, options.rounds), options.rounds)
    PAGE.write_text(before + BEGIN + text + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
