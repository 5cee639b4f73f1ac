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
from typing import Final, TypeVar
from zlib import crc32

import pytest
from tests.run import scopes

from redelivery.testing.brokers.debian import DebianPackages
from redelivery.testing.brokers.real import missing, required, wanted
from redelivery.testing.brokers.specs import SPECS

FIRST, SHORT, ALL, NIGHTLY = FORMS = ("first", "short", "all", "nightly")
_VARIABLE: Final = "REDELIVERY_FORM"

# Where a rule that cannot depend on the broker is tried in the short form: on every machine, without a wait.
CHEAP_PAIRS: Final = ("vm", "stomp-embedded", "amqp-embedded")
EMBEDDED: Final = "embedded"
# Of the suite on the embedded broker with a store, what the short form has: the store's own tests look closer.
STORED_FILES: Final = ("test_counts.py", "test_transactions.py")
# Of the suite on a pair that differs from another one by its dialect only, what the short form has.
BRIEF_FILES: Final = (
    *("test_counts.py", "test_declaring.py", "test_destinations.py", "test_exhaustion.py"),
    "test_temporary.py",
)
# Of tests of the command line that say the same on each pair, the short form has one real pair for each rule, in turns.
ONE_PAIR: Final = ("test_canary.py", "test_receipts.py", "test_receipts_of_odd_letters.py")
# Of the suite's files whose rules are kept by our side of the wire, the short form has one real pair of each protocol
# for a rule, in turns, and one of those that cannot, and one embedded pair for each mode. What a broker decides
# (counts, dead letters, transactions, selectors, subscriptions, declaring, temporaries) stays on each.
ONE_OF_A_PROTOCOL: Final = (
    *("test_ack_modes.py", "test_batches.py", "test_body_type.py", "test_browser.py", "test_close.py"),
    *("test_connecting.py", "test_container_outages.py", "test_epochs.py", "test_events.py", "test_first_delivery.py"),
    *("test_java_faults.py", "test_kinds.py", "test_limit_over_losses.py", "test_listeners.py", "test_order.py"),
    *("test_raw_bodies.py", "test_receive_body.py", "test_reconnect.py", "test_recover.py", "test_repeated_sends.py"),
    *("test_request.py", "test_rollback.py", "test_sessions_apart.py", "test_spread.py", "test_threads.py"),
    *("test_timing.py", "test_undone_sends.py", "test_volume.py"),
)
KILLS: Final = ("test_kills.py",)  # which name their pair otherwise
TRACES: Final = "traces/test_traces.py"
# Of the first form: the rooms whose tests say a rule once for each protocol, and files of them that mean each protocol;
# what names one; and the files that it leaves out, as they test tests, benchmarks or packages, or start programs.
ONCE: Final = ("cli", "client", "conformance", "otel", "traces")
EACH: Final = ("test_raw_bodies.py", "test_uncopyable.py")
_COPY, _ORIGINAL = re.compile(r"test_asyncio\.py::test_(\w+?)__"), r"test_\1.py::test_"
SHELLS: Final = ("threads", "asyncio", "uvloop")
LOOPS, OF_LOOPS = "_loops", "test_loop*.py"  # the parameter that is the kind of event loop, and tests of it
ALIKE: Final = frozenset(("stomp", "amqp", "vm", "threads", "asyncio", "uvloop", *CHEAP_PAIRS))
NOT_FIRST: Final = (
    *("tests/benchmarks/*.py", "tests/faults/test_*kill*.py", "tests/run/*.py", "tests/run/*/*.py"),
    *("test_dist.py", "test_packaging.py", "test_docs_words.py", "test_install_from_anywhere.py", "test_systems.py"),
    *("test_planted*.py", "test_trace_*.py", "test_table.py", "test_structure.py"),
    *("test_store_kill.py", "test_store_memory.py", "test_store_points.py", "test_letters_without_broker.py"),
    *("test_real_brokers.py", "test_broker_ports.py", "test_*_live.py", "test_amqp_qpid_jms.py", "test_java_client.py"),
    *("test_demo_spark.py", "test_torn_transactions.py", "tests/examples/test_docs.py", "test_pyright.py"),
)
# Of files that try the same again and again, or with every pair of many values, one in so many.
FEW: Final = {
    **{"test_amqp_hostile.py": 6, "test_store_paging.py": 4, "test_receipts_of_odd_letters.py": 3},
    **{"test_broker_options.py": 6, "test_receipts.py": 3, "test_corpora.py": 4, "test_mutated_files.py": 3},
    **{"test_conversions.py": 6, "test_amqp_large.py": 3, "test_cancellation.py": 2, "test_every_call.py": 2},
    **{"test_store_files.py": 3},
}
# Of files whose every test starts programs, the one that it has.
ONE_OF: Final = {
    "test_broker.py": "test_it_keeps_messages_and_stops_cleanly",
    "test_command_line.py": "test_version",
    "test_demo_outage.py": "test_it_takes_no_broker_of_yours",
    "test_examples.py": "test_test_your_handler",
    "test_plugin_fixture.py": "test_each_test_has_a_broker_of_its_own",
    "test_process_end.py": "test_a_process_that_ends_is_not_held_up_by_open_connections",
    "test_run.py": "test_another_broker_than_the_apps_own",
    "test_store_alone.py": "test_the_lock_is_gone_after_a_kill",
    "test_worker.py": "test_it_goes_on_after_a_lost_connection",
    "test_terminal.py": "test_what_cannot_be_seen_is_shown_by_its_number",
}

MARKERS: Final = (
    "long_form(on='embedded', but='vm'): in `make test-all`, not in `make test`; if it says so, on pairs without a "
    "real broker only, or on all pairs but this one",
    "short_form: in `make test` where a real broker is, and in the longer forms; not in the first form",
    "in_turns(name, …): of the tests that differ only in parameters of these names, or in any, the first and the short "
    "form have one, with each rule of a file the next one",
    "may_hide: run again where it fails, as Artemis and HornetQ may hide a message (tests/run/again.py)",
    f"everywhere_in_long_form: no broker has a part in it, so `make test` runs it on {', '.join(CHEAP_PAIRS)} only",
)


_LONGER: Final = {FIRST: ("long_form", "short_form"), SHORT: ("long_form",)}
_Kind = TypeVar("_Kind")


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
    return [kind for kind in suite if _on(kind, function)] or suite[:1]


def ignored(config: pytest.Config, file: Path) -> bool:
    """Whether this form has nothing of a file: it is not even imported."""
    return form() == FIRST and not _named(config) and any(map(file.match, NOT_FIRST))


def unmade(collector: pytest.Collector, name: str, marks: Iterable[pytest.Mark]) -> bool:
    """Whether this form has no test of a function, or of a class, whatever the parameters: to make them takes long."""
    if not brief() or _named(collector.config):
        return False
    if form() == FIRST and ONE_OF.get(collector.path.name, name) != name:
        return True
    return any(mark.name in _LONGER[form()] and not mark.kwargs for mark in (*collector.iter_markers(), *marks))


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
