"""Each fault on each pair, under a program whose connection comes back: nothing is lost, nothing is unexplained.

With `deduplicate_sends` no send is doubted or doubled. `scripts/fault-report` writes the table from a run of all.
"""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from tests.conformance.pairs import PAIRS, Kind, Pair
from tests.faults import harm
from tests.faults.campaign import kill_and_restart
from tests.faults.cases import ASYNCIO, DEDUPLICATED, KILLED, SHORT, SHORT_EMBEDDED, ways
from tests.faults.harm import HARMS, HOST, RESTLESS, Bench, Harm
from tests.faults.promises import PROMISES
from tests.faults.refusals import REFUSING
from tests.faults.stored import broker_of, started
from tests.faults.work import Work

from redelivery.broker import EmbeddedBroker
from redelivery.testing.brokers.real import RealBroker

RECORD: Final = "REDELIVERY_FAULT_RECORD"  # a file, to which each test adds a line of JSON
REMOTE: Final = [kind for kind in PAIRS.values() if kind.remote and not kind.stored]
_ENDS: Final = {"": "", DEDUPLICATED: "-deduplicated", ASYNCIO: "-asyncio"}  # of the ids of tests
MORTAL: Final = [kind for kind in PAIRS.values() if kind.remote and (kind.real or kind.stored)]
LONG: Final = ("amqp-activemq", "stomp-artemis", "stomp-rabbitmq")  # the broker has another pair in the short form


def cases(*harms: str) -> pytest.MarkDecorator:
    """Each pair under each of them; with `deduplicate_sends` too, where the broker can do that; and with asyncio."""
    found = []
    for kind in REMOTE:
        for name in harms or HARMS:
            for way in ways(kind, name):
                short = name in (SHORT if kind.real else SHORT_EMBEDDED) and kind.name not in LONG and not way
                marks = [] if short else [pytest.mark.long_form]
                found.append(pytest.param(kind, name, way, id=f"{kind.name}-{name}{_ENDS[way]}", marks=marks))
    return pytest.mark.parametrize(("kind", "name", "way"), found)


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def bench(request: pytest.FixtureRequest, kind: Kind, opened: ExitStack) -> Bench:
    if kind.broker is None:
        embedded = opened.enter_context(EmbeddedBroker(stomp_port=0, amqp_port=0))
        return Bench(Pair(kind, getattr(embedded, f"{kind.protocol}_url"), embedded), opened)
    broker = request.getfixturevalue(kind.broker)
    return Bench(Pair(kind, getattr(broker, f"{kind.protocol}_url")), opened, broker)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("certificates")
    harm.certificates(folder)
    return folder


@cases()
def test_nothing_is_lost(bench: Bench, name: str, way: str, opened: ExitStack) -> None:
    signs: dict[str, Any] = {"heartbeat": 1.0, "request_timeout": 3.0} if name == "half open" else {}
    run(bench, HARMS[name], name, way, opened, url=bench.url(), **signs)


@cases("the host is not known for 0.4 s")
def test_nor_where_the_host_is_unknown_for_a_while(
    bench: Bench, name: str, way: str, opened: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.getaddrinfo", bench.look_up)
    run(bench, harm.unknown, name, way, opened, url=bench.url(HOST))


@cases("the certificate has expired for 0.4 s")
def test_nor_where_the_certificate_has_expired(
    bench: Bench, name: str, way: str, opened: ExitStack, certificates: Path
) -> None:
    bench.proxies[0].tls = harm.server_context(certificates, "server")
    url = bench.url("localhost", encrypted=True)
    trust = ssl.create_default_context(cafile=str(certificates / "ca.pem"))
    run(bench, partial(harm.expired, certificates), name, way, opened, url=url, tls=trust)


@pytest.fixture(scope="module")
def mortal(request: pytest.FixtureRequest) -> Iterator[RealBroker]:
    """A broker of our own, to be killed."""
    with started(request.param) as broker:
        if broker.provider is None:
            pytest.skip("this broker was not started by the test run, so it is not ours to kill")
        yield broker


@pytest.mark.long_form
@pytest.mark.timeout(240)
@pytest.mark.parametrize("way", ["", DEDUPLICATED], ids=["", "deduplicated"])
@pytest.mark.parametrize(
    ("mortal", "kind"), [pytest.param(broker_of(kind), kind, id=kind.name) for kind in MORTAL], indirect=["mortal"]
)
def test_nor_where_the_broker_is_killed_and_started_again(
    mortal: RealBroker, kind: Kind, way: str, opened: ExitStack
) -> None:
    if way and "duplicate ids" in kind.cannot:
        pytest.skip(kind.cannot["duplicate ids"])
    pair = Pair(kind, getattr(mortal, f"{kind.protocol}_url"))

    def kill(_: Bench, work: Work) -> None:
        work.goes_on(100)
        kill_and_restart(mortal, pair.url)
        work.goes_on()

    url = f"failover:({pair.url})?maxReconnectDelay=200"
    run(Bench(pair, opened, mortal), kill, KILLED, way, opened, url=url)


def run(bench: Bench, do: Harm, name: str, way: str, opened: ExitStack, **options: Any) -> None:
    """Do it, and hold the program to what it was promised."""
    kind, broker = bench.pair.kind, bench.broker
    hides = kind.real and PROMISES[kind.name].hides is not None and broker is not None and broker.provider is not None
    start_again = partial(kill_and_restart, broker, bench.pair.url) if hides and broker is not None else None
    deduplicate = way == DEDUPLICATED
    restless = any(frame in name for frame in RESTLESS)
    options = {"deduplicate_sends": deduplicate, "restless": restless, "aio": way == ASYNCIO, **options}
    options["refused"] = name in REFUSING
    work = Work(bench.pair, opened=opened, **options)
    work.goes_on()
    do(bench, work)
    outcome = work.finish(start_again)
    path = os.environ.get(RECORD)
    if path:
        pair = ", ".join([bench.pair.kind.title, way] if way else [bench.pair.kind.title])
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"fault": name, "pair": pair, **asdict(outcome)}) + "\n")
    assert outcome.lost == 0, outcome
    assert outcome.unexplained == 0, outcome
    assert outcome.hidden == 0 or hides, outcome
    if deduplicate:
        assert outcome.sent_twice == 0, outcome
        assert outcome.sent_in_doubt == 0, outcome
