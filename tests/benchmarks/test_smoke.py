"""Each case of the benchmarks runs once, as short as it can be; no time is asserted."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("proton")

from benchmarks import (
    acting,
    bare_amqp,
    by_themselves,
    cases,
    cpu_page,
    large,
    letters,
    observers,
    profiles,
    run,
    spread,
    stored,
    targets,
)
from benchmarks.machine import BenchmarkError, in_process
from benchmarks.places import FAKE, FakePlace, fake_place
from benchmarks.record import OURS

import redelivery
from redelivery.broker import EmbeddedBroker

LONG = pytest.mark.long_form
needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
needs_spark = pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="pyspark is not installed")
AT_PEERS = [name for name in cases.names() if f"/{FAKE}/" in name]
AWAITED = [pytest.param(case, "asyncio", marks=LONG) for case in cpu_page.IN_LOOP if case != "auto-many"]
FIRST = ("auto", "amqp-auto", "tls-auto")
MEASURED = [
    *(pytest.param(case, "main", marks=() if case in FIRST else LONG) for case in targets.MESSAGE),
    ("auto-many", "asyncio"),
    *AWAITED,
    ("send", "thread"),
    *((floor, "bare") for floor in targets.FLOORS),
]


@pytest.fixture(scope="module")
def places() -> Iterator[dict[str, FakePlace]]:
    with fake_place("stomp") as stomp, fake_place("amqp") as amqp:
        yield {"stomp": stomp, "amqp": amqp}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name.endswith("/auto") else LONG) for name in AT_PEERS]
)
def test_all_contenders_of_a_case_do_its_work(places: dict[str, FakePlace], name: str) -> None:
    protocol, _, case = name.split("/")
    _, *rivals = cases.contenders(protocol, case)
    found = cases.compare(places[protocol], case, rivals, 1, 0.01)
    assert list(found) == [OURS, *(each.name for each in rivals)]
    assert all(each.median > 0 and each.cpu for each in found.values())


def test_a_run_that_did_not_do_its_work_is_refused(places: dict[str, FakePlace]) -> None:
    _, raw, *_ = cases.contenders("stomp", "dups-ok")  # raw: acknowledges nothing
    idle = cases.Contender("raw", raw.run)
    with pytest.raises(BenchmarkError, match="counted ACK 0 times instead of 20"):
        cases.once(places["stomp"], "dups-ok", idle, 20)


@pytest.mark.parametrize("batch", [1, 10])
def test_the_commits_of_the_bare_loop_are_as_many_transactions(places: dict[str, FakePlace], batch: int) -> None:
    amqp = places["amqp"]
    bare_amqp.commit(amqp, amqp.prepare(100), 100, batch=batch)
    seen = amqp.counts()
    assert (seen["accepted"], seen["committed"], seen["rolled back"]) == (100, 100 // batch, 0)


@pytest.mark.parametrize(("case", "how"), MEASURED)
def test_every_case_of_processor_time_is_measured(case: str, how: str) -> None:
    parts = acting.measure(case, 500, how)
    assert len(parts) == acting.PARTS
    assert min(parts) > 0


def test_one_is_measured_in_a_process_of_its_own_with_an_observer_or_under_a_profiler() -> None:
    *_, recording = observers.OBSERVERS
    assert observers.least("auto", recording, 500) > 0
    found = profiles.take("auto", 500)
    assert any(".py:" in each.name and each.share > 0 for each in found.functions)
    assert not any("benchmarks/" in each.name for each in found.functions)
    with pytest.raises(BenchmarkError, match="ended with 1"):
        in_process("acting.measure('nothing')")


@LONG
@pytest.mark.parametrize("protocol", ["stomp", "amqp"])
def test_what_has_a_limit_of_its_own_is_measured(places: dict[str, FakePlace], protocol: str) -> None:
    place = {protocol: places[protocol]}
    found = dict(by_themselves.peer(place[protocol], 0.01)) | dict(by_themselves.bodies(place[protocol], 1, 0.01))
    found |= dict(by_themselves.ledger(1, 0.01)) | dict(by_themselves.waiting(place, 0.01))
    apart = ("spark", "stored", "groups", "replay", "console")
    limits = {each for each in (*targets.AT_MOST, *targets.AT_LEAST) if not each.startswith(apart)}
    other = {"stomp": "amqp", "amqp": "stomp"}[protocol]
    assert {each for each in limits if other not in each} <= set(found)
    assert large.rate(1, 1) > 0


def test_letters_are_grouped_and_replayed_beside_a_bare_loop() -> None:
    with EmbeddedBroker("bench-letters", stomp_port=0) as broker:
        found = dict(letters.commands("stomp-activemq", "here", broker.stomp_url, 1, 0.02))
    assert all(each.value > 0 for each in found.values())
    pairs = {f"{protocol}-{broker}" for broker, protocols in letters.PAIRS.items() for protocol in protocols}
    limits = {each for each in (*targets.AT_MOST, *targets.AT_LEAST) if each.startswith(("groups", "replay"))}
    assert limits == {f"{what}-{pair}" for what in ("groups", "replay") for pair in pairs}
    assert set(found) == {f"{what}-stomp-activemq" for what in ("groups", "replay", "replay-ratio")}


def test_the_first_page_of_the_console_is_measured_over_each_protocol() -> None:
    found = dict(letters.first_page(1, 0.01))
    assert set(found) == {each for each in targets.AT_MOST if each.startswith("console")}
    assert all(each.value > 0 for each in found.values())


def test_each_step_of_a_stored_broker_moves_what_the_step_before_it_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "WARM_UP", 1)
    with (
        EmbeddedBroker("bench-memory", stomp_port=0) as theirs,
        EmbeddedBroker("bench-stored", stomp_port=0, store=tmp_path / "store.db") as ours,
    ):
        found = list(stored.compare("stomp", theirs.stomp_url, ours.stomp_url, 2))
        assert all(min(each.theirs, each.ours, *each.ratios) > 0 for each in found)
        assert [ours.core.call(lambda engine, _: len(engine.queues))] == [0], "all was received"


@needs_proc
def test_a_store_is_filled_and_used(tmp_path: Path) -> None:
    found = dict(stored.fill(tmp_path / "store.db", 1500))
    assert {each for each in targets.AT_MOST if each.startswith("stored")} <= set(found)
    assert min(each.value for each in found.values()) > 0


def test_a_backlog_is_shared() -> None:
    with EmbeddedBroker("bench-spread") as broker:
        assert 0 < spread.took(broker.vm_url, "client", 20, lambda: None, {}) < spread.PATIENCE


def test_who_asks_for_one_case_gets_it_alone() -> None:
    found = run.Run(run.Plan(1, 0.01, ("amqp/fake/auto",), fake_only=True))
    found.all()
    assert found.ran == list(found.record.rows) == ["amqp/fake/auto"]
    assert not found.record.measures
    assert not found.plan.complete


def test_a_profile_names_our_functions_where_another_client_is_ahead(places: dict[str, FakePlace]) -> None:
    found = run.Run(run.Plan(1, 0.05)).why(places["stomp"], "auto", "other", 0.5)
    assert any(".py:" in name for name in found.functions)
    assert 0 <= found.waiting < 1


def progress(rows: int, began: str, latest: int, whole: int, pending: int | None = None) -> dict[str, Any]:
    return {
        "numInputRows": rows,
        "timestamp": f"2026-01-01T00:00:{began}Z",
        "durationMs": {"latestOffset": latest, "addBatch": 1, "triggerExecution": whole},
        "sources": [{"latestOffset": None if pending is None else json.dumps({"pendingRows": pending})}],
    }


@needs_spark
def test_a_steady_speed_is_that_of_the_batches_after_the_first() -> None:
    from benchmarks.spark_session import batches, steady

    class Query:
        def __init__(self, *shown: dict[str, Any]) -> None:
            self.recentProgress = shown

    asked = [
        progress(1_000, "00.000", 0, 2_000),
        progress(3_000, "02.000", 10, 1_000),
        progress(3_000, "03.000", 10, 1_000),
    ]
    assert steady(batches(Query(*asked, progress(0, "04.000", 10, 5_000)))) == pytest.approx(3_000)
    ahead = [progress(1_000, "00.000", 1_000, 2_000, 3_000), progress(5_000, "02.000", 10, 1_000, 5_000)]
    assert steady(batches(Query(*ahead))) == pytest.approx(3_000 / 2), "what was received ahead is not counted twice"
    idle = progress(0, "00.000", 5, 10)
    del idle["durationMs"]["addBatch"]
    with pytest.raises(BenchmarkError, match="2 are needed"):
        steady(batches(Query(idle, progress(10, "01.000", 5, 10))))


@needs_spark
def test_the_session_outside_spark_takes_each_message_into_segments(tmp_path: Path) -> None:
    from benchmarks.spark_cases import outside

    from redelivery.spark.options.query import SourceOptions

    with EmbeddedBroker(name="bench-outside", stomp_port=0) as broker:
        url = broker.stomp_url
        with redelivery.connect(url) as connection, connection.session() as session:
            producer = session.producer("filled")
            for number in range(60):
                producer.send(str(number))
        options = SourceOptions.parse({"url": url, "destination": "filled", "walLocation": str(tmp_path / "wal")})
        assert outside(options, tmp_path / "segments", 60, 20) > 0
        assert broker.queue_depth("filled") == 0
    assert len(list((tmp_path / "segments").iterdir())) == 3


@needs_spark
@LONG
@pytest.mark.together("Spark")
@pytest.mark.timeout(600)
def test_without_a_broker_the_batches_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import spark_cases
    from benchmarks.spark_session import spark_session

    monkeypatch.setattr(spark_cases, "SIZES", (1_000,))
    with spark_session() as spark:
        found = dict(spark_cases.fake(spark, 1, 0.01))
    assert {"spark-fake", "spark-fake-1-1000", "spark-messages", "spark-empty", "spark-idle"} <= set(found)
    assert min(each.value for each in found.values()) > 0
