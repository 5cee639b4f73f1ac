from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib.util
import os
import re
import shutil
import signal
import tempfile
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.run import again, forms, hangs, loops, scopes, summary

from redelivery import ConfigError, IllegalStateError
from redelivery.testing.brokers.ports import NotStartedError
from redelivery.testing.brokers.real import RealBroker, UnavailableError, missing, required
from redelivery.testing.brokers.specs import SPECS

_AMQP = importlib.util.find_spec("proton") is not None
_MISSING = "no python-qpid-proton; pip install '.[amqp]' compiles it with gcc, python3-dev and pkg-config"
_CI = os.environ.get("CI", "").lower() in {"1", "true"}
_SCOPES = pytest.StashKey[Path]()

os.environ.setdefault("REDELIVERY_REAL_BROKERS", "1")  # our own tests use whatever is found
# Brokers of a few minutes: compiling them well would take as much processor time as the tests themselves.
os.environ.setdefault("REDELIVERY_BROKER_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# What needs AMQP whatever its parameters; and, of the rest, what a test says that meets the lack of it.
_OF_AMQP = (
    *("*/test_amqp_*.py", "conformance/test_refused.py", "conformance/test_java_client.py", "faults/test_kills.py"),
    *("faults/test_failover_faults.py", "selectors/test_judges.py", "broker/store/test_store_memory.py"),
)
_LACKS_AMQP = re.compile(r"needs python-qpid-proton, which is not installed|not listen for AMQP")
collect_ignore_glob = [] if _AMQP else list(_OF_AMQP)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Before pytest-xdist starts its processes, which have this one's environment."""
    forms.choose(config)
    state = tempfile.TemporaryDirectory(prefix="redelivery-state-")
    os.environ["XDG_STATE_HOME"] = state.name  # what commands keep (receipts) is not to be among the user's own
    config.add_cleanup(state.cleanup)


def pytest_configure(config: pytest.Config) -> None:
    """In CI nothing may be skipped because the library under AMQP was not compiled, or Spark is not there."""
    for marker in (*forms.MARKERS, *scopes.MARKERS):
        config.addinivalue_line("markers", marker)
    if _CI:
        for what, lacks in (("AMQP", None if _AMQP else _MISSING), ("Spark", _spark_lacks())):
            if lacks is not None:
                raise pytest.UsageError(f"{what}: {lacks}")
    _hypothesis()
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # what ignores Ctrl-C hands that on to its children


def pytest_report_header() -> list[str]:
    """What is missing here, in one line for each, before the tests."""
    amqp = "AMQP: found" if _AMQP else f"AMQP: MISSING ({_MISSING}), so its tests are skipped"
    lacks = _spark_lacks()
    spark = "Spark: found" if lacks is None else f"Spark: MISSING ({lacks}), so its tests are left out"
    if forms.form() == forms.FIRST:
        return ["form: first (no real broker is here), each rule once; everything: make test-all", amqp, spark]
    lines = [f"form: {forms.form()}" + ("; everything: make test-all" if forms.brief() else ""), amqp, spark]
    for name, spec in SPECS.items():
        reason = missing(name)
        if reason is None:
            lines.append(f"{spec.title}: found")
        else:
            then = "which fails its tests, because it is required" if required(name) else "so its tests are left out"
            lines.append(f"{spec.title}: MISSING ({reason}), {then}")
    return lines


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """15,000 tests stay until the end of the run: to look for garbage among them took a fifth of its processor time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return forms.ignored(config, collection_path) or None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Collector, name: str, obj: object) -> list[pytest.Item] | None:
    mine = name.startswith(("test", "Test"))
    return [] if mine and forms.unmade(collector, name, getattr(obj, "pytestmark", ())) else None


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    forms.parametrize(metafunc)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The time of a test is its own, not that of the broker, or of Spark, that is started before the first."""
    forms.leave_out(config, items, _possible)
    scopes.rules_first(items)
    seconds = float(config.getini("timeout"))
    for item in items:
        if item.get_closest_marker("timeout") is None and scopes.scope(item) != scopes.ALONE:
            item.add_marker(pytest.mark.timeout(seconds, func_only=True))
    if hasattr(config, "workerinput"):
        scopes.write(config, scopes.order(items))


def _possible(item: pytest.Item) -> bool:
    """Whether what a test uses is here, or must be."""
    spark = scopes.scope(item) in (scopes.SPARK, scopes.FAULTS_OF_SPARK)
    return all(map(forms.here, scopes.brokers(item))) and (not spark or _spark_lacks() is None)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    if item.get_closest_marker("may_hide") is None:
        return None
    again.play(item, nextitem)
    return True


@contextlib.contextmanager
def _skipped_where_it_lacks(item: pytest.Item) -> Iterator[None]:
    """Skip what meets the lack of AMQP, or a broker that does not start, unless it is required."""
    try:
        yield
    except (ConfigError, IllegalStateError) as error:
        if _AMQP or _LACKS_AMQP.search(str(error)) is None:
            raise
        pytest.skip(f"AMQP: {_MISSING}")
    except (NotStartedError, UnavailableError) as error:
        if _CI or any(map(required, scopes.brokers(item))):
            raise
        pytest.skip(str(error))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    hangs.bound(item)
    with _skipped_where_it_lacks(item):
        return (yield)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    with _skipped_where_it_lacks(item):
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector, call: pytest.CallInfo[object]) -> None:
    if isinstance(node, pytest.Item) and call.when != "teardown":
        hangs.bound(node)  # again, for the tear-down: pytest ends it where something failed


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    try:
        done = yield
    finally:
        faulthandler.cancel_dump_traceback_later()
    left = signal.getsignal(signal.SIGINT)
    left = getattr(left, "before", left)  # the guard of a connection that a fixture holds
    if left is not signal.default_int_handler and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a later test would wait for its Ctrl-C for ever
        if not getattr(left, "__module__", "").startswith("pyspark"):  # which sets one, and keeps it
            pytest.fail(f"it left a handler of SIGINT behind: {left}")
    return done


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    again.hand_over(report)
    return report


class _Counting:
    """Where reports arrive: here, or in the process that pytest-xdist brings them to."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        summary.counted(self._config).update(again.count(report))
        if not hasattr(self._config, "workerinput"):
            hangs.show_failure(self._config, report)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.pluginmanager.register(_Counting(session.config))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run that needed too many retries fails."""
    if again.too_many(summary.counted(session.config)) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    summary.write(terminalreporter, config, at_length=_CI or "s" in config.option.reportchars)
    with contextlib.suppress(KeyError):
        config.stash[_SCOPES].unlink(missing_ok=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """``-n auto``: tests wait, most of all those of real brokers; but twice as many make each other late."""
    return max(2, min(8, 4 * (os.cpu_count() or 1)))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput[scopes.FILE] = str(_scopes_file(node.config))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The marks for that (``--dist loadgroup``) are not seen where pytest 9 meets pytest-xdist 3.8."""
    return scopes.scheduler(config, log, _scopes_file(config))


def _scopes_file(config: pytest.Config) -> Path:
    if _SCOPES not in config.stash:
        handle, name = tempfile.mkstemp(prefix="redelivery-scopes-", suffix=".json")
        os.close(handle)
        config.stash[_SCOPES] = Path(name)
    return config.stash[_SCOPES]


def _hypothesis() -> None:
    """The same examples in each short run of CI; else others each time, at night by the seed that it names."""
    from hypothesis import settings

    settings.register_profile(
        "redelivery",
        deadline=None,
        derandomize=_CI and forms.brief(),
        database=None,
        max_examples=forms.examples(100),
        print_blob=True,  # how to see a failure of the night again by day
    )
    settings.load_profile("redelivery")


def _spark_lacks() -> str | None:
    if importlib.util.find_spec("pyspark") is None:
        return "no pyspark; make test EXTRAS=dev,amqp,spark"
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        return "no Java"
    return None


# The brokers under their short names: a user's tests have the plug-in's long ones.


@pytest.fixture(scope="session")
def activemq(redelivery_activemq: RealBroker) -> RealBroker:
    return redelivery_activemq


@pytest.fixture(scope="session")
def activemq6(redelivery_activemq6: RealBroker) -> RealBroker:
    return redelivery_activemq6


@pytest.fixture(scope="session")
def artemis(redelivery_artemis: RealBroker) -> Iterator[RealBroker]:
    with again.hides(redelivery_artemis) as broker:
        yield broker


@pytest.fixture(scope="session")
def qpid(redelivery_qpid: RealBroker) -> RealBroker:
    return redelivery_qpid


@pytest.fixture(scope="session")
def rabbitmq(redelivery_rabbitmq: RealBroker) -> RealBroker:
    return redelivery_rabbitmq


@pytest.fixture(scope="session")
def rabbitmq4(redelivery_rabbitmq4: RealBroker) -> RealBroker:
    return redelivery_rabbitmq4


@pytest.fixture(scope="session")
def hornetq(redelivery_hornetq: RealBroker) -> Iterator[RealBroker]:
    with again.hides(redelivery_hornetq) as broker:
        yield broker


@pytest.fixture(params=loops.kinds("threads", "asyncio", marks=pytest.mark.long_form))
def shell(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The shell of threads, or that of tasks on each kind of event loop, called as if it blocked."""
    from tests.conformance.blocking import Shell

    if request.param != "threads":
        loops.use(request.param, monkeypatch)
    with contextlib.ExitStack() as opened:
        yield Shell(request.param, opened)
