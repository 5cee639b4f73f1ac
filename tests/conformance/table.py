"""docs/conformance.md: what passed on each pair of transport and broker, what is emulated there, and what cannot be."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from tests.conformance import queues_page
from tests.conformance.pairs import FEATURES, KINDS, ON, TABLED, USUAL_VERSION, Kind
from tests.conformance.record import ASYNCIO, ELSEWHERE, FAILED, PASSED, REFUSED, SKIPPED, Line

from redelivery.testing.brokers.specs import SPECS
from redelivery.transports.dialects import hornetq

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "conformance.md"
PASS, EMULATED, UNSUPPORTED, FAILS, NOT_RUN = "pass", "emulated", "unsupported", "**fails**", "**not run**"
NOT_COUNTED = "-"
PAIR_HEADS = (
    "| pair | transport | broker | passed | refused, as it must be | not run | passed with asyncio |",
    "|---|---|---|---|---|---|---|",
)
HORNETQ_REFUSED = "test_refused.py"
# What a test concerns by what it names, where neither a mark `needs` nor `Pair.can` says so.
_BY_NAME = {"TRANSACTED": "transactions", "dead_letters": "dead letters"}

TITLE = """\
# What each pair of transport and broker can do

One suite, `tests/conformance`, runs on every pair: the embedded broker, also with a store, and real brokers of these
versions; most of it once more with asyncio, which the last column of this table counts (-: not counted yet). The tables
below have no column for a pair with a store: what it can do is what the pair without one can, or its tests would have
failed. Nor has RabbitMQ 4.3, which is under `stomp-rabbitmq4` and `amqp-rabbitmq4`: what passed there passed on 4.0 and
on 4.3; nor ActiveMQ Classic 6, which has the dialect of 5.18.

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
FEATURES_HEAD = "\n## Features that not every broker has\n\n"
AREAS_HEAD = """
## Everything else, by subject

Numbers of notes: what of it the pair cannot do.

"""
NOTES_HEAD = "\n## Notes\n\n"
FAILURES_HEAD = "\n## What failed in that run\n\n"


def page(record: Sequence[Line]) -> str:
    """The page for that record."""
    lines = without_queues(record)
    of = by_kind(lines)
    return "".join(
        (
            _HEAD.format(title=TITLE, pairs=_pairs(lines), amqp_of_hornetq=_amqp_of_hornetq(lines)),
            FEATURES_HEAD,
            features_table(lambda feature, kind: feature_cell(feature, kind, of[kind.name])),
            AREAS_HEAD,
            table(titles(), lambda file, kind: area_cell(file, of[kind.name])),
            queues_page.section(record),
            NOTES_HEAD,
            notes(),
            _failures(lines),
        )
    )


def by_kind(lines: Iterable[Line]) -> Mapping[str, Sequence[Line]]:
    """The lines of each kind of pair, by its name."""
    found: dict[str, list[Line]] = {name: [] for name in KINDS}
    for line in lines:
        found.setdefault(line.kind, []).append(line)
    return found


def without_queues(lines: Sequence[Line]) -> Sequence[Line]:
    """All but those of the queues of others, which have a table of their own."""
    return [line for line in lines if line.module != queues_page.MODULE]


def wrong(lines: Iterable[Line]) -> list[str]:
    """The tests that failed, or were skipped for a reason that is none of the pair's."""
    return [
        f"{line.test}: {line.outcome} {line.reason}".rstrip()
        for line in lines
        if line.outcome == FAILED
        or (line.outcome == SKIPPED and line.pair and line.reason not in (*_reasons(line.pair), *ELSEWHERE))
    ]


def features_table(cell: Callable[[str, Kind], str]) -> str:
    """One row for each feature of `pairs.py`."""
    return table({feature: escaped(feature) for feature in sorted(FEATURES, key=str.lower)}, cell)


def stated(feature: str, kind: Kind) -> str:
    """The cell that `pairs.py` claims."""
    if feature in kind.cannot:
        return f"{UNSUPPORTED} [{note_numbers()[kind.cannot[feature]]}]"
    if feature in kind.emulates:
        return f"{EMULATED} [{note_numbers()[kind.emulates[feature]]}]"
    return PASS


def notes() -> str:
    """All reasons and emulations, numbered."""
    return "".join(f"{number}. {escaped(text)}.\n" for text, number in note_numbers().items())


@cache
def titles() -> Mapping[str, str]:
    """The subject of each file of tests that runs on the pairs: the first sentence of its docstring."""
    found = {}
    for path in sorted(HERE.glob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if "stage: Stage" in source or "desk: Desk" in source or "own: Own" in source:
            title = (ast.get_docstring(ast.parse(source)) or path.name).splitlines()[0].rstrip(".")
            found[path.name] = f"[{escaped(title)}](../tests/conformance/{path.name})"
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
    return FAILURES_HEAD + failed if failed else ""


def feature_cell(feature: str, kind: Kind, lines: Sequence[Line]) -> str:
    """From the lines of that kind."""
    if feature in kind.cannot:
        return stated(feature, kind)
    of_it = [line for line in lines if feature in concerned().get(line.test.partition("[")[0], ())]
    return _cannot(of_it) or _reported([line.outcome for line in of_it]) or stated(feature, kind)


def area_cell(file: str, lines: Sequence[Line]) -> str:
    """From the lines of one kind."""
    of_it = [line for line in lines if line.module == file]
    return _cannot(of_it) or _reported([line.outcome for line in of_it]) or PASS + _references(of_it)


def _cannot(lines: Sequence[Line]) -> str | None:
    """The cell where the pair can do none of them."""
    impossible = bool(lines) and all(
        line.outcome in {REFUSED, SKIPPED} and line.reason in note_numbers() for line in lines
    )
    return UNSUPPORTED + _references(lines) if impossible else None


def _references(lines: Sequence[Line]) -> str:
    numbers = sorted({note_numbers()[line.reason] for line in lines if line.reason in note_numbers()})
    return f" [{', '.join(str(number) for number in numbers)}]" if numbers else ""


def _reported(outcomes: Sequence[str]) -> str | None:
    """What is wrong with them; None: nothing."""
    if FAILED in outcomes:
        return FAILS
    return None if {PASSED, REFUSED} & set(outcomes) else NOT_RUN


def _reasons(pair: str) -> Iterable[str]:
    return KINDS[pair.partition(ON)[0]].cannot.values()


@cache
def note_numbers() -> Mapping[str, int]:
    """The number of each reason, in the order of the table's rows and columns."""
    texts: dict[str, int] = {}
    for feature in sorted(FEATURES, key=str.lower):
        for kind in TABLED.values():
            for text in (kind.cannot.get(feature), kind.emulates.get(feature)):
                if text is not None:
                    texts.setdefault(text, len(texts) + 1)
    return texts


def _pairs(lines: Sequence[Line]) -> str:
    return "\n".join([*PAIR_HEADS, *(row for kind in KINDS.values() for row in pair_rows(kind, lines))])


def pair_rows(kind: Kind, lines: Sequence[Line]) -> Sequence[str]:
    """One for each version of its broker in that record; of a pair without a run one that says so."""
    run = sorted({line.pair for line in lines if line.kind == kind.name}) or [kind.name]
    return [_pair(kind, title, [line for line in lines if line.pair == title]) for title in run]


def _pair(kind: Kind, title: str, lines: Sequence[Line]) -> str:
    outcomes = Counter(line.outcome for line in lines if line.module != ASYNCIO)
    broker = (
        ("embedded, with a store" if kind.stored else "embedded") if kind.broker is None else SPECS[kind.broker].title
    )
    if kind.broker == "rabbitmq4":
        broker = f"RabbitMQ {title.partition(ON)[2] or USUAL_VERSION}"
    transport = {"vm": "none: one process", "stomp": "STOMP 1.2", "amqp": "AMQP 1.0"}[kind.protocol]
    numbers = " | ".join(str(outcomes[each]) for each in (PASSED, REFUSED, SKIPPED))
    return f"| `{title}` | {transport} | {broker} | {numbers} | {passed_with_asyncio(lines) or NOT_COUNTED} |"


def passed_with_asyncio(lines: Sequence[Line]) -> str:
    """How many; empty: that was not run."""
    outcomes = [line.outcome for line in lines if line.module == ASYNCIO]
    return str(outcomes.count(PASSED)) if outcomes else ""


def _amqp_of_hornetq(lines: Sequence[Line]) -> str:
    problem = _reported([line.outcome for line in lines if line.module == HORNETQ_REFUSED])
    said = f" {problem}" if problem else ""
    return (
        f"HornetQ over AMQP is refused where it connects, with an `UnsupportedError`:{said} {hornetq.AMQP.unsupported}."
    )


def table(rows: Mapping[str, str], cell: Callable[[str, Kind], str]) -> str:
    lines = [f"| | {' | '.join(f'`{name}`' for name in TABLED)} |", f"|---|{'---|' * len(TABLED)}"]
    for key, title in rows.items():
        lines.append(f"| {title} | {' | '.join(cell(key, kind) for kind in TABLED.values())} |")
    return "\n".join(lines) + "\n"


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*").replace("<", "\\<")
