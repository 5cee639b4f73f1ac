"""The benchmark of the embedded broker with a store: its code, at a small size and against itself."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("proton")

from benchmarks import stored

from redelivery.broker import EmbeddedBroker


def test_each_step_moves_what_the_step_before_it_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "WARM_UP", 1)
    with (
        EmbeddedBroker("bench-memory", stomp_port=0) as theirs,
        EmbeddedBroker("bench-stored", stomp_port=0, store=tmp_path / "store.db") as ours,
    ):
        found = list(stored.compare("stomp", theirs.stomp_url, ours.stomp_url, 2))
        assert [each.title for each in found] == list(stored.STEPS)
        assert all(min(each.theirs, each.ours, *each.ratios) > 0 for each in found)
        assert [ours.core.call(lambda engine, _: len(engine.queues))] == [0], "all was received"


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_a_store_is_filled_and_used(tmp_path: Path) -> None:
    found = {each.key: each for each in stored.fill(tmp_path / "store.db", 1500)}
    assert {key: each.limit for key, each in found.items() if each.limit is not None} == {
        "stored-start": 10,
        "stored-browse": 50,
        "stored-memory": 100,
    }
    assert min(each.value for each in found.values()) > 0


def test_the_ratio_is_that_of_the_medians_and_the_spread_that_of_five_parts() -> None:
    theirs = [0.4] * 8 + [0.2] * 2
    found = stored.stored("stomp", "TRANSACTED, send, commit every 100", theirs, [0.1] * 10)
    assert (found.theirs, found.ours, found.target) == (250, 1000, 1)
    assert found.ratios == (4, 4, 4, 4, 2)
    assert (found.ratio, found.spread) == (4, 0.5)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_a_store_is_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored.search(tmp_path, 100)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("a selector, 100 messages: ")
    assert second.startswith("a group, 100 messages: ")
