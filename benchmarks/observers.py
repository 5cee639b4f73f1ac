"""``python -m benchmarks.observers``: what an ``observer=`` costs a message, as a table in docs/guide/observing.md.

What the checks for one cost without one is the difference to the client's sources without these checks.
"""

from __future__ import annotations

import argparse
import ast
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
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
UNCHECKED: Final = "none, beside sources without the checks for one"
NOTHING: Final = "a function that does nothing"
_ASKED: Final = frozenset(("observed", "tracer"))  # attributes that are None without an observer
_TEXT: Final = """What it costs a message, in µs of processor, written by `python -m benchmarks.observers` ({python}):
the least of {rounds} runs, in turns, less that of the runs without one."""
_SAYS: Final = """The first row is the same code twice: what is less than its {noise:.1f} µs cannot be measured here.
Without an observer, the {checks} checks for one in the sources cost {checked:+.1f} µs at most: {measurable}. An
observer that does nothing costs {nothing:.1f} µs at most, {verdict}."""


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


def least(case: str, name: str | None, messages: int, tree: Path = HERE) -> float:
    """Return the same in a process of its own, with the sources of the tree."""
    return float(in_process(f"observers.one({case!r}, {name!r}, {messages})", tree=tree))


def costs(messages: int, rounds: int) -> tuple[dict[tuple[str, str], float], int]:
    """Return the µs that each row adds to each case, and the number of checks in the sources.

    Of `UNCHECKED`: what the sources take more than they do without those checks.
    """
    found: dict[tuple[str, str | None], float] = {}
    with tempfile.TemporaryDirectory() as place:
        checks = unchecked(Path(place))
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


def text(rows: Mapping[tuple[str, str], float], checks: int, rounds: int, python: str) -> str:
    """Return a row for each observer, and what follows from them."""
    lines = paragraphs(_TEXT, python=python, rounds=rounds)
    signs = {name: "+" if name in (AGAIN, UNCHECKED) else "" for name in (AGAIN, UNCHECKED, *OBSERVERS)}
    cells = [(name, *(f"{rows[case, name]:{sign}.1f}" for case in CASES)) for name, sign in signs.items()]
    heads, _, *its_rows = table(("`observer=`", *CASES.values()), cells)
    lines += [heads, "|---|---:|---:|", *its_rows, ""]
    noise = max(abs(rows[case, AGAIN]) for case in CASES)
    checked, nothing = (max(rows[case, name] for case in CASES) for name in (UNCHECKED, NOTHING))
    measurable = "nothing that could be measured" if checked <= noise else "**more than could be put down to chance**"
    verdict = f"{'less' if nothing < LIMIT else '**not less**'} than the {LIMIT:g} µs that are its limit"
    numbers = {"noise": noise, "checks": checks, "checked": checked, "nothing": nothing}
    lines += paragraphs(_SAYS, measurable=measurable, verdict=verdict, **numbers)
    return "\n".join(lines)


def seen(page: str) -> tuple[dict[tuple[str, str], float], int, int, str]:
    """Return what `text` was made of, from its page."""
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    rows = {(case, name): float(cell) for name, *cells in lines[1:] for case, cell in zip(CASES, cells, strict=True)}
    words = " ".join(page.split())
    (checks,), (rounds,), (python,) = (
        re.findall(each, words) for each in (r"the (\d+) checks", r"the least of (\d+) runs", r"\((Python [\d.]+)\)")
    )
    return rows, int(checks), int(rounds), python


def unchecked(place: Path) -> int:
    """Write the sources without their checks there, as ``src/redelivery``; how many were left out."""
    root = place / "src" / "redelivery"
    shutil.copytree(HERE / "src" / "redelivery", root, ignore=shutil.ignore_patterns("__pycache__"))
    found = 0
    for file in sorted((root / "client").rglob("*.py")):
        source, checks = without_checks(file.read_text(encoding="utf-8"))
        if checks:
            file.write_text(source, encoding="utf-8")
        found += checks
    return found


def without_checks(source: str) -> tuple[str, int]:
    """Return the source as it would be if there were no observers, and how many ``if`` it had for them."""
    removal = _Removal()
    changed = removal.visit(ast.parse(source))
    return ast.unparse(ast.fix_missing_locations(changed)), removal.found


class _Removal(ast.NodeTransformer):
    found = 0

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        answer = _answer(node.test)
        if answer is None:
            return node
        self.found += 1
        return (node.body if answer else node.orelse) or [ast.Pass()]


def _answer(test: ast.expr) -> bool | None:
    """Return the outcome without an observer; None where that depends on more."""
    match test:
        case ast.Compare(left=ast.Attribute(attr=name), ops=[operator], comparators=[ast.Constant(value=None)]):
            return isinstance(operator, ast.Is) if name in _ASKED else None
        case ast.BoolOp(op=operator, values=values):
            decides = isinstance(operator, ast.Or)  # what one of them must be to decide it
            return decides if any(_answer(each) is decides for each in values) else None
    return None


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
        found = (*costs(options.messages, options.rounds), options.rounds, python)
    new = before + BEGIN + text(*found) + END + after
    if not options.check:
        PAGE.write_text(new, encoding="utf-8")
    elif new != old:
        sys.exit(f"{PAGE} is not what `python -m benchmarks.observers` writes")


if __name__ == "__main__":
    main()
