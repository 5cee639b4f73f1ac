from __future__ import annotations

import importlib.util
import os
import shutil
from typing import Any

import pytest
from tests.traces.targets import TARGETS

from redelivery.testing.brokers import SPECS
from redelivery.testing.real import missing, required

_TRACES = "tests/traces/test_traces.py::test_scenario["
_CAMPAIGNS = ("tests/faults/test_kills.py::", "tests/spark/faults/")
_AMQP = importlib.util.find_spec("proton") is not None
_MISSING = "no python-qpid-proton; pip install 'redelivery[amqp]' compiles it with gcc, python3-dev and pkg-config"

collect_ignore_glob = [] if _AMQP else ["*/test_amqp_*.py", "*/conformance/test_refused.py"]


def pytest_configure() -> None:
    """In CI nothing may be skipped because the library under AMQP was not compiled, or Spark is not there."""
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        for what, lacks in (("AMQP", None if _AMQP else _MISSING), ("Spark", _spark_lacks())):
            if lacks is not None:
                raise pytest.UsageError(f"{what}: {lacks}")


def pytest_report_header() -> list[str]:
    """What is missing here, in one line for each, before the tests that it skips."""
    lines = ["AMQP: found" if _AMQP else f"AMQP: MISSING ({_MISSING}), so its tests are skipped"]
    lacks = _spark_lacks()
    lines.append("Spark: found" if lacks is None else f"Spark: MISSING ({lacks}), so its tests are skipped")
    for name, spec in SPECS.items():
        reason = missing(name)
        if reason is None:
            lines.append(f"{spec.title}: found")
        else:
            then = "which fails its tests, because it is required" if required(name) else "so its tests are skipped"
            lines.append(f"{spec.title}: MISSING ({reason}), {then}")
    return lines


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Which tests one process runs, where there are several: see `_together`.

    The marks for that (``--dist loadgroup``) are not seen where pytest 9 meets pytest-xdist 3.8.
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]  # it has no types
        def _split_scope(self, nodeid: str) -> str:
            return _together(nodeid)

    return Scheduling(config, log)


def _together(nodeid: str) -> str:
    """What the tests of one process have in common; by itself, each goes to the next process that is free.

    The runs that many tests look at are played once. What keeps the processors busy, Spark above all, which gives up
    when its programs start too slowly, is at most two processes' at a time.
    """
    if nodeid.startswith(_TRACES):
        name = nodeid.removeprefix(_TRACES)
        return _TRACES + max((target for target in TARGETS if name.startswith(f"{target}-")), key=len)
    if nodeid.startswith(_CAMPAIGNS):
        return "campaigns"
    return "spark" if "spark" in nodeid else nodeid


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The time of a test is its own, not that of the broker, or of Spark, that is started before the first."""
    seconds = float(config.getini("timeout"))
    for item in items:
        assert isinstance(item, pytest.Function)
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        named = {*item.fixturenames, *(getattr(each, "broker", None) for each in parameters)}
        if item.get_closest_marker("timeout") is None and not named.isdisjoint((*SPECS, "spark")):
            item.add_marker(pytest.mark.timeout(seconds, func_only=True))


def _spark_lacks() -> str | None:
    if importlib.util.find_spec("pyspark") is None:
        return "no pyspark; make test EXTRAS=dev,amqp,spark"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "no Java"
    return None
