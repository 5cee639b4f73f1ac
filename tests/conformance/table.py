"""docs/conformance.md: what passed on each pair of transport and broker, what is emulated there, and what cannot be."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.conformance.pairs import FEATURES, KINDS, TABLED, Kind
from tests.conformance.record import ASYNCIO, AWAITED, FAILED, PASSED, REFUSED, SKIPPED, Line

from redelivery.testing.brokers.specs import SPECS
from redelivery.transports.dialects import hornetq

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "conformance.md"
PASS, EMULATED, UNSUPPORTED, FAILS, NOT_RUN = "pass", "emulated", "unsupported", "**fails**", "**not run**"
_LAST_EMBEDDED = "| `amqp-embedded`"  # the rows of those with a store follow it
NOT_COUNTED = "-"
_PAIR_HEADS = (
    "| pair | transport | broker | passed | refused, as it must be | not run | passed with asyncio |",
    "|---|---|---|---|---|---|---|",
)
_BEFORE_ASYNCIO = 6  # columns
_NUMBERS = re.compile(r" \[(\d+(?:, \d+)*)\]")  # of notes
HORNETQ_REFUSED = "test_refused.py"
# What a test concerns by what it names, where neither a mark `needs` nor `Pair.can` says so.
_BY_NAME = {"TRANSACTED": "transactions", "dead_letters": "dead letters"}

_TITLE = """\
# What each pair of transport and broker can do

One suite, `tests/conformance`, runs on every pair: the embedded broker, also with a store, and five real brokers of
these versions; most of it once more with asyncio, which the last column of this table counts (-: not counted yet). The
tables below have no column for a pair with a store: what it can do is what the pair without one can, or its tests would
have failed.

"""
_HEAD = """\
{title}{pairs}

This page is written by `make nightly` (`.venv/bin/python scripts/conformance-table`) from the record of a run of all
tests on all pairs; `make test` holds it to the table of pairs in `tests/conformance/pairs.py`. In the cells: **pass**:
the tests of it passed; **emulated**: they did, and we make up for what the broker lacks, as the note says;
**unsupported**: the broker cannot, for the reason in the note, and where an application asks for it, a clear error says
so (or the test is skipped).

{amqp_of_hornetq}
"""
_FEATURES = "\n## Features that not every broker has\n\n"
_AREAS = """
## Everything else, by subject

Numbers of notes: what of it the pair cannot do.

"""
_NOTES = "\n## Notes\n\n"
_FAILURES = "\n## What failed in that run\n\n"


def page(lines: Sequence[Line]) -> str:
    """The page for that record."""
    return "".join(
        (
            _HEAD.format(title=_TITLE, pairs=_pairs(lines), amqp_of_hornetq=_amqp_of_hornetq(lines)),
            _FEATURES,
            features_table(lambda feature, kind: _feature_cell(feature, kind, lines)),
            _AREAS,
            _table(titles(), lambda file, kind: _area_cell(file, kind, lines)),
            _NOTES,
            notes(),
            _failures(lines),
        )
    )


def with_stored_rows(written: str, lines: Sequence[Line]) -> str:
    """The page ``written`` with the counts of the pairs with a store from that record, and all else as it was."""
    rows = "".join(f"{_pair(kind, lines, _counted(written, kind))}\n" for kind in KINDS.values() if kind.stored)
    table = "".join(
        f"{line}\n{rows if line.startswith(_LAST_EMBEDDED) else ''}"
        for line in written[written.index("| pair |") :].splitlines()
        if not any(line.startswith(f"| `{kind.name}`") for kind in KINDS.values() if kind.stored)
    )
    return restated(_TITLE + table)


def with_asyncio(written: str, lines: Sequence[Line]) -> str:
    """The page ``written`` with what passed with asyncio on the pairs of that record, and all else as it was."""
    head, rest = written[written.index("| pair |") :].split("\n\n", 1)
    counts = {f"| `{kind.name}` ": _asyncio(kind, lines, _counted(written, kind)) for kind in KINDS.values()}
    rows = [_cut(line) + counts[line[: line.index("|", 2)]] + " |" for line in head.splitlines()[2:]]
    return restated(_TITLE + "\n".join([*_PAIR_HEADS, *rows]) + f"\n\n{rest}")


def with_feature(written: str, lines: Sequence[Line], feature: str) -> str:
    """The page ``written`` with the row of that feature, on the pairs of that record, and all else as it was."""
    start = f"| {_escaped(feature)} | "
    (row,) = (line for line in written.splitlines() if line.startswith(start))
    cells = row.removeprefix(start).removesuffix(" |").split(" | ")
    run = {line.pair for line in lines}
    kinds = zip(TABLED.values(), cells, strict=True)
    new = [_feature_cell(feature, kind, lines) if kind.name in run else cell for kind, cell in kinds]
    return written.replace(row, f"{start}{' | '.join(new)} |")


def restated(written: str) -> str:
    """The page ``written`` with a row for each feature of `pairs.py`, and its notes; a new row was not run."""
    texts = {_escaped(text): number for text, number in _numbers().items()}
    page_of_tables, notes_written = written.split(_NOTES, 1)
    numbers = {
        number: str(texts[text])
        for number, text in (line.removesuffix(".").split(". ", 1) for line in notes_written.splitlines() if line)
        if text in texts
    }
    before, table = page_of_tables.split(_FEATURES, 1)
    features, areas = table.split(_AREAS, 1)
    features, areas = (_NUMBERS.sub(lambda found: _renumbered(found, numbers), each) for each in (features, areas))
    rows = {line.split(" | ")[0]: line for line in features.splitlines()[2:]}
    new = features_table(lambda feature, kind: stated(feature, kind) if feature in kind.cannot else NOT_RUN)
    merged = [
        line if index < 2 else rows.get(line.split(" | ")[0], line) for index, line in enumerate(new.splitlines())
    ]
    return before + _FEATURES + "\n".join(merged) + "\n" + _AREAS + areas + _NOTES + notes()


def _renumbered(found: re.Match[str], numbers: Mapping[str, str]) -> str:
    kept = sorted(int(numbers[each]) for each in found[1].split(", ") if each in numbers)
    return f" [{', '.join(map(str, kept))}]" if kept else ""


def wrong(lines: Iterable[Line]) -> list[str]:
    """The tests that failed, or were skipped for a reason that is none of the pair's."""
    return [
        f"{line.test}: {line.outcome} {line.reason}".rstrip()
        for line in lines
        if line.outcome == FAILED
        or (line.outcome == SKIPPED and line.pair and line.reason not in (*_reasons(line.pair), AWAITED))
    ]


def features_table(cell: Callable[[str, Kind], str]) -> str:
    """One row for each feature of `pairs.py`."""
    return _table({feature: _escaped(feature) for feature in sorted(FEATURES, key=str.lower)}, cell)


def stated(feature: str, kind: Kind) -> str:
    """The cell that `pairs.py` claims."""
    if feature in kind.cannot:
        return f"{UNSUPPORTED} [{_numbers()[kind.cannot[feature]]}]"
    if feature in kind.emulates:
        return f"{EMULATED} [{_numbers()[kind.emulates[feature]]}]"
    return PASS


def notes() -> str:
    """All reasons and emulations, numbered."""
    return "".join(f"{number}. {_escaped(text)}.\n" for text, number in _numbers().items())


@cache
def titles() -> Mapping[str, str]:
    """The subject of each file of tests that runs on the pairs: the first sentence of its docstring."""
    found = {}
    for path in sorted(HERE.glob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if "stage: Stage" in source or "desk: Desk" in source:
            title = (ast.get_docstring(ast.parse(source)) or path.name).splitlines()[0].rstrip(".")
            found[path.name] = f"[{_escaped(title)}](../tests/conformance/{path.name})"
    return found


@cache
def concerned() -> Mapping[str, frozenset[str]]:
    """The features that each test concerns, as ``test_file.py::test_name``: read from its marks and its body."""
    found = {}
    for path in sorted(HERE.glob("test_*.py")):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        named = {
            target.id: _named(node, {})
            for node in body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        everywhere = named.get("pytestmark", frozenset())
        for node in body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found[f"{path.name}::{node.name}"] = everywhere | _named(node, named)
    return found


def _named(tree: ast.AST, marks: Mapping[str, frozenset[str]]) -> frozenset[str]:
    features: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in {"needs", "can"}:
            features.update(str(each.value) for each in node.args if isinstance(each, ast.Constant))
        elif isinstance(node, ast.Attribute) and node.attr in _BY_NAME:
            features.add(_BY_NAME[node.attr])
        elif isinstance(node, ast.Name):
            features |= marks.get(node.id, frozenset())
    return frozenset(features)


def _failures(lines: Sequence[Line]) -> str:
    failed = "".join(f"- `{line.test}`\n" for line in lines if line.outcome == FAILED)
    return _FAILURES + failed if failed else ""


def _feature_cell(feature: str, kind: Kind, lines: Sequence[Line]) -> str:
    if feature in kind.cannot:
        return stated(feature, kind)
    of_it = [
        line for line in lines if line.pair == kind.name and feature in concerned().get(line.test.partition("[")[0], ())
    ]
    return _cannot(of_it) or _reported([line.outcome for line in of_it]) or stated(feature, kind)


def _area_cell(file: str, kind: Kind, lines: Sequence[Line]) -> str:
    of_it = [line for line in lines if line.pair == kind.name and line.module == file]
    return _cannot(of_it) or _reported([line.outcome for line in of_it]) or PASS + _references(of_it)


def _cannot(lines: Sequence[Line]) -> str | None:
    """The cell where the pair can do none of them."""
    impossible = bool(lines) and all(line.outcome in {REFUSED, SKIPPED} and line.reason in _numbers() for line in lines)
    return UNSUPPORTED + _references(lines) if impossible else None


def _references(lines: Sequence[Line]) -> str:
    numbers = sorted({_numbers()[line.reason] for line in lines if line.reason in _numbers()})
    return f" [{', '.join(str(number) for number in numbers)}]" if numbers else ""


def _reported(outcomes: Sequence[str]) -> str | None:
    """What is wrong with them; None: nothing."""
    if FAILED in outcomes:
        return FAILS
    return None if {PASSED, REFUSED} & set(outcomes) else NOT_RUN


def _reasons(pair: str) -> Iterable[str]:
    return KINDS[pair].cannot.values()


@cache
def _numbers() -> Mapping[str, int]:
    """The number of each reason, in the order of the table's rows and columns."""
    texts: dict[str, int] = {}
    for feature in sorted(FEATURES, key=str.lower):
        for kind in TABLED.values():
            for text in (kind.cannot.get(feature), kind.emulates.get(feature)):
                if text is not None:
                    texts.setdefault(text, len(texts) + 1)
    return texts


def _pairs(lines: Sequence[Line]) -> str:
    return "\n".join([*_PAIR_HEADS, *(_pair(kind, lines) for kind in KINDS.values())])


def _pair(kind: Kind, lines: Sequence[Line], with_asyncio: str = NOT_COUNTED) -> str:
    """``with_asyncio``: how many passed with it, where the record does not say so."""
    outcomes = Counter(line.outcome for line in lines if line.pair == kind.name and line.module != ASYNCIO)
    broker = (
        ("embedded, with a store" if kind.stored else "embedded") if kind.broker is None else SPECS[kind.broker].title
    )
    transport = {"vm": "none: one process", "stomp": "STOMP 1.2", "amqp": "AMQP 1.0"}[kind.protocol]
    numbers = " | ".join(str(outcomes[each]) for each in (PASSED, REFUSED, SKIPPED))
    return f"| `{kind.name}` | {transport} | {broker} | {numbers} | {_asyncio(kind, lines, with_asyncio)} |"


def _asyncio(kind: Kind, lines: Sequence[Line], otherwise: str) -> str:
    outcomes = [line.outcome for line in lines if line.pair == kind.name and line.module == ASYNCIO]
    return str(outcomes.count(PASSED)) if outcomes else otherwise


def _counted(written: str, kind: Kind) -> str:
    """What the page says of a pair with asyncio."""
    row = next((line for line in written.splitlines() if line.startswith(f"| `{kind.name}` | ")), "")
    cells = row.strip("| ").split(" | ")
    return cells[_BEFORE_ASYNCIO] if len(cells) > _BEFORE_ASYNCIO else NOT_COUNTED


def _cut(row: str) -> str:
    """Its cells before the last one."""
    return "".join(f"| {cell} " for cell in row.strip("| ").split(" | ")[:_BEFORE_ASYNCIO]) + "| "


def _amqp_of_hornetq(lines: Sequence[Line]) -> str:
    problem = _reported([line.outcome for line in lines if line.module == HORNETQ_REFUSED])
    said = f" {problem}" if problem else ""
    return (
        f"HornetQ over AMQP is refused where it connects, with an `UnsupportedError`:{said} {hornetq.AMQP.unsupported}."
    )


def _table(rows: Mapping[str, str], cell: Callable[[str, Kind], str]) -> str:
    lines = [f"| | {' | '.join(f'`{name}`' for name in TABLED)} |", f"|---|{'---|' * len(TABLED)}"]
    for key, title in rows.items():
        lines.append(f"| {title} | {' | '.join(cell(key, kind) for kind in TABLED.values())} |")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")
