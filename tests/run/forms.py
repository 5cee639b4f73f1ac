"""The tests of a run: in the first form or the short one (`make test`), all (`make test-all`), or at length (nightly).

The environment says it (``REDELIVERY_FORM``), since pytest-xdist hands the environment on to its processes; `choose`
sets it where nobody has. A test that is named on the command line (``file::test``) always runs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final, TypeVar

import pytest

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

MARKERS: Final = (
    "long_form(on='embedded', but='vm'): in `make test-all`, not in `make test`; if it says so, on pairs without a "
    "real broker only, or on all pairs but this one",
    "may_hide: run again where it fails, as Artemis and HornetQ may hide a message (tests/run/again.py)",
    f"everywhere_in_long_form: no broker has a part in it, so `make test` runs it on {', '.join(CHEAP_PAIRS)} only",
)


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
    """Where the short form tries each so-many-th of many alike: 1 in the longer ones, which try them all."""
    return number if brief() else 1


def kinds(config: pytest.Config, function: pytest.Function, suite: Sequence[_Kind]) -> Sequence[_Kind]:
    """The pairs of the suite that a test of tests/conformance runs on; one at least, for `leave_out` to leave out."""
    if not brief() or any("::" in each for each in config.args):
        return suite
    return [kind for kind in suite if _on(kind, function)] or suite[:1]


def leave_out(config: pytest.Config, items: list[pytest.Item], possible: Callable[[pytest.Item], bool]) -> None:
    """Deselect what this form has not, and what is not possible on this machine; pytest's last line counts it."""
    if any("::" in each for each in config.args):
        return
    kept = [item for item in items if possible(item) and (not brief() or _in_form(item))]
    left_out = set(items).difference(kept)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def _in_form(item: pytest.Item) -> bool:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    if {"uvloop", "vm"} <= {each for each in parameters.values() if isinstance(each, str)}:
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
