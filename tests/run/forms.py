"""The tests of a run: in the first form or the short one (`make test`), all (`make test-all`), or at length (nightly).

The environment says it (``REDELIVERY_FORM``), since pytest-xdist hands the environment on to its processes; `choose`
sets it where nobody has. A test that is named on the command line (``file::test``) always runs.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar, cast
from zlib import crc32

import pytest
from tests.run import scopes
from tests.run.listed import (
    ALIKE,
    BRIEF_FILES,
    CHEAP_PAIRS,
    EACH,
    EMBEDDED,
    FEW,
    KILLS,
    LOOPS,
    NOT_FIRST,
    OF_LOOPS,
    ONCE,
    ONE_OF,
    ONE_OF_A_PROTOCOL,
    ONE_PAIR,
    SHELLS,
    STORED_FILES,
    TRACES,
)

from redelivery.testing.brokers.debian import DebianPackages
from redelivery.testing.brokers.real import missing, required, wanted
from redelivery.testing.brokers.specs import SPECS

FIRST, SHORT, ALL, NIGHTLY = FORMS = ("first", "short", "all", "nightly")
_VARIABLE: Final = "REDELIVERY_FORM"

MARKERS: Final = (
    "long_form(on='embedded', but='vm'): in `make test-all`, not in `make test`; if it says so, on pairs without a "
    "real broker only, or on all pairs but this one",
    "short_form: in `make test` where a real broker is, and in the longer forms; not in the first form",
    "in_turns(name, …): of the tests that differ only in parameters of these names, or in any, the first and the short "
    "form have one, with each rule of a file the next one",
    "may_hide: run again where it fails, as Artemis and HornetQ may hide a message (tests/run/again.py)",
    f"everywhere_in_long_form: no broker has a part in it, so `make test` runs it on {', '.join(CHEAP_PAIRS)} only",
)


_COPY, _ORIGINAL = re.compile(r"test_asyncio\.py::test_(\w+?)__"), r"test_\1.py::test_"
_LONGER: Final = {FIRST: ("long_form", "short_form"), SHORT: ("long_form",)}
_Kind = TypeVar("_Kind")
_PARAMETER: Final = type(pytest.param())


def form() -> str:
    """The form of this run: one of `FORMS`."""
    chosen = os.environ.get(_VARIABLE) or SHORT
    if chosen not in FORMS:
        raise pytest.UsageError(f"{_VARIABLE} is {chosen!r}: not one of {', '.join(FORMS)}")
    return chosen


def choose(config: pytest.Config) -> None:
    """The first form is that of a run of all tests where no real broker is, and nobody asked for one."""
    all_tests = config.args_source is config.ArgsSource.TESTPATHS
    chosen = os.environ.get(_VARIABLE) or config.option.keyword or config.option.markexpr
    if all_tests and not chosen and not any(required(each) or _found(each) for each in SPECS):
        os.environ[_VARIABLE] = FIRST


def _found(broker: str) -> bool:
    """Whether it can be started without apt, which would fetch 42 MB that nobody asked for."""
    named, source = os.environ.get(f"REDELIVERY_{broker.upper()}_URL"), SPECS[broker].source
    return _possible(broker) and (bool(named) or not isinstance(source, DebianPackages) or source.fetched)


@cache
def here(broker: str) -> bool:
    """Whether this run has tests of a broker: it is on this machine, or must be."""
    return form() != FIRST and (required(broker) or _possible(broker))


def _possible(broker: str) -> bool:
    return wanted(broker) and missing(broker) is None


def _named(config: pytest.Config) -> bool:
    return any("::" in each for each in config.args)


def brief() -> bool:
    """Whether this run has a choice of the tests, in one of the forms of ``make test``."""
    return form() in (FIRST, SHORT)


def at_length() -> bool:
    """Whether this run is the night's."""
    return form() == NIGHTLY


def examples(short: int) -> int:
    """How many examples Hypothesis tries where the short form tries so many."""
    return {FIRST: max(5, short // 5), NIGHTLY: short * 10}.get(form(), short)


def every(number: int) -> int:
    """Where the short form tries each so-many-th of many alike: the first one fewer, and the longer ones all."""
    return {FIRST: number * 8, SHORT: number}.get(form(), 1)


def kinds(config: pytest.Config, function: pytest.Function, suite: Sequence[_Kind]) -> Sequence[_Kind]:
    """The pairs of a suite, or targets, that a test runs on; one at least, for `leave_out` to leave out."""
    if not brief() or _named(config):
        return suite
    found = [kind for kind in suite if _on(kind, function)] or suite[:1]
    marks = list(function.iter_markers("in_turns"))
    if not marks or any(mark.args for mark in marks):
        return found
    return _one([kind for kind in found if _can(kind, function)] or found, function.name)


def in_turns(config: pytest.Config, alike: Sequence[_Kind], rule: str) -> Sequence[_Kind]:
    """Of what a rule is tried on, the one that the first form has; all of it in the others."""
    return alike if form() != FIRST or _named(config) else _one(alike, rule)


def _one(alike: Sequence[_Kind], rule: str) -> Sequence[_Kind]:
    return [alike[crc32(rule.encode()) % len(alike)]]


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Make no test of a parameter that is marked as a longer form's: to make it, and leave it out, takes long."""
    make = metafunc.parametrize

    def fewer(names: str | Sequence[str], values: Iterable[Any], *args: Any, **options: Any) -> None:
        values = list(values)
        kept = [
            place for place, each in enumerate(values) if not (isinstance(each, _PARAMETER) and _longer(each.marks))
        ] or [0]
        if isinstance(options.get("ids"), Sequence) and values:
            options["ids"] = [options["ids"][place] for place in kept]
        make(names, [values[place] for place in kept] if values else values, *args, **options)

    if brief() and not _named(metafunc.config):
        cast(Any, metafunc).parametrize = fewer  # for all who call it, pytest's own for marks and fixtures, too


def ignored(config: pytest.Config, file: Path) -> bool:
    """Whether this form has nothing of a file: it is not even imported."""
    return form() == FIRST and not _named(config) and any(map(file.match, NOT_FIRST))


def unmade(collector: pytest.Collector, name: str, marks: Iterable[pytest.Mark]) -> bool:
    """Whether this form has no test of a function, or of a class, whatever the parameters: to make them takes long."""
    if not brief() or _named(collector.config):
        return False
    if form() == FIRST and ONE_OF.get(collector.path.name, name) != name:
        return True
    return _longer((*collector.iter_markers(), *marks))


def _longer(marks: Iterable[Any]) -> bool:
    return any(mark.name in _LONGER[form()] and not mark.kwargs for mark in marks)


def leave_out(config: pytest.Config, items: list[pytest.Item], possible: Callable[[pytest.Item], bool]) -> None:
    """Deselect what this form has not, and what is not possible on this machine; pytest's last line counts it."""
    if _named(config):
        return
    kept = [item for item in items if possible(item) and (not brief() or _in_form(item))]
    if brief():
        kept = list(_marked(kept))
        kept = list(_once(kept) if form() == FIRST else _in_turns(kept))
    left_out = set(items).difference(kept)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def _marked(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Of the tests that differ only in what their mark `in_turns` names, one: with each rule of a file the next one."""
    alike: dict[tuple[object, ...], list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker("in_turns")
        if mark is None:
            alike[item.nodeid,] = [item]
            continue
        others = {name: repr(value) for name, value in scopes.parameters(item).items() if name not in mark.args}
        alike.setdefault((item.nodeid.partition("[")[0], *sorted(others.items() if mark.args else ())), []).append(item)
    turns: Counter[Path] = Counter()
    for found in alike.values():
        turns[found[0].path] += 1
        able = [item for item in found if _able(item)] or found
        yield able[turns[found[0].path] % len(able)]


def _once(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Each rule once: of the tests that differ only in their protocol or kind of event loop, one, in turns."""
    alike: dict[str, list[pytest.Item]] = {}
    for item in items:
        if not item.get_closest_marker("short_form"):
            alike.setdefault(_rule(item), []).append(item)
    numbers: Counter[str] = Counter()
    for rule, found in alike.items():
        name = found[0].nodeid.partition("[")[0]
        if numbers[name] % FEW.get(found[0].path.name, 1) == 0:
            able = [item for item in found if _able(item)] or found
            yield able[crc32(rule.encode()) % len(able)]
        numbers[name] += 1


def _in_turns(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """On a real pair one of a rule's modes, kinds and sizes, on the next pair the next one; all on embedded ones.

    A rule of a file in `ONE_OF_A_PROTOCOL` is tried on one real pair of each protocol, and each of its modes, kinds and
    sizes on one embedded one; a recorded scenario and a rule of a command in `ONE_PAIR` on one real pair. A test of
    tasks has one kind of event loop, other tests another one.
    """
    chosen: dict[str, list[pytest.Item]] = {}
    alike: dict[str, dict[str, list[pytest.Item]]] = {}
    for item in _on_one_loop(items):
        rule, pair, ours = item.nodeid.partition("[")[0], _real_pair(item), item.path.name in ONE_OF_A_PROTOCOL
        if named := _pair_of_a_command(item):
            chosen.setdefault(item.nodeid.replace(named, "", 1), []).append(item)
        elif (embedded := _called(scopes.parameters(item).get("pair"))) in CHEAP_PAIRS and ours:
            chosen.setdefault(item.nodeid.replace(embedded, "", 1), []).append(item)
        elif pair is None:
            yield item
        elif item.path.match(TRACES):
            chosen.setdefault(f"{rule} {scopes.parameters(item)['scenario']}", []).append(item)
        elif ours:
            chosen.setdefault(f"{rule} {_protocol(pair)} {_able(item)}", []).append(item)
        else:
            alike.setdefault(f"{rule} {_protocol(pair)}", {}).setdefault(_called(pair), []).append(item)
    for rule, found in chosen.items():
        able = [item for item in found if _able(item)] or found
        yield able[crc32(rule.encode()) % len(able)]
    for rule, pairs in alike.items():
        for turn, found in enumerate(pairs.values(), rule.endswith("amqp")):
            yield found[turn % len(found)]


def _on_one_loop(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """Of the tests that differ only in their kind of event loop, one; all of those that are about the loop.

    So it is of the shells of threads and of tasks where they have one source, in the room of the client.
    """
    alike: dict[str, list[pytest.Item]] = {}
    for item in items:
        name, _, values = item.nodeid.partition("[")
        named = [LOOPS, *(each for each in scopes.parameters(item) if scopes.room(item) == "client")]
        loops = (_called(scopes.parameters(item).get(each)) for each in named)
        loop = "" if item.path.match(OF_LOOPS) else next((each for each in loops if each in SHELLS), "")
        alike.setdefault(f"{name} {values.replace(loop, '', 1)}", []).append(item)
    for rule, found in alike.items():
        yield found[crc32(rule.encode()) % len(found)]


def _real_pair(item: pytest.Item) -> object | None:
    """The pair with a real broker that a test runs on; a way to use one, which says nothing that it cannot, is none."""
    if item.path.match(TRACES):
        return scopes.parameters(item).get("target") if scopes.brokers(item) else None
    pair = scopes.parameters(item).get("kind" if item.path.name in KILLS else "pair")
    return pair if getattr(pair, "broker", None) and hasattr(pair, "cannot") else None


def _protocol(pair: object) -> str:
    return _called(pair).partition("-")[0]


def _pair_of_a_command(item: pytest.Item) -> str | None:
    """The pair with a real broker of a test of the command line, which names it by its parameter."""
    if item.path.name not in ONE_PAIR:
        return None
    values = [each for each in scopes.parameters(item).values() if isinstance(each, str)]
    return next((each for each in values if each.partition("-")[2] in SPECS), None)


def _rule(item: pytest.Item) -> str:
    """What a test has in common with those that say the same of another protocol, or by the other shell."""
    if scopes.room(item) not in ONCE or item.path.name in EACH:
        return item.nodeid
    name, _, values = item.nodeid.partition("[")
    for each in scopes.parameters(item).values():
        if _called(each) in ALIKE:
            values = values.replace(_called(each), "", 1)
    return f"{_COPY.sub(_ORIGINAL, name)} {re.sub('-+', '-', values).strip('-]')}"


def _able(item: pytest.Item) -> bool:
    """Whether the test can say its rule here: within one process there is no connection to lose, nor to look at."""
    pair = scopes.parameters(item).get("pair")
    if pair is None:
        return not {"vm", "uvloop"} & set(map(_called, scopes.parameters(item).values()))
    return _can(pair, item)


def _can(pair: object, item: pytest.Item) -> bool:
    needs = {mark.args[0] for mark in item.iter_markers("needs")}
    if "outage" in getattr(item, "fixturenames", ()):
        needs.add("a lost connection")
    calls = item.function.__code__.co_names if isinstance(item, pytest.Function) else ()
    awaited = item.path.name == "test_asyncio.py" and "send_async" in calls  # and so not done there
    return not awaited and not needs & set(getattr(pair, "cannot", ()))


def _called(value: object) -> str:
    return value if isinstance(value, str) else str(getattr(value, "name", ""))


def _in_form(item: pytest.Item) -> bool:
    parameters = scopes.parameters(item)
    loops = {each for each in parameters.values() if isinstance(each, str)}
    if {"uvloop", "vm"} <= loops or ("uvloop" in loops and form() == FIRST):
        return False  # within one process no loop has a socket to watch
    kinds = [getattr(each, "kind", each) for each in parameters.values()]  # of a pair, of a test of tests/faults
    if any(getattr(each, "brief", False) for each in kinds) and item.path.name not in BRIEF_FILES:
        return False
    return _on(parameters.get("pair"), item)


def _on(pair: object, item: pytest.Item) -> bool:
    """Whether this form has the test on this pair, or without one."""
    name, broker, file = getattr(pair, "name", ""), getattr(pair, "broker", None), item.path.name
    for mark in item.iter_markers("long_form"):
        if "but" in mark.kwargs:
            if name != mark.kwargs["but"]:
                return False
        elif mark.kwargs.get("on") != EMBEDDED or not broker:
            return False
    if getattr(pair, "stored", False) and file not in STORED_FILES:
        return False
    if getattr(pair, "brief", False) and file not in BRIEF_FILES:
        return False
    if getattr(pair, "twin", None) or (broker and not here(broker)):
        return False
    return item.get_closest_marker("everywhere_in_long_form") is None or name in CHEAP_PAIRS
