"""What hangs where no time-out reaches it ends its process, and says where; what failed is shown at once.

pytest-timeout interrupts the call of a test. A fixture that starts a broker or Spark is not bounded by it, nor is what
follows a time-out: a test that was interrupted may hang once more while it gives up what it holds. pytest-xdist reports
the test as failed, and gives the rest to a new process.
"""

from __future__ import annotations

import faulthandler
import os
from typing import Final

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key

SECONDS: Final = float(os.environ.get("REDELIVERY_TEST_HANGS_AFTER") or 600)  # in its fixtures, beyond its time-out


def bound(item: pytest.Item) -> None:
    """A test, with its fixtures: all threads' stacks go to standard error before the process ends."""
    stderr = item.config.stash[fault_handler_stderr_fd_key]  # what it was before pytest captured it
    faulthandler.dump_traceback_later(SECONDS + _timeout(item), exit=True, file=stderr)


def _timeout(item: pytest.Item) -> float:
    mark = item.get_closest_marker("timeout")
    return float(mark.args[0] if mark is not None and mark.args else item.config.getini("timeout"))


def show_failure(config: pytest.Config, report: pytest.TestReport) -> None:
    """A line for a failure as soon as it is known: a run that is stopped comes to no summary."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    if report.failed and terminal is not None:
        crash = getattr(report.longrepr, "reprcrash", None)
        why = str(report.longrepr) if crash is None else crash.message
        terminal.write_line(f"\nfailed after {report.duration:.0f} s: {report.nodeid}: {why.partition(chr(10))[0]}")
