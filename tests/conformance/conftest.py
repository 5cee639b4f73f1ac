from __future__ import annotations

import re
import uuid
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.conformance import record
from tests.conformance.desk import Desk
from tests.conformance.java.client import JavaError
from tests.conformance.outage import Outage
from tests.conformance.own_queues import Own
from tests.conformance.pairs import SUITE, Kind, Pair
from tests.conformance.stage import Stage
from tests.run import again, forms
from tests.run.gate import Gate

from redelivery import IndividualDeadLetterStrategy, JMSError, UnsupportedError
from redelivery.broker import BrokerConfig, EmbeddedBroker

_STALLED = "now and then RabbitMQ 3.10 stops answering Qpid JMS on an AMQP session; the client gives up after its time"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """What a broker does to a Java client now and then is no fault of ours."""
    try:
        return (yield)
    except JavaError as error:
        if "amqp-rabbitmq" in item.name and "JmsOperationTimedOutException" in str(error):
            again.note(again.STALLED)
            pytest.skip(_STALLED)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """`needs`: where the pair cannot do it, a test that names an error passes by that error; others are skipped.

    What asks for a transacted session needs transactions, and says so by that.
    """
    pair = pyfuncitem.funcargs.get("pair")
    if not isinstance(pair, Pair):
        return (yield)
    refusals: dict[str, type[JMSError]] = {}
    for mark in pyfuncitem.iter_markers("needs"):
        feature, refused = mark.args[0], mark.kwargs.get("refused")
        if not pair.can(feature):
            if refused is None:
                pytest.skip(pair.kind.cannot[feature])
            refusals[feature] = refused
    try:
        result = yield
    except JMSError as error:
        if isinstance(error, UnsupportedError) and "no transactions" in str(error) and not pair.can("transactions"):
            return record.refused(pyfuncitem, pair.kind.cannot["transactions"])
        for feature, refused in refusals.items():
            if isinstance(error, refused):
                return record.refused(pyfuncitem, pair.kind.cannot[feature])
        raise
    assert not refusals, f"nothing was refused; is it still true that {pair.kind.cannot[next(iter(refusals))]}?"
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    record.keep(item, report)
    record.keep_rows(item, report)
    return report


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """`pair`, unless the file has its own: each pair of transport and broker that this form of the run has."""
    named = any("pair" in mark.args[0] for mark in metafunc.definition.iter_markers("parametrize"))
    if "pair" in metafunc.fixturenames and not named and not hasattr(metafunc.module, "pair"):
        kinds = forms.kinds(metafunc.config, metafunc.definition, list(SUITE.values()))
        metafunc.parametrize("pair", kinds, ids=[kind.name for kind in kinds], indirect=True)


@pytest.fixture
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    """The pair of the test; the embedded broker is new for every test."""
    kind: Kind = request.param
    if kind.protocol == "amqp":
        pytest.importorskip("proton")
    if kind.broker is not None:
        yield Pair(kind, getattr(request.getfixturevalue(kind.broker), f"{kind.protocol}_url"))
        return
    config = BrokerConfig(dead_letter_strategies={"individual.>": IndividualDeadLetterStrategy(queue_prefix="DLQ.")})
    ports: dict[str, Any] = {f"{kind.protocol}_port": 0} if kind.remote else {}
    if kind.stored:
        ports["store"] = tmp_path / "store.db"
    with EmbeddedBroker(name=f"conformance-{uuid.uuid4().hex}", config=config, **ports) as broker:
        yield Pair(kind, getattr(broker, f"{kind.protocol}_url"), broker)


@pytest.fixture
def stage_class() -> type[Stage]:
    """How connections are opened: test_asyncio.py has its own way."""
    return Stage


@pytest.fixture
def stage(request: pytest.FixtureRequest, pair: Pair, stage_class: type[Stage]) -> Iterator[Stage]:
    """Connections to the pair, a queue of the test's own, and the eyes on what is left there."""
    name = re.sub(r"\W+", "-", request.node.originalname.removeprefix("test_"))[:40]
    with ExitStack() as opened:
        yield stage_class(pair, f"conformance.{name}.{uuid.uuid4().hex[:8]}", opened)


@pytest.fixture
def desk(stage: Stage) -> Desk:
    """A topic and a client id of the test's own."""
    return Desk(stage)


@pytest.fixture
def own(stage: Stage) -> Iterator[Own]:
    """Queues that the test declares: they are deleted after it."""
    made = Own(stage)
    yield made
    if stage.pair.can("declaring queues"):
        made.clear()


@pytest.fixture
def outage(stage: Stage) -> Iterator[Outage]:
    """Connections to the pair that pass a gate, which can be shut."""
    if not stage.pair.kind.remote:
        pytest.skip(stage.pair.kind.cannot["a lost connection"])
    parts = urlsplit(stage.pair.url)
    with Gate(str(parts.hostname), int(parts.port or 0)) as gate:
        yield Outage(stage, gate)
