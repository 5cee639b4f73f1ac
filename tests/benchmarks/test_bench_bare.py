"""Each case at a fake peer has a loop over a bare socket beside it, which does the same work."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

pytest.importorskip("proton")

from benchmarks import bare, bare_amqp, cases  # some of it needs proton
from benchmarks.cases import Case, Contender
from benchmarks.places import FakePlace, fake_place, read_line
from benchmarks.plan import CASES
from benchmarks.results import BARE, BenchmarkError, Comparison, Timing

ALL = [(protocol, case) for protocol, found in CASES.items() for case in found if case.runs_at("fake")]


@pytest.fixture(scope="module")
def places() -> Iterator[dict[str, FakePlace]]:
    with fake_place("stomp") as stomp, fake_place("amqp") as amqp:
        yield {"stomp": stomp, "amqp": amqp}


def limit(case: Case) -> Contender:
    (found,) = (each for each in case.contenders if each.name == BARE)
    return found


@pytest.mark.parametrize(("protocol", "case"), ALL, ids=[f"{protocol}-{case.key}" for protocol, case in ALL])
def test_every_case_has_a_loop_that_does_its_work(places: dict[str, FakePlace], protocol: str, case: Case) -> None:
    spent = cases.once(places[protocol], case, limit(case), 2200)  # more than a window and a credit
    assert spent.seconds > 0
    assert limit(case).fake_only


@pytest.mark.parametrize("batch", [1, 10])
def test_its_commits_are_as_many_transactions(places: dict[str, FakePlace], batch: int) -> None:
    stomp, amqp = places["stomp"], places["amqp"]
    bare.commit(stomp, stomp.prepare(100), 100, batch=batch)
    seen = json.loads(read_line(stomp.process, "the fake peer"))
    alone = batch == 1  # an ACK with a receipt
    assert (seen["ACK"], seen["BEGIN"], seen["COMMIT"]) == (100, *((0, 0) if alone else (10, 10)))
    bare_amqp.commit(amqp, amqp.prepare(100), 100, batch=batch)
    seen = json.loads(read_line(amqp.process, "the fake peer"))
    assert (seen["accepted"], seen["committed"], seen["rolled back"]) == (100, 100 // batch, 0)


def test_its_acknowledgements_are_a_write_each_or_one_for_each_read(
    places: dict[str, FakePlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = []
    settle = bare_amqp._numbered

    def noted(template: bytes, first: int, last: int) -> bytes:
        written.append(last - first + 1)
        return settle(template, first, last)

    monkeypatch.setattr(bare_amqp, "_numbered", noted)
    amqp = places["amqp"]
    for each in (True, False):
        queue = amqp.prepare(100)
        bare_amqp.consume(amqp, queue, 100, each=each)
        amqp.finish(queue, acked=100)
        assert (written == [1] * 100) == each
        assert sum(written) == 100
        written.clear()


def test_a_peer_that_goes_away_ends_the_loop() -> None:
    with fake_place("stomp") as place, bare._connected(place) as connection:
        connection.sendall(b"DISCONNECT\n\n\0")
        with pytest.raises(BenchmarkError, match="closed the connection"):
            bare.more(connection)


def test_what_an_old_run_did_not_measure_is_said() -> None:
    raw = Timing("raw", 10_000, 9_000, 11_000, 90.0)
    ours = Timing("redelivery", 30_000, 29_000, 31_000, 20.0)
    contenders = (Contender("redelivery", bare.consume), Contender("raw", bare.consume), bare.beside(bare.consume))
    for place, missing in (("amqp/fake", (BARE,)), ("amqp/activemq", ())):
        old = Comparison(place, place, "auto", "AUTO", ours, (raw,), {})
        assert cases.judged(old, contenders).unmeasured == missing
    whole = Comparison("amqp/fake", "", "auto", "AUTO", ours, (raw, Timing(BARE, 1, 1, 1)), {}, unmeasured=(BARE,))
    assert cases.judged(whole, contenders).unmeasured == ()
