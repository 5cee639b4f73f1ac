from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.conformance.pairs import KINDS, Kind
from tests.spark.faults.campaign import cells
from tests.spark.faults.cases import CASES, FIRST, Case
from tests.spark.faults.jobs import Jobs
from tests.spark.faults.report import results
from tests.spark.faults.stage import Broker, Stage

from redelivery.broker import EmbeddedBroker
from redelivery.broker.faults import Faults
from redelivery.testing.brokers.real import RealBroker, running

# The names of pairs with real brokers, separated by commas: the long form, every case on each of them.
_PAIRS = "REDELIVERY_SPARK_FAULTS"
# The short form runs on the embedded broker, each receiver over one of the protocols.
_SHORT = {
    "driver": "stomp-embedded",
    "executor": "amqp-embedded" if importlib.util.find_spec("proton") else "stomp-embedded",
}


@dataclass
class Embedded:
    name: str
    url: str
    faults: Faults | None
    amqp091: str = ""

    def kill(self) -> None:
        raise NotImplementedError("it keeps nothing, so there is nothing to find after its restart")

    restart = kill


@dataclass
class Real:
    name: str
    url: str
    broker: RealBroker
    faults: Faults | None = None

    @property
    def amqp091(self) -> str:
        return self.broker.amqp_url if self.broker.name.startswith("rabbitmq") else ""

    def kill(self) -> None:
        self.broker.kill()

    def restart(self) -> None:
        self.broker.restart()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "played" not in metafunc.fixturenames:
        return
    wanted = [name for name in os.environ.get(_PAIRS, "").split(",") if name]
    if wanted:
        pairs = [(KINDS[name], case) for name in wanted for case in CASES.values() if case.on != "embedded"]
    else:
        pairs = [(KINDS[_SHORT[case.receiver]], case) for case in CASES.values() if case.short]
    done = {(each.pair, each.case) for each in results() if not each.problem}
    pairs = [(kind, case) for kind, case in pairs if (kind.name, case.name) not in done]
    pairs.sort(
        key=lambda pair: (pair[0].broker or "", pair[1].master, pair[0].name)
    )  # each change of the master starts a JVM
    played = [
        pytest.param(
            kind,
            case,
            id=f"{case.name.replace(': ', '-').replace(' ', '_')}-{kind.name}",
            marks=() if wanted or case.name in FIRST else pytest.mark.long_form,
        )
        for kind, case in pairs
    ]
    if "campaign" in str(metafunc.module.__name__):
        played = [
            pytest.param(KINDS[each.pair], each.case(), id=f"{each.pair}-{each.receiver}-{each.sender}")
            for each in cells()
        ]
    metafunc.parametrize(("kind", "played"), played)


@pytest.fixture(scope="session")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """The Spark programs, shared by all cases."""
    with Jobs(tmp_path_factory.mktemp("jobs")) as jobs:
        yield jobs


@pytest.fixture(scope="session")
def broker_of() -> Iterator[Callable[[Kind], Broker]]:
    """One of each that is asked for; nobody else uses them, so they may be killed."""
    with ExitStack() as opened:
        embedded: list[EmbeddedBroker] = []
        real: dict[str, RealBroker] = {}

        def find(kind: Kind) -> Broker:
            if kind.broker is None:
                if not embedded:
                    amqp_port = 0 if importlib.util.find_spec("proton") else None
                    broker = EmbeddedBroker("spark-faults", stomp_port=0, amqp_port=amqp_port)
                    embedded.append(opened.enter_context(broker))
                return Embedded(kind.name, getattr(embedded[0], f"{kind.protocol}_url"), embedded[0].faults)
            if kind.broker not in real:
                real[kind.broker] = opened.enter_context(running(kind.broker))
            return Real(kind.name, getattr(real[kind.broker], f"{kind.protocol}_url"), real[kind.broker])

        yield find


@pytest.fixture
def stage(kind: Kind, played: Case, broker_of: Callable[[Kind], Broker], jobs: Jobs, tmp_path: Path) -> Iterator[Stage]:
    """The case's own; a Spark that may be in any state is not used again."""
    broker = broker_of(kind)
    stage = Stage(broker, jobs, tmp_path, played.receiver, played.master, options=dict(played.options))
    try:
        yield stage
    finally:
        stage.orders.forget()
        if broker.faults is not None:
            broker.faults.clear()
