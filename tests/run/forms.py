"""Which tests a run has: the short form (`make test`), all (`make test-all`), or all at length (`make nightly`).

The environment says it (``REDELIVERY_FORM``), since pytest-xdist hands the environment on to its processes. A test
that is named on the command line (``file::test``) always runs.
"""

from __future__ import annotations

import os
from typing import Final

import pytest

SHORT, ALL, NIGHTLY = FORMS = ("short", "all", "nightly")
FORM: Final = os.environ.get("REDELIVERY_FORM") or SHORT
assert FORM in FORMS, f"REDELIVERY_FORM is {FORM!r}: not one of {', '.join(FORMS)}"

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


def examples(short: int) -> int:
    """How many examples Hypothesis tries where the short form tries so many."""
    return short * 10 if FORM == NIGHTLY else short


def every(number: int) -> int:
    """Where the short form tries each so-many-th of many alike: 1 in the longer ones, which try them all."""
    return number if FORM == SHORT else 1


def leave_out(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what is not in the short form; pytest's last line counts it as deselected."""
    if FORM != SHORT or any("::" in each for each in config.args):
        return
    kept = [item for item in items if _in_short_form(item)]
    left_out = [item for item in items if not _in_short_form(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = kept


def _in_short_form(item: pytest.Item) -> bool:
    parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    pair = parameters.get("pair")
    for mark in item.iter_markers("long_form"):
        if "but" in mark.kwargs:
            if getattr(pair, "name", "") != mark.kwargs["but"]:
                return False
        elif mark.kwargs.get("on") != EMBEDDED or not getattr(pair, "broker", None):
            return False
    if {"uvloop", "vm"} <= {each for each in parameters.values() if isinstance(each, str)}:
        return False  # within one process no loop has a socket to watch
    if getattr(pair, "stored", False) and item.path.name not in STORED_FILES:
        return False
    kinds = [getattr(each, "kind", each) for each in parameters.values()]  # of a pair, of a test of tests/faults
    if any(getattr(each, "brief", False) for each in kinds) and item.path.name not in BRIEF_FILES:
        return False
    if getattr(pair, "twin", None):
        return False
    if item.get_closest_marker("everywhere_in_long_form") is None:
        return True
    return getattr(pair, "name", "") in CHEAP_PAIRS
